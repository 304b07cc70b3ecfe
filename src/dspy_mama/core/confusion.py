"""Two-class confusion tables as arrays: one formula serves a single table and a thousand resampled ones.

A pair is one of four codes (true positive, false positive, false negative, true negative; positive = risky) or
excluded, because its gold label or its verdict is missing. Counts lie on the last axis in the order of the codes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

TP: Final = 0
FP: Final = 1
FN: Final = 2
TN: Final = 3
EXCLUDED: Final = -1

METRICS: Final = ("macro_f1", "accuracy", "precision", "recall")
"""The metrics every table shows; precision and recall are the mean over both classes, as in the paper's tables."""

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]


def confusion_codes(gold: npt.NDArray[np.int8], predicted: npt.NDArray[np.int8]) -> Codes:
    """Returns the code of each pair.

    Args:
        gold: 1 risky, 0 safe, -1 missing; any shape.
        predicted: The same for the verdicts.
    """
    codes = np.where(gold == 1, np.where(predicted == 1, TP, FN), np.where(predicted == 1, FP, TN))
    return np.where((gold < 0) | (predicted < 0), EXCLUDED, codes).astype(np.int8)


def confusion_counts(codes: Codes) -> npt.NDArray[np.int64]:
    """Returns counts of shape (columns, 4) from codes of shape (pairs, columns)."""
    return np.stack([(codes == code).sum(axis=0) for code in (TP, FP, FN, TN)], axis=-1).astype(np.int64)


def _ratio(numerator: Floats, denominator: Floats, empty: npt.NDArray[np.bool_]) -> Floats:
    """Divides; 0 where a class is absent (scikit-learn's `zero_division=0`), NaN where there is no pair at all."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    out[empty] = np.nan
    return out


def confusion_metrics(counts: npt.NDArray[Any]) -> dict[str, Floats]:
    """Returns each metric, in [0, 1], for every table.

    The values equal scikit-learn's with `labels=[False, True], zero_division=0`: both classes always count, a class
    that is absent counts 0. Macro-F1 is the mean of the two class F1s, not the harmonic mean of macro precision
    and macro recall.

    Args:
        counts: Shape (..., 4), in the order tp, fp, fn, tn.

    Returns:
        Arrays of shape (...): those of `METRICS`, and `precision`, `recall` and `f1` with the suffixes `_risky` and
        `_safe`. NaN where a table is empty.
    """
    tp, fp, fn, tn = (counts[..., code].astype(np.float64) for code in (TP, FP, FN, TN))
    n = tp + fp + fn + tn
    empty = n == 0
    out = {"accuracy": _ratio(tp + tn, n, empty)}
    for name, hit in (("risky", tp), ("safe", tn)):
        wrongly_given, missed = (fp, fn) if name == "risky" else (fn, fp)
        out[f"precision_{name}"] = _ratio(hit, hit + wrongly_given, empty)
        out[f"recall_{name}"] = _ratio(hit, hit + missed, empty)
        out[f"f1_{name}"] = _ratio(2 * hit, 2 * hit + fp + fn, empty)
    for name, part in (("macro_f1", "f1"), ("precision", "precision"), ("recall", "recall")):
        out[name] = (out[f"{part}_risky"] + out[f"{part}_safe"]) / 2
    return out


def one_class(counts: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Says for every table whether its gold labels hold fewer than two classes."""
    no_risky = counts[..., TP] + counts[..., FN] == 0
    no_safe = counts[..., FP] + counts[..., TN] == 0
    return np.asarray(no_risky | no_safe, dtype=np.bool_)
