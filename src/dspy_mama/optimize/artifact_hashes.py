"""What identifies a program's prompts, and whether a file is still what was saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dspy_mama.core.ids import object_hash
from dspy_mama.lm.prompt import system_message
from dspy_mama.lm.schema import field_specs

_LENGTH: Final = 16


def prompt_of(predictor: Any) -> str:
    """Returns the prompt that a predictor sends before any material: instructions, fields and form of the reply."""
    return system_message(predictor.signature, field_specs(predictor.signature), getattr(predictor, "last", ()))


def prompt_hashes(program: Any) -> dict[str, str]:
    """Returns a hash per predictor of the prompt as sent, without demonstrations."""
    return {name: object_hash(prompt_of(predictor), _LENGTH) for name, predictor in program.named_predictors()}


def content_hash(document: Mapping[str, Any]) -> str:
    """Returns a hash of everything in an artifact but this hash itself."""
    hashes = {name: value for name, value in document.get("hashes", {}).items() if name != "content"}
    return object_hash({**document, "hashes": hashes})


def differing(saved: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Returns the names whose hashes differ, sorted."""
    return sorted(name for name in {*saved, *now} if saved.get(name) != now.get(name))
