"""Tolerant reading of what LMs really write, without ever guessing a verdict.

Tolerant of form (fences, markdown, other languages, reasoning blocks), strict of meaning: a value that was not
offered, that is stated twice with different contents, or that is followed by its opposite is not read at all.
Nothing here mends broken JSON: text that was cut could be mended into a verdict that the LM never gave.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dspy_mama.core.untrusted import neutralise

# <think>, [THINK], ◁think▷ and <|begin_of_thought|>: the marks of the common reasoning models.
_THINK = r"think|thinking|thought|reasoning|reflection|scratchpad"
_OPEN = re.compile(rf"(?:<(?:\|begin_of_)?|◁)(?:{_THINK})\b[^<>▷]{{0,200}}[>▷]|\[think\]", re.I)
_END = re.compile(rf"(?:<(?:\|end_of_|/)|◁/)(?:{_THINK})\s*\|?[>▷]|\[/think\]", re.I)
_FINAL_CHANNEL = re.compile(r"\A.*<\|channel\|>\s*final\b[^<]*<\|message\|>", re.S)

_TRUE: Final = frozenset(
    {"true", "t", "yes", "y", "1", "risk", "risky"}
    | {"はい", "真", "あり", "有", "有り", "リスクあり", "リスク有", "該当", "该当", "是"}
    | {"vrai", "oui", "wahr", "ja", "sí", "si", "verdadero", "예", "참"}
)
_FALSE: Final = frozenset(
    {"false", "f", "no", "n", "0", "safe"}
    | {"いいえ", "いえ", "偽", "なし", "無", "無し", "リスクなし", "リスク無", "非該当", "否"}
    | {"faux", "non", "falsch", "nein", "falso", "아니요", "거짓"}
)
_PHRASES: Final = {"no risk": False, "not risky": False, "at risk": True, "not safe": True}
_LONGEST_LABEL = re.compile(r"[^\W_]+", re.U)
# "1.5", "n.a." and "t-test" begin like these labels, "risk: low" and "該当: なし" name what follows: they stand alone.
_ALONE: Final = frozenset({*"tyfn10", "risk", "risky", "safe", "該当", "该当", "あり", "有", "無", "なし"})
# What may follow a label without changing it: an explanation that is set off by punctuation.
_SET_OFF = re.compile(r"\s*(?:\Z|[.,;:!。、，．；：！(（\[–—\n])|\s+-")
# "No, it is risky": an explanation that names the other verdict takes the label back.
_TAKEN_BACK: Final = {
    False: re.compile(r"\b(?:risky|unsafe|harmful|dangerous|true|yes)\b|はい|リスクあり|危険"),
    True: re.compile(r"(?<!not )\bsafe\b|\bfalse\b|\bno risk\b|\bnot risky\b|いいえ|リスクなし|リスクはありません"),
}
_HEDGE = re.compile(
    r"\A\s*[.,;:、。]?\s*(?:(?:or|and|but|however|(?:al)?though|unless|except|/|\|)(?:\W|\Z)|または|しかし|もしくは|但し|ただし)"
)

_REFUSAL = re.compile(
    r"i(?:'|’)?\s?a?m (?:really |very |so )?sorry|i apologi[sz]e|i (?:cannot|can(?:'|’)t|can not|won(?:'|’)t|will not)"
    r"|i (?:am unable|am not able|must decline)|as an ai\b|unable to (?:assist|help|comply)"
    r"|申し訳|お手伝いできません|お答えできません|対応できません"
    r"|je (?:suis désolé|ne peux pas)|ich kann (?:dabei|das|ihnen)|es tut mir leid",
    re.I,
)
_MARKER = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.M)
_CONFLICT: Final = object()
_JSON_NAMES: Final = {"true": True, "false": False, "null": None}
_LONGEST_LITERAL: Final = 50_000
"""Characters up to which single-quoted objects are read: Python's parser is slow, and a longer reply is no answer."""


def _without_thoughts(text: str) -> str:
    kept, place = [], 0
    while opening := _OPEN.search(text, place):
        kept.append(text[place : opening.start()])
        end = _END.search(text, opening.end())
        place = end.end() if end else len(text)
    answer = "".join(kept) + text[place:]
    orphans = list(_END.finditer(answer))  # the chat template had opened the block
    return answer[orphans[-1].end() :] if orphans else answer


