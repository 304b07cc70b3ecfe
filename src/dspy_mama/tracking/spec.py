"""Which settings make two runs the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dspy_mama.core.ids import object_hash
from dspy_mama.tracking.scrub import scrub

_WITHOUT_EFFECT: Final = frozenset(
    {"threads", "timeout", "num_retries", "requests_per_minute", "max_concurrency", "price_input", "price_output"}
)
"""Settings of an LM that change how fast or dear a run is, not what it says."""


def spec_hash(spec: Mapping[str, Any]) -> str:
    """Returns a hash of everything in a spec that can change a run's records.

    Left out are `runtime`, `tracking` (but for `store_text`), how intervals are made, and limits, prices
    and threads of the LMs and the embedder.

    Args:
        spec: Settings as plain data, a `name`, and whatever else the records depend on (data and
            prompt hashes, for one).
    """
    plain: dict[str, Any] = scrub(spec)
    plain.pop("runtime", None)
    plain["tracking"] = {"store_text": (plain.get("tracking") or {}).get("store_text", True)}
    if isinstance(experiment := plain.get("experiment"), dict):
        for name in ("resamples", "interval", "cluster_by_question"):
            experiment.pop(name, None)
    if isinstance(embedder := plain.get("embedder"), dict):
        embedder.pop("cache", None)
    for group in ("lm", "embedder"):
        plain[group] = _without(plain.get(group), _WITHOUT_EFFECT)
    return object_hash(plain)


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    return value
