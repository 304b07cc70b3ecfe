"""Patients' and chatbots' texts are data: nothing in them may act as the frame of a prompt."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Field markers of prompt formats, chat-template control tokens and reasoning tags.
_CONTROL: Final = re.compile(
    r"\[(?=\[\s*##)|<(?=\|[^|<>]{1,40}\|>)|<(?=</?SYS>>)|<(?=(?:start|end)_of_turn>)"
    r"|<(?=/?(?:s|bos|eos|pad|unk|think|thinking|thought|reasoning|reflection|system|im_start|im_end|tool_call"
    r"|tool_response)\b[^<>]{0,200}>)"
    r"|\[(?=/?(?:INST|THINK|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\])|◁(?=/?think▷)",
    re.I,
)
# C0 and C1 controls, soft hyphen, joiners and fillers, bidirectional marks and isolates, variation selectors, tags.
_INVISIBLE: Final = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f]"
)


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