def strip_reasoning(text: str) -> tuple[str, str]:
    """Splits a reply into its answer and its reasoning blocks (`<think>` and its kin).

    Args:
        text: The reply as it came.

    Returns:
        The answer without any reasoning, and the reasoning. A block that never closes leaves no answer: what
        stands in it are drafts. A reply that is one JSON object has no reasoning: tags in it are quoted.
    """
    if text.lstrip().startswith("{") and _load(text.strip()) is not None:
        return text.strip(), ""
    answer = _FINAL_CHANNEL.sub("", text)
    answer = _without_thoughts(answer)
    thought = text if not answer.strip() and answer != text else text.replace(answer, "", 1) if answer != text else ""
    return answer.strip(), thought.strip()


def is_refusal(text: str) -> bool:
    """Tells whether a reply that holds no fields declines the task, in its first 300 characters."""
    return bool(_REFUSAL.search(text[:300]))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        read[key] = value if key not in read or read[key] == value else _CONFLICT
    return read


def _literal(node: ast.expr) -> Any:
    """Returns a Python literal as JSON would be read: `true` and `null` are known, a key stated twice is a conflict."""
    if isinstance(node, ast.Dict):
        if None in node.keys:
            raise ValueError("** is no literal")
        keys = [str(ast.literal_eval(key)) for key in node.keys if key is not None]
        return _unique(list(zip(keys, map(_literal, node.values), strict=True)))
    if isinstance(node, ast.List):
        return [_literal(item) for item in node.elts]
    if isinstance(node, ast.Name) and node.id in _JSON_NAMES:
        return _JSON_NAMES[node.id]
    return ast.literal_eval(node)


def _load(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, strict=False, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        try:
            value = _literal(ast.parse(text, mode="eval").body) if len(text) < _LONGEST_LITERAL else None
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _objects(text: str) -> list[str]:
    """Returns the outermost balanced {...} spans, strings respected."""
    spans, depth, start, quoted, escaped = [], 0, 0, False, False
    for place, sign in enumerate(text):
        if quoted:
            escaped, quoted = (sign == "\\" and not escaped), not (sign == '"' and not escaped)
        elif depth and sign == '"':
            quoted = True
        elif sign == "{":
            start = place if depth == 0 else start
            depth += 1
        elif sign == "}" and depth:
            depth -= 1
            if depth == 0:
                spans.append(text[start : place + 1])
    return spans


def _marked(text: str, names: Sequence[str], material: str) -> dict[str, Any] | None:
    """Reads `[[ ## field ## ]]` sections at line starts, the format of chat-tuned programs."""
    marks = list(_MARKER.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)][: len(marks)]
    own = [(m, end) for m, end in zip(marks, ends, strict=True) if not _quoted(text[m.start() : end], material)]
    pairs = [(mark.group(1), text[mark.end() : end].strip()) for mark, end in own if mark.group(1) in names]
    return _unique(pairs) if pairs else None


def open_section(text: str, names: Sequence[str]) -> str | None:
    """Returns the field in whose marked section a reply ends: where the reply was cut, its text breaks off."""
    marks = list(_MARKER.finditer(text))
    return marks[-1].group(1) if marks and marks[-1].group(1) in names else None


def _quoted(span: str, material: str) -> bool:
    """Tells whether a part of a reply stands in the material, where control sequences are broken."""
    return bool(material) and neutralise(span).strip() in material


def read_fields(text: str, names: Sequence[str], material: str = "") -> dict[str, Any] | None:
    """Finds the reply's fields: one JSON object (bare, fenced or within prose), or marked sections.

    Args:
        text: Reply without reasoning blocks.
        names: Fields that are asked for.
        material: What the LM was shown. An object within prose, or a marked section, that stands in it word for word
            is a quotation, not the LM's own verdict.

    Returns:
        The raw values of the fields found, or None where there is no readable object. A field that is stated twice
        with different values is left out.
    """
    whole = _load(text.strip())
    own = [span for span in _objects(text) if not _quoted(span, material)]
    found = [whole] if whole is not None else [o for o in map(_load, own) if o is not None]
    merged: list[tuple[str, Any]] = []
    for candidate in found:
        inner = candidate
        while len(inner) == 1 and not set(inner) & set(names):
            (only,) = inner.values()  # {"answer": {...}}: a wrapper of the LM's own making
            if not isinstance(only, dict):
                break
            inner = only
        merged.extend((str(key).strip(), value) for key, value in inner.items() if str(key).strip() in names)
    fields = _unique(merged) if merged else _marked(text, names, material)
    if fields is None:
        return None if not found else {}
    return {key: value for key, value in fields.items() if value is not _CONFLICT}


