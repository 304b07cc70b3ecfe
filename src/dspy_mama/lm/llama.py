"""llama.cpp through xllamacpp: launching one server, asking it, and what it must never be asked.

Traps, each seen by running it:
- A server that is dropped before its loop has begun, or while a request is in flight, hangs for ever.
- A forked child can neither use the parent's server nor end one of its own, and hangs in the C++ exit handlers.
- A process that ends beside a busy server crashes now and then.
- Verbosity below 0 is silent; the default writes to stderr.
- A request whose caller has gone is generated to its end, unless it is a streaming one.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from dspy_mama.core.errors import DeclarationError

EXTRA: Final = "the embedded LM needs the package xllamacpp: pip install 'dspy-mama[embedded]'"

PROMPT_CACHE_MB: Final = 1024
"""Memory for prompts of earlier calls. With it one slot took 59 % of prompt tokens from the cache, two slots 52 %."""

REPEAT_PENALTY: Final = 1.15
"""Small models otherwise repeat themselves inside a string until the token limit."""

_ANSWER_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one run of a server answers.

    Attributes:
        base_url: Root of the OpenAI protocol, on loopback.
        api_key: Key that this run asks for; made anew at each start.
    """

    base_url: str
    api_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to launch.

    Attributes:
        model: A GGUF file.
        alias: The model's name in answers.
        context_tokens: Context window of each slot.
        prompt_threads: CPU threads that read prompts.
        threads: CPU threads that generate.
        slots: Requests answered at once.
    """

    model: Path
    alias: str
    context_tokens: int
    prompt_threads: int
    threads: int
    slots: int


def launch(plan: Plan) -> tuple[Any, Endpoint, int]:
    """Starts a server on a free loopback port.

    Returns:
        The server (it runs as long as it is referenced), its endpoint, and the context window it really has.

    Raises:
        DeclarationError: The extra `embedded` is not installed, or llama.cpp could not load the model.
    """
    try:
        import xllamacpp
    except ImportError as exc:
        raise DeclarationError(EXTRA) from exc
    key = secrets.token_urlsafe(32)
    try:
        server = xllamacpp.Server(_params(xllamacpp.CommonParams(), plan, key))
    except RuntimeError as exc:
        raise DeclarationError(_why_not(plan)) from exc
    endpoint = Endpoint(f"{server.listening_address}/v1", key)
    try:
        # The server's loop answers this: from here on it has begun, and the server may be dropped.
        context_tokens = int(json.loads(ask(endpoint, "/slots"))[0]["n_ctx"])
    except BaseException:
        keep_for_ever(server)
        raise
    return server, endpoint, context_tokens


def _params(params: Any, plan: Plan, key: str) -> Any:
    params.model.path = str(plan.model)
    params.model_alias = {plan.alias}
    params.port = 0
    params.api_keys = [key]
    params.cors_origins = "http://127.0.0.1"
    params.verbosity = -1
    params.ui = False
    params.endpoint_metrics = True
    params.fit_params = False  # would shrink the context window unasked
    params.n_ctx = plan.context_tokens * plan.slots
    params.n_parallel = plan.slots
    params.cpuparams.n_threads = plan.threads
    params.cpuparams_batch.n_threads = plan.prompt_threads
    params.cache_ram_mib = PROMPT_CACHE_MB
    params.sampling.penalty_repeat = REPEAT_PENALTY
    return params


def _why_not(plan: Plan) -> str:
    """Returns the likely reasons; llama.cpp itself only says that it failed."""
    size = plan.model.stat().st_size / 1e6
    try:
        free = f", {os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 1e6:.0f} MB of memory are free"
    except (ValueError, OSError, AttributeError):
        free = ""
    return (
        f"{plan.model}: llama.cpp could not load the model ({size:.0f} MB, {plan.slots} x {plan.context_tokens} "
        f"tokens of context{free}). Likely reasons: a cut or damaged file (check it with lm.sha256), an architecture "
        "newer than the installed xllamacpp, too little memory (lower lm.context_tokens)."
    )


def ask(endpoint: Endpoint, path: str) -> str:
    """Returns what the server says of itself; no proxy of the environment is used on loopback.

    Raises:
        OSError: The server does not answer.
    """
    connection = http.client.HTTPConnection(urlsplit(endpoint.base_url).netloc, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {endpoint.api_key}"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def metrics(endpoint: Endpoint) -> dict[str, float]:
    """Returns llama.cpp's counters without their prefix, such as `prompt_tokens_total`."""
    lines = ask(endpoint, "/metrics").splitlines()
    pairs = (line.removeprefix("llamacpp:").split() for line in lines if not line.startswith("#"))
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2}


def wait_until_idle(endpoint: Endpoint, deadline: float) -> bool:
    """Tells whether llama.cpp has become idle before a `time.monotonic` deadline."""
    while True:
        counters = metrics(endpoint)
        if counters["requests_processing"] == counters["requests_deferred"] == 0:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)


def keep_for_ever(server: Any) -> None:
    """Keeps a server alive until the process ends, whatever becomes of its references."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))


def skip_exit_handlers() -> None:
    """Makes this process end, once Python has cleaned up, before the C++ exit handlers; the exit status stays.

    They wait for threads that a forked child does not have, and crash beside a server that is still busy.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # glibc
        libc.on_exit(libc._exit, None)
