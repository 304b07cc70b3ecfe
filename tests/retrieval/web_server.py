"""A real web server on the loopback with scripted pages and the faults of real ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, dict[str, str], bytes]
Script = Answer | Callable[["Asked"], Answer]


class Asked:
    """One request: its number among those to the same path (from 1), query, headers, and the raw stream."""

    def __init__(self, number: int, handler: BaseHTTPRequestHandler) -> None:
        self.number = number
        self.query = dict(parse_qsl(urlsplit(handler.path).query))
        self.headers = handler.headers
        self.stream = handler.wfile
        self.stop = handler.server.stop


class WebServer:
    """Answers paths from `pages`; anything else is 404, robots.txt included."""

    def __init__(self) -> None:
        self.pages: dict[str, Script] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.in_flight = self.most_in_flight = 0
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                with lock:
                    outer.asked.append((path, dict(self.headers)))
                    number = sum(1 for known, _ in outer.asked if known == path)
                    outer.in_flight += 1
                    outer.most_in_flight = max(outer.most_in_flight, outer.in_flight)
                try:
                    script = outer.pages.get(path, (404, {}, b"no such page"))
                    status, headers, body = script(Asked(number, self)) if callable(script) else script
                    if status == 0:  # the script has written to the stream itself
                        self.close_connection = True
                        return
                    self.send_response(status)
                    for name, value in {"Content-Length": str(len(body)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                    self.close_connection = int({**headers}.get("Content-Length", len(body))) != len(body)
                finally:
                    with lock:
                        outer.in_flight -= 1

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # clients that hang up are the point of some tests
        self._server.stop = threading.Event()
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def count(self, path: str) -> int:
        return sum(1 for known, _ in self.asked if known == path)

    def close(self) -> None:
        self._server.stop.set()
        self._server.shutdown()
        self._server.server_close()


def html(text: str, *, title: str = "A page", charset: str = "utf-8", **headers: str) -> Answer:
    """A well-formed page."""
    body = f"<!doctype html><html lang='en'><head><title>{title}</title></head><body>{text}</body></html>"
    return 200, {"Content-Type": f"text/html; charset={charset}", **headers}, body.encode(charset)


def then(*answers: Answer) -> Callable[[Asked], Answer]:
    """Answers in turn; the last one again and again."""
    return lambda asked: answers[min(asked.number, len(answers)) - 1]


def cut_off(asked: Asked) -> Answer:
    """Promises more bytes than it sends."""
    asked.stream.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n<html><p>half of it")
    return 0, {}, b""


def silent(asked: Asked) -> Answer:
    """Takes the request and says nothing."""
    asked.stop.wait(20)
    return 0, {}, b""


def dripping(asked: Asked) -> Answer:
    """Sends a byte now and then, for ever: no single wait is long."""
    asked.stream.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n")
    while not asked.stop.wait(0.01):
        asked.stream.write(b"x")
    return 0, {}, b""
