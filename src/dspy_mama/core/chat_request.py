"""What a chatbot is asked: a request, the conversation before it, and perhaps an answer that is to be mended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, cast

from dspy_mama.core.errors import DeclarationError

Speaker = Literal["patient", "chatbot"]

_SPEAKERS: Mapping[str, Speaker] = MappingProxyType(
    {
        "patient": "patient",
        "user": "patient",
        "human": "patient",
        "chatbot": "chatbot",
        "assistant": "chatbot",
        "ai": "chatbot",
        "model": "chatbot",
    }
)
"""Names of speakers as data sets and chat protocols have them."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One turn of a conversation.

    Attributes:
        speaker: `patient` or `chatbot`.
        text: What was said; untrusted.
    """

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a chatbot.

    Attributes:
        id: Unique within its data set.
        question: The request, or the last turn of the patient; untrusted.
        answer: An answer that is to be judged and mended; None = the generator writes the first one.
        history: Turns before the question.
        principle: Principle of medical ethics that the request is about (`I` to `IX`), or None.
        language: ISO 639-1, or None where it is not known.
        source: Name of the data set.
        extra: Columns without a meaning to the loop.
    """

    id: str
    question: str
    answer: str | None = None
    history: tuple[ChatTurn, ...] = ()
    principle: str | None = None
    language: str | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def as_history(turns: Iterable[ChatTurn | Mapping[str, Any]]) -> tuple[ChatTurn, ...]:
    """Returns the turns of a conversation; a mapping with `role` and `content` is one too.

    System turns are left out: they are the operator's, not the conversation's.

    Raises:
        DeclarationError: A turn has no speaker that is known, or no text.
    """
    found = []
    for number, turn in enumerate(turns, start=1):
        if isinstance(turn, ChatTurn):
            found.append(turn)
            continue
        if not isinstance(turn, Mapping):
            raise DeclarationError(f"history: turn {number} is {type(turn).__name__}; give role and content")
        role = str(turn.get("role", turn.get("speaker", ""))).strip().lower()
        text = _text_of(turn.get("content", turn.get("text")))
        if role in ("system", "developer"):
            continue
        if role not in _SPEAKERS:
            raise DeclarationError(f"history: turn {number} has the role {role!r}; use user or assistant")
        if not isinstance(text, str) or not text.strip():
            raise DeclarationError(f"history: turn {number} holds no text")
        found.append(ChatTurn(_SPEAKERS[role], text))
    return tuple(found)


def _text_of(content: Any) -> Any:
    """Returns the text of a turn whose content comes in parts, as chat protocols have it; other content as it is."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
    known = [text for text in texts if isinstance(text, str)]
    return "\n".join(known) if len(known) == len(content) else None


def from_messages(messages: Sequence[Any]) -> tuple[str, str | None, tuple[ChatTurn, ...]]:
    """Splits a conversation into the question, the answer to it if it ends with one, and the turns before.

    Raises:
        DeclarationError: It holds no turn of the patient, or ends otherwise than with the patient or the chatbot.
    """
    turns = as_history(cast("Iterable[ChatTurn | Mapping[str, Any]]", messages))
    answer = turns[-1].text if turns and turns[-1].speaker == "chatbot" else None
    before = turns[:-1] if answer is not None else turns
    if not before or before[-1].speaker != "patient":
        raise DeclarationError("messages: no turn of the patient (user) stands before the answer")
    return before[-1].text, answer, before[:-1]
