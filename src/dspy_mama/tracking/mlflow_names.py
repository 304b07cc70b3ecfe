"""What MLflow accepts as names and values, and how ours are brought into that form without losing any."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dspy_mama.core.ids import content_hash

NAME_LIMIT: Final = 250
VALUE_LIMIT: Final = 500
"""Characters of a parameter or tag that stay readable in the UI. MLflow cuts at 6,000 (8,000) without a word."""

_WORDS: Final = {"+": "_plus_", "@": "_at_", "%": "_percent_", "&": "_and_", "<": "_lt_", ">": "_gt_", "=": "_eq_"}


def slug(name: str) -> str:
    """Returns the name in MLflow's alphabet: `recall@5` becomes `recall_at_5`, `f1(medical)` becomes `f1_medical`.

    `/` groups metrics in the UI and is kept between parts.
    """
    spelt = "".join(_WORDS.get(sign, sign) for sign in name)
    parts = [_part(part) for part in spelt.split("/")]
    return "/".join(part for part in parts if part)[:NAME_LIMIT].rstrip("/") or "unnamed"


def _part(text: str) -> str:
    cleaned = re.sub(r"[^\w.-]+", "_", text)
    joined = re.sub(r"_{2,}", "_", cleaned).strip("_")
    return "" if set(joined) <= {"."} else joined  # `.` and `..` would be read as folders


class SlugMap:
    """Gives each name a slug of its own and remembers which was which."""

    def __init__(self) -> None:
        self._slugs: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        """Returns the name's slug; two names never share one."""
        if name not in self._slugs:
            candidate = slug(name)
            if self._owners.get(candidate, name) != name:
                candidate = f"{candidate[: NAME_LIMIT - 9]}_{content_hash(name, 8)}"
            self._slugs[name] = candidate
            self._owners[candidate] = name
        return self._slugs[name]

    @property
    def changed(self) -> dict[str, str]:
        """Slug -> name, where the two differ."""
        return {new: name for name, new in self._slugs.items() if new != name}


def usable(metrics: Mapping[str, float | None]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Parts metrics into numbers and the names of those without one (None, NaN and infinity are no numbers)."""
    kept = {name: float(value) for name, value in metrics.items() if value is not None and math.isfinite(value)}
    return kept, tuple(name for name in metrics if name not in kept)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Returns nested settings as dotted names with text values; lists and empty groups become JSON."""
    flat: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return flat


def shorten(values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Parts values into those that fit and the long ones, which leave their hash behind.

    Returns:
        The values to log as they are, and the full text of the long ones by file name.
    """
    short, files = {}, {}
    for name, value in values.items():
        short[name] = value
        if len(value) > VALUE_LIMIT:
            file = f"{slug(name).replace('/', '.')}.txt"
            files[file] = value
            short[name] = f"sha256:{content_hash(value)} (whole text: artifact long_values/{file})"
    return short, files


def batches(items: Iterable[Any], size: int) -> Iterable[list[Any]]:
    """Yields the items in lists of at most `size`: one MLflow request takes 100 parameters or tags, 1,000 metrics."""
    rows = list(items)
    return (rows[start : start + size] for start in range(0, len(rows), size))
