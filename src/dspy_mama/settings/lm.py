"""LMs by role."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.strict import STRICT


@dataclass(frozen=True, config=STRICT)
class LMSpec:
    """One LM as a role uses it.

    Attributes:
        model: `embedded`, or a DSPy model string such as `openai/gpt-4o`.
        model_path: GGUF file for `embedded`; None = the model that ships with the `embedded` extra.
        sha256: Expected hash of `model_path`; None = not checked.
        api_base: Address of an OpenAI-compatible server; None = the provider's own.
        api_key_env: Name of the environment variable that holds the key; the key itself is never a setting.
        temperature: Sampling temperature, 0 to 2; None = the model's default.
        top_p: Nucleus mass in (0, 1]; None = the model's default.
        max_tokens: Limit of new tokens.
        cache: Reuse DSPy's response cache.
        num_retries: Retries of 429, 5xx and lost connections, with backoff and Retry-After.
        timeout: Seconds to wait for the server.
        json_schema: Whether the server enforces JSON schemas; None = as DSPy knows it.
        logprobs: Whether the server returns log probabilities; None = as DSPy knows it.
        top_logprobs: Alternatives asked for per token, 1 to 20.
        context_tokens: Context window for `embedded`, in tokens.
        evidence_tokens: Evidence per domain that this model can take, in tokens; None = the retriever's budget alone.
        threads: CPU threads for `embedded`; None = the cores this process may use.
        requests_per_minute: Shared limit over all calls of this LM; None = none.
        max_concurrency: Calls in flight over all pairs of this LM; None = none.
        price_input: Money per million prompt tokens; None = as DSPy knows it, else unknown.
        price_output: Money per million new tokens; None = as DSPy knows it, else unknown.
        extra: Further settings handed to `dspy.LM`.
    """

    model: str = Field(default="embedded", min_length=1)
    model_path: str | None = None
    sha256: str | None = None
    api_base: str | None = None
    api_key_env: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=400, ge=1)
    cache: bool = False
    num_retries: int = Field(default=5, ge=0)
    timeout: float = Field(default=300.0, gt=0)
    json_schema: bool | None = None
    logprobs: bool | None = None
    top_logprobs: int = Field(default=5, ge=1, le=20)
    context_tokens: int = Field(default=4096, ge=512)
    evidence_tokens: int | None = Field(default=None, ge=1)
    threads: int | None = Field(default=None, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    max_concurrency: int | None = Field(default=None, ge=1)
    price_input: float | None = Field(default=None, ge=0)
    price_output: float | None = Field(default=None, ge=0)
    extra: dict[str, Any] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses an address that is none, and a key that was written into the settings."""
        if self.api_base is not None and not self.api_base.startswith(("http://", "https://")):
            raise ValueError(f"api_base {self.api_base!r}: must start with http:// or https://")
        secret = [k for k in self.extra if "key" in k.lower() or ("token" in k.lower() and not k.endswith("tokens"))]
        if secret:
            raise ValueError(f"{secret}: keys come from the environment alone; name the variable in api_key_env")


@dataclass(frozen=True, config=STRICT)
class LMSettings:
    """LMs by role: `router`, `assessor`, `verifier`, `judge`; a role without its own takes `default`."""

    name: str = "embedded"
    default: LMSpec = Field(default_factory=LMSpec)
    roles: dict[str, LMSpec] = Field(default_factory=dict)
