"""DSPy engines over the embedded server: a request starts it, counts in its requests and finds its port by itself."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

# The transports have no public name in dspy 3.4, and the default ones would send loopback requests, prompts and
# key included, to a proxy named in the environment.
from dspy._vendor.lm15.transports import StdlibAsyncTransport, StdlibTransport
from dspy.lm15 import (
    AccessPolicy,
    AsyncOpenAIChatLM,
    ConfigurationError,
    ContextLengthError,
    InvalidRequestError,
    OpenAIChatCompat,
    OpenAIChatLM,
    Request,
    Response,
)

from dspy_mama.core.errors import DeclarationError, MamaError
from dspy_mama.lm.engine_state import SettingsState
from dspy_mama.lm.llama import EXTRA, Endpoint
from dspy_mama.lm.model_file import MODEL_SHA256, resolve_model, sha256_of
from dspy_mama.lm.server import EmbeddedServer, shared_server

PROVIDER: Final = "embedded"

_DIALECT: Final = OpenAIChatCompat(
    instruction_role="system",
    max_tokens_field="max_tokens",
    stream_usage="include",
    thinking_format="none",
    tool_result_name="omit",
    strict_tools="omit",
    cache_control="none",
)
_PARAMS: Final = frozenset(
    [
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "top_p",
        "stop",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "logprobs",
        "top_logprobs",
        "response_format",
        "stream",
    ]
)


@dataclass(frozen=True)
class _Engine(SettingsState):
    """What the synchronous and the asynchronous engine share. Its state names the model, never a port or key.

    Attributes:
        model_path: As in `embedded_lm`.
        sha256: As in `embedded_lm`.
        context_tokens: As in `embedded_lm`.
        threads: As in `embedded_lm`.
        slots: As in `embedded_lm`.
        timeout: As in `embedded_lm`.
    """

    model_path: str | None = None
    sha256: str | None = None
    context_tokens: int = 4096
    threads: int | None = None
    slots: int = 1
    timeout: float = 300.0

    supports_response_schema = True
    supports_function_calling = False
    supports_reasoning = False
    supported_params = _PARAMS

    @cached_property
    def server(self) -> EmbeddedServer:
        """The server behind this engine, shared by all engines of this process with the same settings.

        Raises:
            DeclarationError: The extra `embedded` or the model file is missing.
        """
        if importlib.util.find_spec("xllamacpp") is None:
            raise DeclarationError(EXTRA)
        model = resolve_model(self.model_path, self.sha256)
        return shared_server(model, context_tokens=self.context_tokens, threads=self.threads, slots=self.slots)

    @property
    def model_sha256(self) -> str:
        """Hash of the model file."""
        return MODEL_SHA256 if self.model_path is None else sha256_of(self.server.model)

    @property
    def request_count(self) -> int:
        """Requests that the server has answered in this process."""
        return self.server.request_count

    @cached_property
    def _clients(self) -> dict[Any, tuple[Endpoint, Any]]:
        return {}

    def _client(self, owner: Any, endpoint: Endpoint, client: type, transport: type) -> Any:
        """Returns the HTTP client of one owner (an event loop, or None), made anew for each run of the server.

        It opens one connection more than the server has slots, so that calls wait here rather than against the
        timeout, which then bounds the server's work alone.
        """
        known = self._clients.get(owner)
        if known is not None and known[0] is endpoint:
            return known[1]
        for loop in [loop for loop in list(self._clients) if loop is not None and loop.is_closed()]:
            self._clients.pop(loop, None)
        made = client(
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            compat=_DIALECT,
            access=AccessPolicy(provider=PROVIDER, base_url=endpoint.base_url, env_keys=()),
            transport=transport(
                read_timeout=self.timeout,
                write_timeout=self.timeout,
                pool_timeout=None,
                max_connections=self.slots + 1,
                trust_env=False,
            ),
        )
        self._clients[owner] = (endpoint, made)
        return made

    @contextmanager
    def _counted(self, endpoint: Endpoint) -> Iterator[None]:
        """Counts a request that `enter` let in, and puts its failure into words."""
        answered = False
        try:
            yield
            answered = True
        except InvalidRequestError as exc:
            if "exceeds the available context size" not in exc.message:
                raise
            raise ContextLengthError(
                f"the prompt does not fit the embedded LM: {exc.message.removesuffix(' (400)')}; shorten the texts, "
                "or raise lm.context_tokens as far as the model was trained for",
                provider=PROVIDER,
                provider_code="exceed_context_size_error",
                status=exc.status,
            ) from exc
        finally:
            self.server.leave(answered=answered)

    def _addressed(self, request: Request) -> Request:
        return replace(request, model=self.server.model_name)


class EmbeddedEngine(_Engine):
    """DSPy's synchronous engine; starts the server with the first request."""

    def _enter(self) -> Endpoint:
        try:
            while (endpoint := self.server.enter()) is None:
                self.server.start()
        except MamaError as exc:
            raise ConfigurationError(str(exc), provider=PROVIDER) from exc
        return endpoint

    def complete(self, request: Request) -> Response:
        """Answers one request.

        Raises:
            ContextLengthError: The prompt is longer than the context window (DSPy: `ContextWindowExceededError`).
            ConfigurationError: The server cannot be started (DSPy: `LMConfigurationError`).
        """
        endpoint = self._enter()
        with self._counted(endpoint):
            client = self._client(None, endpoint, OpenAIChatLM, StdlibTransport)
            return client.complete(self._addressed(request))

    def stream(self, request: Request) -> Iterator[Any]:
        """Answers one request event by event; raises as `complete`."""
        endpoint = self._enter()
        with self._counted(endpoint):
            client = self._client(None, endpoint, OpenAIChatLM, StdlibTransport)
            yield from client.stream(self._addressed(request))

    def close(self) -> None:
        """Does nothing: the server is shared and stops at exit, or with `server.stop()`."""


class AsyncEmbeddedEngine(_Engine):
    """DSPy's asynchronous engine, with one connection pool per event loop."""

    async def _enter(self) -> tuple[Endpoint, Any]:
        try:
            if "server" not in self.__dict__:
                await asyncio.to_thread(getattr, self, "server")
            while (endpoint := self.server.enter()) is None:
                await asyncio.to_thread(self.server.start)
        except MamaError as exc:
            raise ConfigurationError(str(exc), provider=PROVIDER) from exc
        return endpoint, asyncio.get_running_loop()

    async def complete(self, request: Request) -> Response:
        """Answers one request; raises as `EmbeddedEngine.complete`."""
        endpoint, loop = await self._enter()
        with self._counted(endpoint):
            client = self._client(loop, endpoint, AsyncOpenAIChatLM, StdlibAsyncTransport)
            return await client.complete(self._addressed(request))

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Answers one request event by event; raises as `EmbeddedEngine.complete`."""
        endpoint, loop = await self._enter()
        with self._counted(endpoint):
            client = self._client(loop, endpoint, AsyncOpenAIChatLM, StdlibAsyncTransport)
            async for event in client.stream(self._addressed(request)):
                yield event

    async def aclose(self) -> None:
        """Does nothing: the server is shared and stops at exit, or with `server.stop()`."""
