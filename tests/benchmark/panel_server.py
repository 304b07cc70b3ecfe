"""A local OpenAI-compatible server with a fixed latency that plays a panel, and counts what it is sent and sends.

Run as `python panel_server.py SECONDS`. It answers doctors, supervisor and choosers of a speaker with texts of the same
length, whoever asks; the supervisor sees consensus from the tenth turn on. `GET /reset` returns the counts and begins
anew. A token is four characters here, the same for every client.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, ClassVar

NAMES = ("Doctor_1", "Doctor_2", "Doctor_3", "Doctor_4", "Supervisor")
CONSENSUS_FROM = 9
"""Turns after which the supervisor sees consensus."""
WORDS = "the burning feet and the rash speak for it, the age does not speak against it, and the enzyme decides; "


def turns_of(text: str) -> int:
    """How many turns a prompt shows: as lines of a discussion, or as messages of a chat."""
    return text.count("Most likely: ") + text.count('"most_likely"')


def doctor() -> dict[str, Any]:
    return {
        "argument": (WORDS * 4)[:320], "most_likely": "Fabry disease", "differentials": ["Gaucher disease", "Lupus"],
        "tests": ["Enzyme activity", "Gene panel"], "agrees": True,
    }  # fmt: skip


def supervisor(turns: int) -> dict[str, Any]:
    own = {name: value for name, value in doctor().items() if name not in ("argument", "agrees")}
    return {"disagreement": (WORDS * 3)[:240], **own, "consensus": turns >= CONSENSUS_FROM}


def content_of(body: dict[str, Any]) -> str:
    texts = [str(message.get("content") or "") for message in body["messages"]]
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    whole, system = "\n".join(texts), texts[0]
    wanted = schema.get("properties", {})
    turns = turns_of(whole)
    if "You are one of the doctors" in system:
        values = doctor()
    elif "You are the panel's supervisor" in system:
        values = supervisor(turns)
    elif not wanted:  # the framework's own chooser wants a bare name
        return NAMES[turns % len(NAMES)]
    else:
        values = {}
    if wanted:
        options = {name: [o for o in f["enum"] if o != "Supervisor"] for name, f in wanted.items() if "enum" in f}
        fallback = {name: offered[turns % len(offered)] for name, offered in options.items()}
        values = {name: values[name] if name in values else fallback.get(name, "-") for name in wanted}
    return json.dumps(values)


class Panel(asyncio.Protocol):
    counts: ClassVar[dict[str, int]] = {}
    seconds = 0.2

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0]) if b"content-length:" in head else 0
        if len(self.buffer) - end - 4 < length:
            return
        raw, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
        if head.startswith(b"get /reset"):
            self._send(Panel.counts, 0.0)
            Panel.counts = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
            return
        self._answer(json.loads(raw))

    def _answer(self, body: dict[str, Any]) -> None:
        content = content_of(body)
        sent = sum(len(str(message.get("content") or "")) for message in body["messages"]) // 4
        usage = {"prompt_tokens": sent, "completion_tokens": len(content) // 4}
        for name, value in {"calls": 1, **usage}.items():
            Panel.counts[name] = Panel.counts.get(name, 0) + value
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "panel", "choices": [choice]}
        self._send({**whole, "usage": {**usage, "total_tokens": sum(usage.values())}}, self.seconds)

    def _send(self, document: dict[str, Any], seconds: float) -> None:
        payload = json.dumps(document).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(payload)}\r\n\r\n"
        asyncio.get_running_loop().call_later(seconds, self.transport.write, head.encode() + payload)


async def main(seconds: float) -> None:
    Panel.seconds = seconds
    server = await asyncio.get_running_loop().create_server(Panel, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
