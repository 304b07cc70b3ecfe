"""What `import dspy_mama` adds to `import dspy`, and what the whole public face adds, each in fresh processes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

ROUNDS = 7
ADDED = (
    "import time; a = time.perf_counter(); import dspy; b = time.perf_counter(); {statement}; c = time.perf_counter(); "
    "print(b - a, c - b)"
)


def added(statement: str) -> tuple[float, float]:
    """Returns median seconds of importing dspy, and of the statement after it."""
    pairs = []
    for _ in range(ROUNDS):
        code = ADDED.format(statement=statement)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        pairs.append(tuple(map(float, done.stdout.split())))
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def main() -> None:
    """Prints one JSON line; `ratio` is the added time over that of dspy alone."""
    base, package = added("import dspy_mama")
    _, face = added("from dspy_mama import RiskAuditor, load_program, embedded_lm")
    line = {
        "bench": "import_time",
        "ratio": round(package / base, 4),
        "dspy_seconds": round(base, 3),
        "added_seconds": round(package, 4),
        "public_face_added_seconds": round(face, 3),
        "rounds": ROUNDS,
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
