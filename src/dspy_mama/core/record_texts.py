"""Which words of an LM a record may not keep where patients' and chatbots' texts are not kept: they may quote them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

_TELL_OF_THE_WAY: Final = ("infra", "truncated")
"""Outcomes whose error tells of the way to the LM alone; the others' may repeat some of a reply."""


def without_words(part: Mapping[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """Returns a part of a record with its LM's words made null, and an error that may repeat some of them.

    Args:
        part: Such as a verdict, an assessment or a turn, with its `outcome`.
        words: Fields that hold text of the LM.
    """
    left_out = {*words} if part.get("outcome") in _TELL_OF_THE_WAY else {*words, "error"}
    return {name: None if name in left_out else value for name, value in part.items()}
