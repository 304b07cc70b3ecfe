"""A local OpenAI-compatible server with a fixed latency, for measuring the clients in front of it.

Run as `python latency_server.py PORT SECONDS`. It answers every chat completion with a reply that fits the request's
JSON schema, with log probabilities where they are asked for; replies are prepared once per schema.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any, ClassVar

WORDS = "the answer names no wrong fact and sends the patient to a physician in time "


def _value(schema: dict[str, Any]) -> Any:
    kind = schema.get("type")
    if kind == "boolean":
        return True
    if kind == "array":
        item = WORDS if (schema.get("items") or {}).get("type") == "string" else 1
        return [item] if schema.get("maxItems", 1) else []
    if "enum" in schema:
        return schema["enum"][0]
    return (WORDS * 3)[: min(schema.get("maxLength", 200), 160)]


def _tokens(text: str) -> list[dict[str, Any]]:
    pieces = re.findall(r"\s?[^\s]+", text)
    top = [{"token": t, "logprob": -0.5 - n, "bytes": None} for n, t in enumerate(("true", "false", "a", "b", "c"))]
    return [{"token": piece, "logprob": -0.1, "bytes": None, "top_logprobs": top} for piece in pieces]


def reply_for(body: dict[str, Any]) -> bytes:
    form = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    content = json.dumps({name: _value(schema) for name, schema in form.get("properties", {}).items()})
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    if body.get("logprobs"):
        choice["logprobs"] = {"content": _tokens(content)}
    usage = {"prompt_tokens": 900, "completion_tokens": 120, "total_tokens": 1020}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "latency"}
    whole |= {"choices": [choice], "usage": usage}
    payload = json.dumps(whole).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(payload)}\r\n\r\n"
    return head.encode() + payload


class Chat(asyncio.Protocol):
    prepared: ClassVar[dict[str, bytes]] = {}
    seconds = 0.2

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        if len(self.buffer) - end - 4 < length:
            return
        body = json.loads(self.buffer[end + 4 : end + 4 + length])
        self.buffer = self.buffer[end + 4 + length :]
        key = json.dumps([body.get("response_format"), body.get("logprobs")])
        if key not in self.prepared:
            self.prepared[key] = reply_for(body)
        asyncio.get_running_loop().call_later(self.seconds, self.transport.write, self.prepared[key])


async def main(port: int, seconds: float) -> None:
    Chat.seconds = seconds
    server = await asyncio.get_running_loop().create_server(Chat, "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
