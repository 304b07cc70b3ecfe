"""Patients' and chatbots' texts are data: nothing in them may act as the frame of a prompt."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Field markers of prompt formats, chat-template control tokens and reasoning tags.
_CONTROL: Final = re.compile(
    r"\[\[(?=\s*##)|<\|(?=[^|<>]{1,40}\|>)|<(?=/?(?:s|think|thinking|reasoning|system|im_start|im_end)\b[^>]*>)"
    r"|\[(?=/?INST\])|<<(?=/?SYS>>)|<(?=(?:start|end)_of_turn>)",
    re.I,
)
_INVISIBLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def neutralise(text: str) -> str:
    """Makes an untrusted text safe to stand inside a prompt.

    The first sign of every control sequence (field markers, chat-template tokens, reasoning tags) is followed by a
    space, so that the text reads the same to a person and is no marker to a parser or a tokenizer. Invisible and
    bidirectional control characters are dropped, lone surrogates are replaced, full-width forms of markers are
    caught through their NFKC form.

    Args:
        text: Text from a patient, a chatbot or a document.

    Returns:
        The text with every control sequence broken.
    """
    clean = _INVISIBLE.sub("", text).encode("utf-8", "replace").decode("utf-8")
    folded = unicodedata.normalize("NFKC", clean)
    if len(_CONTROL.findall(folded)) > len(_CONTROL.findall(clean)):
        clean = folded
    return _CONTROL.sub(lambda match: match.group() + " ", clean)
