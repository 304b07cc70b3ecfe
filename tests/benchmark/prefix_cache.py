"""Share of an audit's prompt tokens that the embedded server takes from its prefix cache, over the bundled pairs."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import time
from pathlib import Path
from typing import Any

from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.index import ensure_shipped_index
from dspy_mama.wiring.study import run_study

PAIRS = 8


def measure(folder: Path) -> dict[str, Any]:
    """Audits some pairs with the full system and returns the share."""
    settings = compose(
        [
            f"data.limit={PAIRS}",
            f"tracking.root={folder / 'mlruns'}",
            "tracking=none",
            f"retriever.path={folder / 'index'}",
            "runtime.progress=false",
        ]
    )
    ensure_shipped_index(settings)
    began, cpu = time.perf_counter(), time.process_time()
    result = asyncio.run(run_study(settings, verb="bench"))
    usage = result.summary["usage"]["total"]
    return {
        "bench": "prefix_cache",
        "ratio": round(usage["cached_tokens"] / usage["prompt_tokens"], 3),
        "prompt_tokens": usage["prompt_tokens"],
        "cached_tokens": usage["cached_tokens"],
        "calls": usage["calls"],
        "pairs": PAIRS,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds_per_call": round((time.process_time() - cpu) / usage["calls"], 2),
        "unscored_rate": result.unscored.rate,
    }


def main() -> None:
    """Prints one JSON line."""
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder))), flush=True)


if __name__ == "__main__":
    main()
