"""A llama.cpp server inside this process: started on first use, drained before it is stopped, one per settings."""

from __future__ import annotations

import atexit
import functools
import os
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Final, Literal

from dspy_mama.lm import llama
from dspy_mama.lm.cores import usable_cores
from dspy_mama.lm.llama import Endpoint, Plan

_DRAIN_SECONDS: Final = 60.0
_EXIT_SECONDS: Final = 3.0


class EmbeddedServer:
    """One model behind one llama.cpp server. Safe to use from several threads; a forked child starts its own.

    Attributes:
        model: The GGUF file.
        prompt_threads: CPU threads that read prompts.
        threads: CPU threads that generate.
        slots: Requests answered at once.
        request_count: Requests answered in this process, over all starts.
    """

    def __init__(self, model: Path, *, context_tokens: int = 4096, threads: int | None = None, slots: int = 1) -> None:
        """Describes the server; it starts on first use.

        Args:
            model: A GGUF file.
            context_tokens: Context window of each slot; rounded up to 256, and cut to what the model was trained on.
            threads: CPU threads; None = the cores this process may use, all for prompts, one fewer to generate.
            slots: Requests answered at once.
        """
        self.model = model
        self.prompt_threads, self.threads = _threads(threads)
        self.slots = slots
        self._context_tokens = context_tokens
        self._reset()
        _servers.add(self)

    def _reset(self) -> None:
        self.request_count = 0
        self._changed = threading.Condition()
        self._state: Literal["stopped", "starting", "running", "stopping"] = "stopped"
        self._server: Any = None
        self._endpoint: Endpoint | None = None
        self._in_flight = 0

    @property
    def model_name(self) -> str:
        """The model's name as the server reports it, such as `smollm2-135m-instruct-q4_1`."""
        return self.model.stem.lower().replace(".", "-").replace(" ", "-")

    @property
    def running(self) -> bool:
        """Whether the server answers now."""
        return self._state == "running"

    @property
    def context_tokens(self) -> int:
        """Context window of a slot in tokens; certain once the server has run."""
        return self._context_tokens

    @property
    def base_url(self) -> str:
        """Root of the OpenAI protocol; starts the server."""
        return self.start().base_url

    @property
    def api_key(self) -> str:
        """The key of this run; starts the server."""
        return self.start().api_key

    def start(self) -> Endpoint:
        """Returns the endpoint, starting the server where it does not run.

        Raises:
            DeclarationError: The extra `embedded` is not installed, or llama.cpp could not load the model.
        """
        with self._changed:
            self._changed.wait_for(self._settled)
            if self._endpoint is not None:
                return self._endpoint
            self._state = "starting"
        try:
            _install_hooks()
            plan = Plan(
                model=self.model,
                alias=self.model_name,
                context_tokens=self._context_tokens,
                prompt_threads=self.prompt_threads,
                threads=self.threads,
                slots=self.slots,
            )
            server, endpoint, self._context_tokens = llama.launch(plan)
        except BaseException:
            self._settle(None, None)
            raise
        self._settle(server, endpoint)
        return endpoint

    def stop(self, timeout: float = _DRAIN_SECONDS) -> bool:
        """Stops the server once it is idle; requests that come later start it again.

        Requests in flight are answered first. Call it from a thread that no event loop with such requests needs.

        Args:
            timeout: Seconds to wait for idleness.

        Returns:
            True = it does not run; False = it was still busy and goes on.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            if not self._changed.wait_for(self._settled, timeout):
                return False
            if self._endpoint is None:
                return True
            server, endpoint = self._server, self._endpoint
            self._state = "stopping"
        idle = False
        try:
            with self._changed:
                idle = self._changed.wait_for(lambda: self._in_flight == 0, timeout)
            # llama.cpp goes on with a request whose caller has given up.
            idle = idle and llama.wait_until_idle(endpoint, deadline)
        finally:
            if idle:
                self._server = None
                if _inherited:
                    llama.keep_for_ever(server)
                del server  # returns when the server's threads have ended
                self._settle(None, None)
            else:
                self._settle(server, endpoint)
        return idle

    def metrics(self) -> dict[str, float]:
        """Returns llama.cpp's own counters of this run, such as `prompt_tokens_cached_total`; starts the server."""
        return llama.metrics(self.start())

    def enter(self) -> Endpoint | None:
        """Counts one request in and returns where to send it; None where the server has to be started first."""
        with self._changed:
            if self._state != "running":
                return None
            self._in_flight += 1
            return self._endpoint

    def leave(self, *, answered: bool) -> None:
        """Counts a request out again.

        Args:
            answered: Whether the server answered it.
        """
        with self._changed:
            self._in_flight -= 1
            self.request_count += answered
            self._changed.notify_all()

    def _settled(self) -> bool:
        return self._state in ("stopped", "running")

    def _settle(self, server: Any, endpoint: Endpoint | None) -> None:
        with self._changed:
            self._server, self._endpoint = server, endpoint
            self._state = "stopped" if endpoint is None else "running"
            self._changed.notify_all()


_servers: weakref.WeakSet[EmbeddedServer] = weakref.WeakSet()
_shared: dict[tuple[Path, int, int | None, int], EmbeddedServer] = {}
_lock = threading.Lock()
_inherited = False
"""Whether this process was forked from one whose server ran: such a child cannot end a server."""


def shared_server(
    model: Path, *, context_tokens: int = 4096, threads: int | None = None, slots: int = 1
) -> EmbeddedServer:
    """Returns this process's one server for a model and its settings; it is not started yet.

    Args:
        model: A GGUF file.
        context_tokens: Context window of each slot.
        threads: CPU threads; None = as in `EmbeddedServer`.
        slots: Requests answered at once.
    """
    key = (model, context_tokens, threads, slots)
    with _lock:
        if key not in _shared:
            _shared[key] = EmbeddedServer(model, context_tokens=context_tokens, threads=threads, slots=slots)
        return _shared[key]


def _threads(asked: int | None) -> tuple[int, int]:
    """Returns the threads for prompts and for generation.

    One core stays free while tokens are generated: a thread that waits for its core stops all others at every token.
    Measured on 2 cores beside other work: 43 to 64 tokens a second with one thread, 0.6 to 43 with two; alone 66
    and 91. Prompts come in batches and suffer less: 180 tokens a second with one thread, 330 with two.
    """
    if asked is not None:
        return asked, asked
    cores = usable_cores()
    return cores, max(1, cores - 1)


@functools.cache
def _install_hooks() -> None:
    atexit.register(_stop_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _stop_all() -> None:
    for server in list(_servers):
        if not server.stop(_EXIT_SECONDS):
            llama.keep_for_ever(server._server)
            llama.skip_exit_handlers()


def _after_fork() -> None:
    """Leaves the parent's servers alone: their threads do not exist here."""
    global _lock, _inherited
    _lock = threading.Lock()
    left = [server for server in list(_servers) if server._state != "stopped"]
    for server in left:
        llama.keep_for_ever(server._server)
    for server in list(_servers):
        server._reset()
    if left:
        _inherited = True
        llama.skip_exit_handlers()
