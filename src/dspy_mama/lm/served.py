"""DSPy engines for any OpenAI-compatible server, told by its address (vLLM, llama.cpp, Ollama, gateways).

DSPy's own route to such a server treats unknown abilities as absent, and turns every alternative of every token into
objects several times over. A label needs the alternatives at its own token only: the rest of the log probabilities is
folded before DSPy sees it, which takes most of the CPU time out of a call.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from dspy._vendor.lm15.transports import StdlibAsyncTransport, StdlibTransport
from dspy.lm15 import (
    AccessPolicy,
    AsyncOpenAIChatLM,
    ConfigurationError,
    OpenAIChatCompat,
    OpenAIChatLM,
    Request,
    Response,
)

from dspy_mama.lm.engine_state import SettingsState
from dspy_mama.lm.token_probability import is_label_piece

PROVIDER = "served"


def fold_logprobs(body: bytes) -> bytes:
    """Returns a chat completion whose log probabilities keep alternatives at label tokens alone.

    Runs of other tokens become one entry with their joined text, so that the text's offsets stay as they were.
    Anything that is no chat completion with log probabilities is returned as it came.
    """
    if b'"logprobs"' not in body:
        return body
    try:
        data = json.loads(body)
        holders = [choice["logprobs"] for choice in data["choices"] if choice.get("logprobs")]
        for holder in holders:
            holder["content"] = _folded(holder.get("content") or [])
    except (ValueError, TypeError, KeyError, AttributeError):
        return body
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace") if holders else body


def _folded(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    folded: list[dict[str, Any]] = []
    run: list[str] = []
    for entry in entries:
        if not is_label_piece(entry["token"]):
            run.append(entry["token"])
            continue
        if run:
            folded.append({"token": "".join(run), "logprob": 0.0, "bytes": None, "top_logprobs": []})
            run = []
        alternatives = [{**item, "bytes": None} for item in entry.get("top_logprobs") or []]
        folded.append({**entry, "bytes": None, "top_logprobs": alternatives})
    if run:
        folded.append({"token": "".join(run), "logprob": 0.0, "bytes": None, "top_logprobs": []})
    return folded


def _is_loopback(address: str) -> bool:
    """Tells whether an address is this machine: such requests, prompts and key included, never go to a proxy."""
    return urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


class _FoldingChat(OpenAIChatLM):
    def _send(self, request: Any) -> Any:
        reply = super()._send(request)
        return replace(reply, body=fold_logprobs(reply.body)) if reply.status < 400 else reply


class _AsyncFoldingChat(AsyncOpenAIChatLM):
    async def _send(self, request: Any) -> Any:
        reply = await super()._send(request)
        return replace(reply, body=fold_logprobs(reply.body)) if reply.status < 400 else reply


@dataclass(frozen=True)
class _Engine(SettingsState):
    """What both engines share. Its state names the address and the variable of the key, never the key.

    Attributes:
        model: Model name as the server knows it.
        api_base: Address up to and including `/v1`.
        api_key_env: Environment variable that holds the key; None = the server needs none.
        timeout: Seconds to wait for an answer.
        schema: Whether the server enforces JSON schemas.
        logprobs: Whether the server returns log probabilities.
    """

    model: str
    api_base: str
    api_key_env: str | None = None
    timeout: float = 300.0
    schema: bool = True
    logprobs: bool = True

    supports_function_calling = False
    supports_reasoning = False

    @property
    def supports_response_schema(self) -> bool:
        """Whether the server enforces JSON schemas."""
        return self.schema

    @property
    def supported_params(self) -> frozenset[str]:
        """Parameters that the server takes."""
        always = {"temperature", "top_p", "max_tokens", "stop", "seed"}
        return frozenset(
            always
            | ({"response_format"} if self.schema else set())
            | ({"logprobs", "top_logprobs"} if self.logprobs else set())
        )

    @cached_property
    def _clients(self) -> dict[Any, Any]:
        return {}

    def _client(self, owner: Any, client: type, transport: type) -> Any:
        """Returns the HTTP client of one owner: an event loop, or None for sync calls."""
        known = self._clients.get(owner)
        if known is not None:
            return known
        for loop in [loop for loop in list(self._clients) if loop is not None and loop.is_closed()]:
            self._clients.pop(loop, None)
        key = os.environ.get(self.api_key_env) if self.api_key_env else "none"
        if not key:
            raise ConfigurationError(f"the environment variable {self.api_key_env} is not set", provider=PROVIDER)
        made = client(
            api_key=key,
            base_url=self.api_base,
            compat=OpenAIChatCompat.preset("vllm"),
            access=AccessPolicy(provider=PROVIDER, base_url=self.api_base, env_keys=()),
            transport=transport(
                read_timeout=self.timeout,
                write_timeout=self.timeout,
                pool_timeout=self.timeout,
                max_connections=1024,
                trust_env=not _is_loopback(self.api_base),
            ),
        )
        self._clients[owner] = made
        return made


class ServedEngine(_Engine):
    """DSPy's synchronous engine for an OpenAI-compatible server."""

    def complete(self, request: Request) -> Response:
        """Answers one request.

        Raises:
            LM15Error: The server refused, failed, or could not be reached.
        """
        return self._client(None, _FoldingChat, StdlibTransport).complete(replace(request, model=self.model))

    def close(self) -> None:
        """Does nothing: connections are kept for the next call and close with the process."""


class AsyncServedEngine(_Engine):
    """DSPy's asynchronous engine, with one connection pool per event loop."""

    async def complete(self, request: Request) -> Response:
        """Answers one request; raises as `ServedEngine.complete`."""
        client = self._client(asyncio.get_running_loop(), _AsyncFoldingChat, StdlibAsyncTransport)
        response: Response = await client.complete(replace(request, model=self.model))
        return response

    async def aclose(self) -> None:
        """Does nothing: connections are kept for the next call and close with their loop."""


def served_lm(
    model: str,
    api_base: str,
    *,
    api_key_env: str | None = None,
    timeout: float = 300.0,
    json_schema: bool = True,
    logprobs: bool = True,
    **options: Any,
) -> Any:
    """Returns a `dspy.LM` for an OpenAI-compatible server.

    Args:
        model: Model name as the server knows it.
        api_base: Address up to and including `/v1`.
        api_key_env: Environment variable that holds the key; None = the server needs none.
        timeout: Seconds to wait for an answer.
        json_schema: Whether the server enforces JSON schemas.
        logprobs: Whether the server returns log probabilities.
        **options: Settings of `dspy.LM`, such as `temperature`, `max_tokens`, `cache`.
    """
    import dspy

    settings = (model, api_base.rstrip("/"), api_key_env, timeout, json_schema, logprobs)
    return dspy.LM(
        f"{PROVIDER}/{model}", engine=ServedEngine(*settings), async_engine=AsyncServedEngine(*settings), **options
    )