def read_bool(value: Any) -> bool | None:
    """Reads a yes-or-no label in English, Japanese, French, German and other spellings.

    Args:
        value: What stood in the field.

    Returns:
        The label; None for everything else, such as `N/A`, `unknown`, `True or False`, `low risk` or an empty text.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else None
    if not isinstance(value, str):
        return None
    text = unicodedata.normalize("NFKC", value).casefold().strip().strip("*_`'\"“”「」.。!！<>[]() \t\n")
    text = re.sub(r"[*_`\"]", "", text)
    for phrase, meaning in _PHRASES.items():
        if text == phrase or (text.startswith(phrase) and _SET_OFF.match(text[len(phrase) :])):
            return meaning
    match = _LONGEST_LABEL.match(text)
    if match is None:
        return None
    word, rest = match.group(), text[match.end() :]
    label = True if word in _TRUE else False if word in _FALSE else None
    if label is None or _HEDGE.match(rest) or not _SET_OFF.match(rest):
        return None
    if (word in _ALONE and rest.strip()) or _TAKEN_BACK[label].search(rest):
        return None
    return label


def read_text(value: Any) -> str | None:
    """Reads a text field; a list becomes lines, None and blanks are no text."""
    if isinstance(value, (list, tuple)):
        value = "\n".join(str(item) for item in value if str(item).strip())
    elif isinstance(value, Mapping):
        try:
            value = json.dumps(value, ensure_ascii=False, default=lambda _: "stated twice")
        except RecursionError:
            return None
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    # Lone surrogates and NUL can be written as JSON escapes, but no file and no server takes them.
    return value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "").strip() or None


def read_texts(value: Any) -> tuple[str, ...] | None:
    """Reads a list of texts such as `["a", "b"]`, a bulleted or numbered text, or a mapping's values.

    Blank entries and repeats are left out. A text of one line is one entry, whatever commas it holds: names of
    diseases have some. An empty list and the word `none` are an empty tuple; None is no list.
    """
    if isinstance(value, str):
        lines = [re.sub(r"\A\s*(?:[-*•]|\d{1,2}[.)])\s+", "", line) for line in value.splitlines()]
        value = [] if value.strip().casefold().strip(".") in ("", "none", "[]", "n/a", "なし") else lines
    elif isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return None
    texts = [read_text(item) for item in value]
    return tuple(dict.fromkeys(" ".join(text.split()) for text in texts if text))


def read_numbers(value: Any) -> tuple[int, ...] | None:
    """Reads a list of whole numbers such as `[1, 3]`, `"1, 3"` or `["[1]"]`; None where it is no such list.

    An empty list, `none` and `[]` are an empty tuple: nothing was cited.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return (int(value),)
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip().casefold()
        numbers = re.findall(r"(?<![\w.])\d{1,4}(?![\w.]*\d)", text)
        return tuple(map(int, numbers)) if numbers else () if text in ("", "none", "[]", "なし", "n/a") else None
    if isinstance(value, (list, tuple)):
        items = [read_numbers(item) for item in value]
        return tuple(n for item in items if item for n in item) if all(i is not None for i in items) else None
    return None


def read_probability(value: Any) -> float | None:
    """Reads a stated probability in [0, 1]: a number, `"0.8"`, `"80%"`, or `{"noul": 0.8}`; else None.

    10.0, -0.1 and 80 (without a percent sign) are not probabilities, and no guess is made of what was meant.
    """
    if isinstance(value, Mapping):
        value = next((value[k] for k in ("noul", "probability", "value") if k in value), None)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d{1,3}(?:\.\d+)?|\.\d+)\s*(%?)\s*", unicodedata.normalize("NFKC", value))
        if match is None:
            return None
        value = float(match.group(1)) / (100 if match.group(2) else 1)
    if not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= 1 else None
