"""The embedded LM: a `dspy.LM` whose engine is a llama.cpp server in this process."""

from __future__ import annotations

from typing import Any

from dspy_mama.lm.engine import PROVIDER, AsyncEmbeddedEngine, EmbeddedEngine
from dspy_mama.lm.privacy import keep_local
from dspy_mama.lm.server import EmbeddedServer, shared_server

__all__ = ["AsyncEmbeddedEngine", "EmbeddedEngine", "EmbeddedServer", "embedded_lm", "shared_server"]


def embedded_lm(
    *,
    model_path: str | None = None,
    sha256: str | None = None,
    context_tokens: int = 4096,
    threads: int | None = None,
    slots: int = 1,
    timeout: float = 300.0,
    temperature: float | None = 0.0,
    max_tokens: int = 400,
    num_retries: int = 2,
    cache: bool = False,
    **options: Any,
) -> Any:
    """Returns a `dspy.LM` that needs no network: llama.cpp in this process, started with the first call.

    The default model proves that everything works; it does not judge risk better than chance.

    Args:
        model_path: GGUF file, `hf:owner/repository/file.gguf`, or None for the default model.
        sha256: Expected hash of `model_path`; required for a model-hub id.
        context_tokens: Context window in tokens, prompt and answer together.
        threads: CPU threads; None = the cores this process may use, all for prompts, one fewer to generate.
        slots: Requests answered at once; more than one takes fewer prompt tokens from the prompt cache.
        timeout: Seconds for one answer, not counting the wait for its turn.
        temperature: Sampling temperature, 0 to 2.
        max_tokens: Limit of new tokens.
        num_retries: Retries of lost connections and server errors.
        cache: Reuse DSPy's response cache.
        **options: Further request settings of `dspy.LM`, such as `top_p`, `logprobs=True`, `top_logprobs=20`.

    Raises:
        DeclarationError: The extra `embedded` is not installed, or the model file is missing, damaged or no GGUF.
        ModelFetchError: The model hub could not be reached.
    """
    keep_local()
    import dspy

    settings = (model_path, sha256, context_tokens, threads, slots, timeout)
    engine = EmbeddedEngine(*settings)
    return dspy.LM(
        f"{PROVIDER}/{engine.server.model_name}",
        engine=engine,
        async_engine=AsyncEmbeddedEngine(*settings),
        temperature=temperature,
        max_tokens=max_tokens,
        num_retries=num_retries,
        cache=cache,
        **options,
    )
