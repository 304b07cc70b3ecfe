"""How several answers become one: groups of equal votes, the majority, and lists merged by votes. No LM."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

Normaliser = Callable[[str], str]


def same_text(text: str) -> str:
    """Returns the form under which texts count as equal: width, case, blanks and outer punctuation do not matter."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" .,;:!?\"'()[]")


def groups(votes: Sequence[Any], key: Callable[[Any], Hashable]) -> list[int | None]:
    """Returns per vote the place of the first vote with the same key; None where there is no vote or no key."""
    first: dict[Hashable, int] = {}
    found: list[int | None] = []
    for place, vote in enumerate(votes):
        form = None if vote is None else key(vote)
        found.append(None if form in (None, "") else first.setdefault(form, place))
    return found


def merge(found: Sequence[int | None], synonyms: Sequence[tuple[int, int]]) -> list[int | None]:
    """Joins groups that mean the same.

    Args:
        found: Group per vote.
        synonyms: Pairs of groups; the later of two joins the earlier.
    """
    roots = {group: group for group in found if group is not None}

    def root(group: int) -> int:
        while roots[group] != group:
            group = roots[group]
        return group

    for left, right in synonyms:
        one, other = sorted((root(left), root(right)))
        roots[other] = one
    return [None if group is None else root(group) for group in found]


def majority(found: Sequence[int | None]) -> int | None:
    """Returns the largest group; of equally large ones the one that was named first. None without any vote."""
    counted = Counter(group for group in found if group is not None)
    return min(counted, key=lambda group: (-counted[group], group)) if counted else None


def pooled(lists: Sequence[Sequence[str]], key: Normaliser, limit: int) -> tuple[str, ...]:
    """Merges lists: entries that more lists name come first, ties in the order in which they were first named."""
    shown: dict[str, str] = {}
    counted: Counter[str] = Counter()
    for entries in lists:
        forms = dict.fromkeys(key(entry) for entry in entries)
        for entry in entries:
            shown.setdefault(key(entry), entry)
        counted.update(form for form in forms if form)
    order = {form: place for place, form in enumerate(shown)}
    ranked = sorted(counted, key=lambda form: (-counted[form], order[form]))
    return tuple(shown[form] for form in ranked[:limit])
