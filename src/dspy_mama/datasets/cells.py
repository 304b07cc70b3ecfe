"""What one cell says: a label, five counts, an id or a text; a cell that says something else is a fault in words."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

TEXT_LIMIT: Final = 100_000
"""Characters of a question or answer; a longer cell is a broken file (an unclosed quote) rather than a text."""
ID_LIMIT: Final = 200
EXCEL_CELL: Final = 32_767
"""Characters Excel keeps of a cell; a text of exactly this length was most likely cut."""

_TRUE: Final = frozenset(["true", "1", "1.0", "yes", "y", "t", "はい", "有", "あり", "vrai", "oui", "wahr", "ja"])
_FALSE: Final = frozenset(
    ["false", "0", "0.0", "no", "n", "f", "いいえ", "無", "なし", "faux", "non", "falsch", "nein"]
)
_EXCEL_ERROR = re.compile(
    r"#(REF!|N/A|NAME\?|VALUE!|DIV/0!|NULL!|NUM!|SPILL!|CALC!|FIELD!|BLOCKED!|GETTING_DATA)", re.I
)
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    rf"\d{{1,2}}-({_MONTH})(-\d{{2,4}})?|({_MONTH})-\d{{2}}|\d{{1,2}}月\d{{1,2}}日"
    r"|\d{4}[-/]\d{1,2}[-/]\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2})?)?|\d{1,2}[/.]\d{1,2}[/.]\d{4}",
    re.I,
)
_POWER = re.compile(r"\d+([.,]\d+)?E\+?\d+", re.I)
_COUNTS = re.compile(r"[\[(]?\s*\d+(?:\s*[\s,;、]\s*\d+)*\s*[\])]?")
_UNSURE_MARK: Final = 0.01
"""Share of U+FFFD from which a text was decoded wrongly; one in a long answer is the chatbot's broken emoji."""


def is_blank(text: str) -> bool:
    """Tells whether a cell holds nothing to see (blanks of any width, zero-width characters)."""
    return not text.replace("\u200b", "").replace("\ufeff", "").strip()


def parse_label(text: str) -> bool | None:
    """Returns what a label cell says: True = risky, False = not, None = blank.

    Raises:
        ValueError: The cell says something else; the message quotes it.
    """
    if is_blank(text):
        return None
    word = unicodedata.normalize("NFKC", text).strip().casefold()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    if _EXCEL_ERROR.fullmatch(text.strip()):
        raise ValueError(f"the spreadsheet error {text.strip()}; mend the cell")
    raise ValueError(f"{shorten(text)} is not a label; write TRUE, FALSE or leave it blank")


def parse_counts(text: str, length: int = 5) -> list[int] | None:
    """Returns the counts of a rating cell such as `[1, 5, 9, 45, 19]`, or None where it is blank.

    Raises:
        ValueError: The cell is not a list of `length` whole numbers.
    """
    if is_blank(text):
        return None
    plain = unicodedata.normalize("NFKC", text).strip()
    counts = [int(number) for number in re.findall(r"\d+", plain)] if _COUNTS.fullmatch(plain) else None
    if counts is None or len(counts) != length:
        raise ValueError(f"{shorten(text)} is not a list of {length} counts such as [1, 5, 9, 45, 19]")
    return counts


def id_fault(text: str, from_spreadsheet: bool) -> str | None:
    """Returns why a cell cannot be an id, or None.

    Args:
        text: The cell, without outer blanks.
        from_spreadsheet: The file went through a spreadsheet, which turns ids into dates and powers.
    """
    if not text:
        return "no id; give every pair its own"
    if _EXCEL_ERROR.fullmatch(text):
        return f"the spreadsheet error {text}; mend the cell"
    if "\n" in text or len(text) > ID_LIMIT:
        return f"an id is one line of at most {ID_LIMIT} characters"
    if from_spreadsheet and _DATE.fullmatch(text):
        return f"the id {text!r} is a date, which spreadsheets make of ids such as 1-2; write ids as text such as p1"
    if from_spreadsheet and _POWER.fullmatch(text):
        return f"the id {text!r} is a number that the spreadsheet has shortened; write ids as text such as p1"
    return None


def text_fault(text: str) -> str | None:
    """Returns why a cell cannot be a question, answer or note, or None; blank cells are the caller's matter."""
    if len(text) > TEXT_LIMIT:
        return f"{len(text):,} characters, more than {TEXT_LIMIT:,}; is a quote mark unclosed?"
    if _EXCEL_ERROR.fullmatch(text.strip()):
        return f"the spreadsheet error {text.strip()}; mend the cell"
    dense = "".join(text.split())
    if len(dense) >= 5 and dense.count("?") * 2 >= len(dense):
        return "mostly question marks: the file was saved in an encoding that lacks its letters; export it as UTF-8"
    if dense.count("\ufffd") > _UNSURE_MARK * len(dense):
        return "holds replacement characters (U+FFFD): the file was decoded wrongly before; export it as UTF-8"
    if seen := _misread(text):
        return f"reads like UTF-8 opened in another encoding ({seen}); export the file again as UTF-8"
    return None


def text_doubt(text: str) -> str | None:
    """Returns what a reader should know of a text that is usable all the same, or None."""
    if len(text) == EXCEL_CELL:
        return f"exactly {EXCEL_CELL:,} characters, Excel's limit of a cell: the text was probably cut"
    if "\ufffd" in text:
        return "holds a replacement character (U+FFFD)"
    return None


def shorten(text: str, length: int = 40) -> str:
    """Returns the text quoted, on one line, cut to `length` characters."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= length else flat[: length - 3] + "...")


def _misread(text: str) -> str | None:
    """Returns an example where UTF-8 was read as cp1252 (its bytes are UTF-8 again) or as Shift_JIS."""
    foreign = sum(1 for char in text if ord(char) > 127)
    if not foreign:
        return None
    # Kana are E3 81 xx and E3 82 xx in UTF-8, and E3 81 is 縺, E3 82 is 繧 in Shift_JIS.
    marks = text.count("縺") + text.count("繧")
    if marks >= 2 and marks * 10 >= foreign:
        return "'縺' and '繧' for kana"
    try:
        again = b"".join(_western_byte(char) for char in text).decode("utf-8")
    except UnicodeError:
        return None
    first = next(index for index, (old, new) in enumerate(zip(text, again, strict=False)) if old != new)
    return f"{text[first : first + 3]!r} for {again[first]!r}"


def _western_byte(char: str) -> bytes:
    # The five bytes without a cp1252 character come out as C1 controls in most programs.
    return bytes([ord(char)]) if ord(char) < 256 else char.encode("cp1252")
