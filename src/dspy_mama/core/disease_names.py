"""One spelling for the many spellings of a disease's name, so that equal names are counted as equal.

It joins spellings, not synonyms: "BWS" and "Beckwith-Wiedemann syndrome" stay two names.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_BRACKETS = re.compile(r"[(\[（][^()\[\]（）]*[)\]）]")
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")
_DOUBT: Final = frozenset(
    ("a", "an", "the", "possible", "possibly", "probable", "probably", "likely", "suspected", "presumed", "most")
)
_KIND: Final = frozenset(("syndrome", "syndromes", "disease", "diseases", "disorder", "disorders"))
_TWO_DISEASES: Final = frozenset(("cushing", "cushings"))
"""Names that mean one disease with "syndrome" and another with "disease"."""

_BRITISH: Final = (
    ("haem", "hem"), ("aemi", "emi"), ("anaem", "anem"), ("oedem", "edem"), ("oesoph", "esoph"), ("paed", "ped"),
    ("gynaec", "gynec"), ("tumour", "tumor"), ("coeliac", "celiac"), ("aetiol", "etiol"), ("caec", "cec"),
)  # fmt: skip
_ROMAN: Final = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8"}


def normalise_disease(name: str) -> str:
    """Returns the form under which names of one spelling family meet.

    Case, accents, punctuation, hyphens, possessives, text in brackets, words of doubt in front ("probable") and
    British spelling do not count; Roman numerals after "type", "stage", "grade" or at the end are digits; a last word
    "syndrome", "disease" or "disorder" is dropped, where something is left.

    Args:
        name: Name of a disease as somebody wrote it.

    Returns:
        Its normal form; "" where the name holds no word.
    """
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name)).casefold()
    text = "".join(sign for sign in text if not unicodedata.combining(sign))
    bare = _BRACKETS.sub(" ", text)
    text = _POSSESSIVE.sub("", bare if _WORD.search(bare) else text)
    words = [_american(word) for word in _WORD.findall(text)]
    while len(words) > 1 and words[0] in _DOUBT:  # only in front: hemophilia A is not hemophilia
        words.pop(0)
    for place, word in enumerate(words):
        numbered = place == len(words) - 1 or words[place - 1] in ("type", "stage", "grade", "class")
        if place and numbered:
            words[place] = _ROMAN.get(word, word)
    while len(words) > 1 and words[-1] in _KIND and words[-2] not in _TWO_DISEASES:
        words.pop()
    return " ".join(words)


def _american(word: str) -> str:
    for british, american in _BRITISH:
        word = word.replace(british, american)
    return word
