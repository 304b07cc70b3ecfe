"""A million pairs scored from two files with intervals: peak memory of the whole process, and its time.

`ratio` is peak resident memory over the 2 GB that it may take.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PAIRS = 1_000_000
LIMIT = 2 << 30

SCORE = """
import json, resource, sys
from dspy_mama.cli import main
code = main(["score", "--gold", sys.argv[1], "--pred", sys.argv[2], "--json", *sys.argv[3:]])
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps({"code": code, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}), file=sys.stderr)
"""


def write_files(folder: Path) -> tuple[Path, Path]:
    """Gold labels, and predictions in another order with a probability of medical risk."""
    rng = np.random.default_rng(1)
    gold = rng.random((PAIRS, 3)) < (0.4, 0.06, 0.14)
    said = np.where(rng.random((PAIRS, 3)) < 0.85, gold, ~gold)
    chance = np.clip(0.25 + 0.5 * said[:, 0] + rng.normal(0, 0.15, PAIRS), 0, 1)
    words = np.array(["FALSE", "TRUE"])
    files = folder / "gold.csv", folder / "pred.csv"
    with files[0].open("w", encoding="utf-8") as stream:
        stream.write("id,medicalRisk,ethicalRisk,legalRisk\n")
        for number, row in enumerate(words[gold.astype(int)]):
            stream.write(f"ja{number},{','.join(row)}\n")
    order = rng.permutation(PAIRS)
    with files[1].open("w", encoding="utf-8") as stream:
        stream.write("id,medicalRisk,ethicalRisk,legalRisk,medical_probability\n")
        for number, row, p in zip(order, words[said[order].astype(int)], chance[order], strict=True):
            stream.write(f"ja{number},{','.join(row)},{p:.6f}\n")
    return files


def main() -> None:
    """Prints one JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        gold, said = write_files(Path(folder))
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", SCORE, str(gold), str(said)], capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - start
    found, facts = json.loads(done.stdout), json.loads(done.stderr.splitlines()[-1])
    low, high = found["domains"]["medical"]["ci95"]["macro_f1"]
    assert facts["code"] == 0
    assert found["n"] == PAIRS
    assert found["resamples"] == 1000
    assert low < found["domains"]["medical"]["macro_f1"] < high
    line = {
        "bench": "large_scoring",
        "ratio": round(facts["peak"] / LIMIT, 3),
        "peak_mib": round(facts["peak"] / 2**20),
        "seconds": round(seconds, 1),
        "pairs": PAIRS,
        "resamples": found["resamples"],
        "medical_macro_f1_ci95": [round(low, 5), round(high, 5)],
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
