"""Where an audit is wrong: by phase and domain, in common with other runs, repaired or newly made, and for whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np

from dspy_mama.core import DOMAINS, DeclarationError, Domain
from dspy_mama.core.confusion import EXCLUDED, FN, FP, Codes
from dspy_mama.core.ids import object_hash
from dspy_mama.scoring import Labels, labels_from_records, phases_run
from dspy_mama.scoring.labels import LabelSource
from dspy_mama.systems.audit import ErrorKind

Record = Mapping[str, Any]
Runs = Mapping[str, Sequence[Record]]
Key = tuple[str, int]
"""Id and repeat of a pair."""

KINDS: Final[dict[ErrorKind, int]] = {"false_positive": FP, "false_negative": FN}
SHORT: Final[dict[ErrorKind, str]] = {"false_positive": "fp", "false_negative": "fn"}
QUARTERS: Final = ("1 (shortest quarter)", "2", "3", "4 (longest quarter)")


@dataclass(frozen=True, slots=True)
class ErrorCase:
    """One pair that a run's final verdict got wrong in one domain.

    Attributes:
        item: Stable name of the case: the same pair, domain and kind of error have it in every run.
        domain: The domain.
        kind: Which way the verdict was wrong.
        runs: Runs that err so, in the order given.
        common: Whether all runs do that judged the pair (and there are several).
        record: The first such record.
    """

    item: str
    domain: Domain
    kind: ErrorKind
    runs: tuple[str, ...]
    common: bool
    record: Record


def _keys(labels: Labels) -> list[Key]:
    keys = list(zip(labels.ids, labels.repeats.tolist(), strict=True))
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DeclarationError(f"pair {twice[0]!r} stands twice in one run; ids must be unique within a run")
    return keys


def _shown(key: Key) -> str:
    return key[0] if key[1] == 0 else f"{key[0]} (repeat {key[1]})"


def _phase_codes(records: Sequence[Record]) -> tuple[list[Key], dict[str, Codes]]:
    """Returns the pairs, and per phase (and `final`) their codes of shape (pairs, domains)."""
    codes: dict[str, Codes] = {}
    keys: list[Key] = []
    for phase in (*phases_run(records), "final"):
        labels = labels_from_records(records, cast("LabelSource", phase))
        keys = keys or _keys(labels)
        codes[phase] = labels.codes()[:, : len(DOMAINS)]
    return keys, codes


def _wrong(codes: Codes) -> Codes:
    return np.asarray((codes == FP) | (codes == FN))


def _pick(keys: Sequence[Key], mask: Any) -> list[str]:
    return [_shown(keys[row]) for row in np.flatnonzero(mask).tolist()]


def _errors(keys: Sequence[Key], codes: Codes, records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    for column, domain in enumerate(DOMAINS):
        own = codes[:, column]
        has_gold = np.array([(record.get("gold") or {}).get(domain) is not None for record in records], dtype=np.bool_)
        out[domain] = {
            "n": int((own != EXCLUDED).sum()),
            **{SHORT[kind]: _pick(keys, own == code) for kind, code in KINDS.items()},
            "unscored": _pick(keys, (own == EXCLUDED) & has_gold),
        }
    return out


def _steps(keys: Sequence[Key], codes: Mapping[str, Codes], phases: Sequence[str]) -> dict[str, Any]:
    """Says of each phase what it repaired and what it newly broke of the phase before."""
    steps = list(pairwise(phases)) + ([(phases[0], phases[-1])] if len(phases) > 2 else [])
    out: dict[str, Any] = {}
    for first, second in steps:
        before, after = codes[first], codes[second]
        both = (before != EXCLUDED) & (after != EXCLUDED)
        was, now = _wrong(before), _wrong(after)
        out[f"{first}->{second}"] = {
            domain: {
                "n": int(both[:, column].sum()),
                "repaired": _pick(keys, (both & was & ~now)[:, column]),
                "broken": _pick(keys, (both & ~was & now)[:, column]),
                "still_wrong": _pick(keys, (both & was & now)[:, column]),
                "still_right": int((both & ~was & ~now)[:, column].sum()),
            }
            for column, domain in enumerate(DOMAINS)
        }
    return out


def _paths(keys: Sequence[Key], codes: Mapping[str, Codes], phases: Sequence[str]) -> dict[str, Any]:
    """Follows each pair through the phases: `wrong > right > wrong` was repaired by MA2 and broken again by MA3."""
    out: dict[str, Any] = {}
    for column, domain in enumerate(DOMAINS):
        found: dict[str, list[str]] = {}
        for row, key in enumerate(keys):
            own = [int(codes[phase][row, column]) for phase in phases]
            if all(code == EXCLUDED for code in own):
                continue
            words = ["unscored" if c == EXCLUDED else "wrong" if c in (FP, FN) else "right" for c in own]
            found.setdefault(" > ".join(words), []).append(_shown(key))
        ordered = sorted(found.items(), key=lambda item: -len(item[1]))
        out[domain] = {path: {"n": len(ids), "ids": ids} for path, ids in ordered}
    return out


def _quarter_of_length(records: Sequence[Record]) -> list[str]:
    """Returns each answer's quarter of length among the answers in its language: scripts differ in density."""
    lengths = [len(record["answer"]) if record.get("answer") is not None else -1 for record in records]
    languages = [str(record.get("language") or "unknown") for record in records]
    peers: dict[str, list[int]] = {}
    for length, language in zip(lengths, languages, strict=True):
        peers.setdefault(language, []).extend([length] if length >= 0 else [])
    cuts = {language: np.percentile(known, [25, 50, 75]) for language, known in peers.items() if known}
    return [
        QUARTERS[int(np.searchsorted(cuts[language], length))] if length >= 0 else "unknown"
        for length, language in zip(lengths, languages, strict=True)
    ]


