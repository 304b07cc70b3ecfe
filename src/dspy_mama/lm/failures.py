"""What a failed call means: a wrong configuration, a refusal, an unusable input, or a fault on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Unscored
from dspy_mama.lm.profile import LMProfile


def classify(error: Exception) -> Unscored:
    """Returns the outcome of a call that gave no reply.

    Raises:
        DeclarationError: The fault lies in the configuration (no key, wrong model): every further call would fail.
    """
    from dspy.utils.exceptions import (
        ContextWindowExceededError,
        LMAuthError,
        LMBillingError,
        LMConfigurationError,
        LMInvalidRequestError,
        LMUnsupportedFeatureError,
        LMUnsupportedModelError,
    )

    text = " ".join(f"{type(error).__name__}: {error}".split())
    lasting = (LMAuthError, LMBillingError, LMConfigurationError, LMUnsupportedFeatureError, LMUnsupportedModelError)
    if isinstance(error, (*lasting, ImportError)):
        raise DeclarationError(f"the LM cannot be used: {text}") from error
    if isinstance(error, ContextWindowExceededError) or "exceed_context_size" in text or "context length" in text:
        return Unscored("invalid_input", f"the pair and its evidence do not fit the model's context window: {text}")
    if isinstance(error, LMInvalidRequestError):
        if any(sign in text for sign in ("content_filter", "content management policy", "ResponsibleAI")):
            return Unscored("refused", f"the provider's filter refused the request: {text}")
        if getattr(error, "status", None) == 404 or "LLM Provider NOT provided" in text:
            raise DeclarationError(f"the LM cannot be used: {text}") from error
    return Unscored("infra", text)


def withdrawn(error: Exception, profile: LMProfile, wanted: Mapping[str, Any]) -> bool:
    """Takes back an ability that the server refuses by name.

    Args:
        error: What the call failed with.
        profile: The LM's profile, which is changed.
        wanted: Settings that were sent for the sake of the abilities.

    Returns:
        Whether the call is worth repeating without it.
    """
    from dspy.utils.exceptions import LMInvalidRequestError, LMUnsupportedFeatureError

    if not isinstance(error, (LMInvalidRequestError, LMUnsupportedFeatureError)):
        return False
    text = str(error).casefold()
    for ability, signs in (("logprobs", ("logprob",)), ("json_schema", ("response_format", "json_schema", "grammar"))):
        asked = "logprobs" in wanted if ability == "logprobs" else "response_format" in wanted
        if asked and getattr(profile, ability) and any(sign in text for sign in signs):
            profile.withdraw(ability, str(error)[:200])
            return True
    return False
