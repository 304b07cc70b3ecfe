"""A real OpenAI-compatible server on the loopback whose replies are scripted."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ChatServer:
    """Answers from `script(number, body)`: (status, headers, body) with body a dict, text or bytes."""

    def __init__(self, script: Callable[[int, dict[str, Any]], Any]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.starts: list[float] = []
        self.in_flight = self.most_in_flight = 0
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.bodies.append(body)
                    outer.starts.append(time.monotonic())
                    number = len(outer.bodies)
                    outer.in_flight += 1
                    outer.most_in_flight = max(outer.most_in_flight, outer.in_flight)
                try:
                    status, headers, reply = script(number, body)
                finally:
                    with lock:
                        outer.in_flight -= 1
                data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def completion(content: Any, *, finish: str = "stop", usage: Any = None, model: str = "served-1") -> dict[str, Any]:
    message = {"role": "assistant", "content": content if isinstance(content, str | None) else json.dumps(content)}
    default = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
    reply = {"id": "c1", "object": "chat.completion", "model": model, "created": 1}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**reply, "choices": [choice], "usage": default if usage is None else usage}


def fault(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code}}