_GROUPS: Final[dict[str, Callable[[Sequence[Record]], list[str]]]] = {
    "specialty": lambda records: [str((r.get("routing") or {}).get("specialty") or "unknown") for r in records],
    "language": lambda records: [str(record.get("language") or "unknown") for record in records],
    "answer_length": _quarter_of_length,
}
"""How pairs are grouped."""


def _groups(records: Sequence[Record], codes: Codes) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value_of in _GROUPS.items():
        values = np.array(value_of(records))
        out[name] = {}
        for value in sorted(set(values.tolist())):
            own = codes[values == value]
            out[name][value] = {"pairs": len(own)} | {
                domain: _counts(own[:, column]) for column, domain in enumerate(DOMAINS)
            }
    return out


def _counts(codes: Codes) -> dict[str, Any]:
    n, fp, fn = (int(count) for count in ((codes != EXCLUDED).sum(), (codes == FP).sum(), (codes == FN).sum()))
    return {"n": n, "fp": fp, "fn": fn, "error_rate": (fp + fn) / n if n else None}


def _common(coded: Mapping[str, tuple[list[Key], dict[str, Codes]]]) -> dict[str, Any] | None:
    """Finds the errors that all runs share, on the pairs that all of them scored."""
    if len(coded) < 2:
        return None
    phases = [p for p in next(iter(coded.values()))[1] if all(p in codes for _, codes in coded.values())]
    out: dict[str, Any] = {}
    for phase in phases:
        out[phase] = {}
        for column, domain in enumerate(DOMAINS):
            tables = [dict(zip(keys, codes[phase][:, column].tolist(), strict=True)) for keys, codes in coded.values()]
            shared = [key for key in tables[0] if all(table.get(key, EXCLUDED) != EXCLUDED for table in tables)]
            out[phase][domain] = {"n": len(shared)} | {
                SHORT[kind]: [_shown(key) for key in shared if all(table[key] == code for table in tables)]
                for kind, code in KINDS.items()
            }
    return out


