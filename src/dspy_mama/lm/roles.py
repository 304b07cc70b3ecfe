"""From settings to LMs: one `dspy.LM` per distinct specification, bound to roles elsewhere."""

from __future__ import annotations

import logging
import os
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import object_hash
from dspy_mama.lm.gate import Gate
from dspy_mama.lm.privacy import keep_local
from dspy_mama.lm.profile import LMProfile, is_reasoning_model, probe, set_profile
from dspy_mama.settings import LMSettings, LMSpec

logger = logging.getLogger(__name__)

REASONING_MIN_TOKENS = 16_000
"""OpenAI's reasoning families are refused by DSPy below this limit: their thinking counts as output."""


def _key(spec: LMSpec, *, asked: bool) -> str | None:
    if spec.api_key_env is None:
        return None
    key = os.environ.get(spec.api_key_env)
    if not key and asked:
        raise DeclarationError(
            f"{spec.model}: the environment variable {spec.api_key_env} is not set; export it, or choose another lm"
        )
    return key or None


def _sampling(spec: LMSpec) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the settings as this model takes them, and those that had to change."""
    asked = {"temperature": spec.temperature, "top_p": spec.top_p, "max_tokens": spec.max_tokens}
    if not is_reasoning_model(spec.model):
        return asked, {}
    sent = {"temperature": None, "top_p": None, "max_tokens": max(spec.max_tokens, REASONING_MIN_TOKENS)}
    changed = {name: sent[name] for name in asked if asked[name] != sent[name]}
    if changed:
        logger.warning("%s takes other settings than asked; sent instead: %s", spec.model, changed)
    return sent, changed


def build_lm(spec: LMSpec, *, asked: bool = True) -> Any:
    """Makes the LM that a specification describes.

    Args:
        spec: The specification.
        asked: Whether it will be asked; one that only names its model, limits and price needs no key.

    Returns:
        A `dspy.LM` with its profile set. Retries lie with the profile's gate, so that a pause asked of one call
        holds for all.

    Raises:
        DeclarationError: The key's variable is not set, or the embedded model's file is missing.
    """
    keep_local()
    sampling, effective = _sampling(spec)
    lm = _embedded(spec, sampling) if spec.model == "embedded" else _remote(spec, sampling, asked=asked)
    known = probe(lm)
    profile = LMProfile(
        gate=Gate(
            requests_per_minute=spec.requests_per_minute,
            max_concurrency=spec.max_concurrency,
            retries=spec.num_retries,
        ),
        json_schema=known.json_schema if spec.json_schema is None else spec.json_schema,
        logprobs=known.logprobs if spec.logprobs is None else spec.logprobs,
        top_logprobs=spec.top_logprobs,
        price_input=0.0 if spec.model == "embedded" and spec.price_input is None else spec.price_input,
        price_output=0.0 if spec.model == "embedded" and spec.price_output is None else spec.price_output,
        effective=effective,
    )
    set_profile(lm, profile)
    return lm


def _embedded(spec: LMSpec, sampling: dict[str, Any]) -> Any:
    from dspy_mama.lm.embedded import embedded_lm

    return embedded_lm(
        model_path=spec.model_path,
        sha256=spec.sha256,
        context_tokens=spec.context_tokens,
        threads=spec.threads,
        timeout=spec.timeout,
        num_retries=0,  # the gate retries
        cache=spec.cache,
        **{name: value for name, value in sampling.items() if value is not None},
        **spec.extra,
    )


def _remote(spec: LMSpec, sampling: dict[str, Any], *, asked: bool) -> Any:
    import dspy

    from dspy_mama.lm.served import served_lm

    key = _key(spec, asked=asked)
    common = {**{name: value for name, value in sampling.items() if value is not None}, **spec.extra}
    if spec.api_base is None:
        connection = {"timeout": spec.timeout} | ({"api_key": key} if key else {})
        return dspy.LM(spec.model, cache=spec.cache, num_retries=0, **connection, **common)
    return served_lm(
        spec.model.split("/", 1)[-1],
        spec.api_base,
        api_key_env=spec.api_key_env,
        timeout=spec.timeout,
        json_schema=spec.json_schema is not False,
        logprobs=spec.logprobs is not False,
        cache=spec.cache,
        num_retries=0,
        **common,
    )


def build_lms(settings: LMSettings, *, asked: bool = True) -> dict[str, Any]:
    """Makes the LMs of all roles; equal specifications share one LM and so its limits.

    Args:
        settings: Specifications by role.
        asked: See `build_lm`.

    Raises:
        DeclarationError: A specification cannot be built.
    """
    made: dict[str, Any] = {}
    lms: dict[str, Any] = {}
    for role, spec in {"default": settings.default, **settings.roles}.items():
        key = object_hash(spec)
        if key not in made:
            made[key] = build_lm(spec, asked=asked)
        lms[role] = made[key]
    return lms
