"""Bytes to text: the encoding is proven by decoding, and refused where two readings are equally likely.

Statistical guessers are not used: on short Japanese tables they name Korean or Chinese encodings for EUC-JP.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import Final

from dspy_mama.core.errors import DataError, DeclarationError, Fault

_BOMS: Final = (
    # UTF-32 LE begins with the mark of UTF-16 LE, so it is asked first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED: Final = {
    # What Excel calls Shift_JIS and Latin-1 are Microsoft's supersets; the narrow codecs fail on 髙 and curly quotes.
    "shift_jis": ("cp932",),
    "euc_jp": ("euc_jp", "euc_jisx0213"),
    "iso8859-1": ("cp1252", "iso8859-1"),
    "utf-8": ("utf-8-sig",),
}
_ACCEPT: Final = 0.9
"""Share of the non-ASCII characters that must be usual for the language of an encoding."""
_LEAD: Final = 0.2
"""How far the best reading must be ahead of the next one."""

_KANA = re.compile(r"[ぁ-ゖァ-ヺー]")
_JAPANESE_SIGNS: Final = frozenset(
    "、。「」『』・！？（）～：；，．％＋－＝＜＞［］【】〈〉《》…　①②③④⑤⑥⑦⑧⑨⑩℃㎎㎏㎝㎡㏄々〇→←↑↓○●◎△▲□■☆★※"
)
_WESTERN_LETTERS: Final = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœŒšžÀÁÂÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÖØÙÚÛÜ")
_WESTERN_SIGNS: Final = frozenset("‘’“”–—…€«»‹›°§·•²³½¼¾±µ®©™×¿¡\u00a0")
_RUN: Final = 3
"""Western text has no three non-ASCII letters in a row; text of another script read as Western has many."""


def decode(data: bytes, name: str, encoding: str | None = None) -> tuple[str, str]:
    """Returns the text of a file and the name of the encoding it was read with.

    Args:
        data: The whole file.
        name: Name of the file, for messages.
        encoding: The encoding to use; None = found from the bytes (UTF-8, UTF-16, UTF-32, ISO-2022-JP, cp932, EUC-JP,
            cp1252).

    Raises:
        DeclarationError: The declared encoding is unknown.
        DataError: The bytes do not decode, or two encodings are equally likely.
    """
    if encoding is not None:
        return _decode_declared(data, name, encoding)
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return _strict(data, name, codec), codec
    if wide := _wide_without_mark(data):
        return _strict(data, name, wide), wide
    if b"\x1b$" in data and data.isascii():
        return _strict(data, name, "iso2022_jp"), "iso2022_jp"
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        if _is_damaged_utf8(data):
            raise _damaged(data, name, "utf-8", error) from None
        return _legacy(data, name, error)


def _decode_declared(data: bytes, name: str, encoding: str) -> tuple[str, str]:
    try:
        canonical = codecs.lookup(encoding).name
    except LookupError:
        raise DeclarationError(
            f"data.encoding: {encoding!r} is not a known encoding; use such as utf-8, cp932, euc_jp, cp1252"
        ) from None
    choices = _DECLARED.get(canonical, (canonical,))
    for codec in choices[:-1]:
        try:
            return data.decode(codec), codec
        except UnicodeDecodeError:
            continue
    return _strict(data, name, choices[-1]), choices[-1]


def _strict(data: bytes, name: str, codec: str) -> str:
    try:
        return data.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _damaged(data, name, codec, error) from None


def _damaged(data: bytes, name: str, codec: str, error: UnicodeDecodeError) -> DataError:
    line = data.count(b"\n", 0, error.start) + 1
    reason = (
        f"byte {error.start} (line {line}) is not {codec} text; export the file again as UTF-8, "
        "or name its encoding in data.encoding"
    )
    return DataError(name, [Fault(None, None, reason)])


def _wide_without_mark(data: bytes) -> str | None:
    """Returns UTF-16's byte order where every other byte is zero as only UTF-16 has it."""
    zeros = data.count(b"\0")
    if len(data) % 2 or zeros * 10 < len(data):
        return None
    odd = data[1::2].count(b"\0")
    if odd >= 0.95 * zeros:
        return "utf-16-le"
    return "utf-16-be" if odd <= 0.05 * zeros else None


def _is_damaged_utf8(data: bytes) -> bool:
    """Tells whether the bytes are UTF-8 but for a few (a file cut in a character, two files glued together)."""
    text = data.decode("utf-8", "replace")
    lost = text.count("\ufffd")
    kept = sum(1 for char in text if ord(char) > 127) - lost
    return kept > 3 * lost


def _legacy(data: bytes, name: str, error: UnicodeDecodeError) -> tuple[str, str]:
    readings: list[tuple[float, str, str]] = []
    for codec, plausibility in (
        ("cp932", _japanese),
        ("euc_jp", _japanese),
        ("euc_jisx0213", _japanese),
        ("cp1252", _western),
    ):
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            continue
        if codec == "euc_jisx0213" and any(found == "euc_jp" for _, found, _ in readings):
            continue
        readings.append((plausibility(text), codec, text))
    readings.sort(key=lambda reading: -reading[0])
    if readings and readings[0][0] >= _ACCEPT and (len(readings) == 1 or readings[0][0] - readings[1][0] >= _LEAD):
        return readings[0][2], readings[0][1]
    likely = " or ".join(codec for score, codec, _ in readings if score >= _ACCEPT)
    line = data.count(b"\n", 0, error.start) + 1
    doubt = f"could be {likely}" if likely else "fits none of UTF-8, UTF-16, cp932 (Shift_JIS), EUC-JP, cp1252"
    reason = (
        f"the text (first seen in line {line}) {doubt}; save it as CSV UTF-8, or name its encoding in data.encoding"
    )
    raise DataError(name, [Fault(None, None, reason)])


def _japanese(text: str) -> float:
    """Returns the share of non-ASCII characters that Japanese text usually has; 0 without kana."""
    foreign = [char for char in text if ord(char) > 127]
    kana = sum(1 for char in foreign if _KANA.match(char))
    if kana * 10 < len(foreign):
        return 0.0
    good = sum(1 for char in foreign if _KANA.match(char) or char in _JAPANESE_SIGNS or _is_common(char))
    return good / len(foreign)


def _is_common(char: str) -> bool:
    """Tells whether a character is a kanji of JIS level 1 (most of running text) or a full-width letter or digit."""
    if unicodedata.east_asian_width(char) == "F":
        return True
    try:
        code = char.encode("euc_jp")
    except UnicodeEncodeError:
        return False
    return len(code) == 2 and 0xB0 <= code[0] <= 0xCF


def _western(text: str) -> float:
    """Returns the share of non-ASCII characters that Western European text usually has, in usual places."""
    foreign = good = run = 0
    for char in text:
        if ord(char) < 128:
            run = 0
            continue
        foreign += 1
        run = run + 1 if char in _WESTERN_LETTERS else 0
        if run < _RUN and (char in _WESTERN_LETTERS or char in _WESTERN_SIGNS):
            good += 1
    return 0.0 if foreign * 4 > len(text) else good / foreign