def _check_gold(runs: Runs) -> None:
    gold: dict[tuple[str, str], tuple[bool, str]] = {}
    for name, records in runs.items():
        for record in records:
            for domain in DOMAINS:
                label = (record.get("gold") or {}).get(domain)
                if label is None:
                    continue
                known, where = gold.setdefault((str(record["id"]), domain), (label, name))
                if known != label:
                    raise DeclarationError(
                        f"the {domain} gold label of pair {record['id']!r} differs between {where} and {name}"
                    )


def analyse_errors(runs: Runs) -> dict[str, Any]:
    """Finds the errors of one or more runs.

    Args:
        runs: Records by the run's name.

    Returns:
        Plain data. `runs`: per run `phases` (per phase and domain `n`, ids of `fp`, `fn` and `unscored`), `steps` (per
        `first->second` what was `repaired`, `broken`, `still_wrong`), `paths` (right and wrong through the phases) and
        `groups` (errors of the final verdict by specialty, language and length of answer, in quarters within each
        language). `common`: per phase and domain the errors of all runs; None with a single run.

    Raises:
        DeclarationError: No pair has a gold label, gold labels of the runs contradict, or a pair stands twice in a run.
    """
    _check_gold(runs)
    coded = {name: _phase_codes(records) for name, records in runs.items()}
    if not any(map(_has_gold, runs.values())):
        raise DeclarationError("no pair of these runs has a gold label: without gold there is no telling what is wrong")
    out: dict[str, Any] = {}
    for name, (keys, codes) in coded.items():
        phases = [phase for phase in codes if phase != "final"]
        out[name] = {
            "n": len(keys),
            "phases": {phase: _errors(keys, own, runs[name]) for phase, own in codes.items()},
            "steps": _steps(keys, codes, phases),
            "paths": _paths(keys, codes, phases),
            "groups": _groups(runs[name], codes["final"]),
        }
    return {"runs": out, "common": _common(coded)}


def _has_gold(records: Sequence[Record]) -> bool:
    return any(label is not None for record in records for label in (record.get("gold") or {}).values())


def error_cases(runs: Runs, *, domains: Sequence[Domain] = DOMAINS, common: bool = False) -> tuple[ErrorCase, ...]:
    """Returns what the final verdicts got wrong, one case per pair, domain and kind, in the order of the data.

    Args:
        runs: Records by the run's name.
        domains: Domains to look at.
        common: Only errors of all runs that judged the pair; needs several runs.

    Raises:
        DeclarationError: Gold labels of the runs contradict, or errors in common are asked of a single run.
    """
    if common and len(runs) < 2:
        raise DeclarationError("errors in common need at least two runs")
    _check_gold(runs)
    found: dict[str, tuple[Domain, ErrorKind, dict[str, Record]]] = {}
    judged: dict[tuple[str, str], set[str]] = {}
    for name, records in runs.items():
        _, codes = _phase_codes(records)
        for record, row in zip(records, codes["final"].tolist(), strict=True):
            for domain, code in zip(DOMAINS, row, strict=True):
                if code == EXCLUDED or domain not in domains:
                    continue
                judged.setdefault((str(record["id"]), domain), set()).add(name)
                for kind, wrong in KINDS.items():
                    if code == wrong:
                        where = found.setdefault(_item(record, domain, kind), (domain, kind, {}))[2]
                        where.setdefault(name, record)
    cases = []
    for item, (domain, kind, where) in found.items():
        record = next(iter(where.values()))
        everywhere = len(runs) > 1 and set(where) == judged[str(record["id"]), domain]
        if everywhere or not common:
            cases.append(ErrorCase(item, domain, kind, tuple(where), everywhere, record))
    return tuple(cases)


def _item(record: Record, domain: str, kind: str) -> str:
    # The prefix keeps spreadsheets from reading hex digits as a number.
    texts = [record.get("question"), record.get("answer")]
    return "err-" + object_hash([str(record["id"]), *texts, domain, kind], 12)
