"""A program as one JSON file: prompts, demonstrations and thresholds, with what they were made from.

Demonstrations are data: they hold texts of the pairs that they were taken from, and instructions that an LM wrote may
paraphrase some. The file says so, and `demos="strip"` or `"refuse"` keeps them out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import object_hash
from dspy_mama.lm.hosts import host_of
from dspy_mama.optimize.artifact_hashes import content_hash, prompt_hashes
from dspy_mama.optimize.artifact_kinds import kind_of
from dspy_mama.settings import to_mapping

FORMAT: Final = 2
"""2: settings under one key, hashes, hosts of LMs, and what is known of demonstrations."""

Demos = Literal["keep", "strip", "refuse"]


def program_state(program: Any, *, origin: Mapping[str, Any] | None = None, demos: Demos = "keep") -> dict[str, Any]:
    """Returns a program as plain data; LMs are kept by name alone, never with address or key.

    Args:
        program: A program made from settings.
        origin: What it was made from, as plain data without texts: `optimizer` (settings), `data` (hash per split),
            `evidence` (`Retriever.describe()`), `validation` (figures); None = that of the file it was loaded from.
        demos: `keep` demonstrations; `strip` leaves them out, and what is left does not load; `refuse` a program
            that has any.

    Raises:
        DeclarationError: The program was not made from settings, so that nothing could rebuild it; or it has
            demonstrations, and they are refused.
    """
    kind = kind_of(program)
    groups = kind.settings(program)
    if groups is None:
        raise DeclarationError("this program was composed by hand; only programs made by from_preset can be saved")
    state = _state(program)
    shown = {name: len(part["demos"]) for name, part in state.items() if part["demos"]}
    if shown and demos == "refuse":
        raise DeclarationError(
            f"demonstrations hold texts of the pairs they were taken from ({_told(shown)}), and tracking.store_text="
            "false keeps texts out: allow them, or choose an optimizer without demonstrations"
        )
    if demos == "strip":
        state = {name: {**part, "demos": []} for name, part in state.items()}
    document: dict[str, Any] = {
        "kind": kind.name,
        "format": FORMAT,
        "versions": {name: metadata.version(name) for name in ("dspy-mama", "dspy")},
        "settings": {name: to_mapping(group) for name, group in groups.items()},
        "thresholds": dict(getattr(program, "thresholds", {})),
        "lms": _lms(program),
        "demonstrations": {"count": shown, "kept": demos != "strip", "texts": bool(shown) and demos != "strip"},
        "origin": dict(getattr(program, "origin", {}) if origin is None else origin),
        "hashes": {
            "prompts": prompt_hashes(program),
            "uncompiled": prompt_hashes(_uncompiled(kind, groups, program)),
            "criteria": object_hash(kind.criteria(groups), 16),
        },
        "state": state,
    }
    document = json.loads(json.dumps(document, ensure_ascii=False, default=str))
    document["hashes"]["content"] = content_hash(document)
    return document


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


def _uncompiled(kind: Any, groups: Mapping[str, Any], program: Any) -> Any:
    """Returns the program as its settings make it: what an optimiser started from."""
    return kind.build(groups, getattr(program, "retriever", None))


def _state(program: Any) -> dict[str, Any]:
    """Returns prompts, demonstrations and cuts by predictor.

    An LM is an address, a key's name or a live engine, traces and training sets are pairs: none belongs into a file.
    """
    parts: dict[str, Any] = {}
    for name, predictor in program.named_predictors():
        part = predictor.reset_copy()
        part.lm, part.demos, part.fields = None, predictor.demos, predictor.fields
        part.signature = predictor.signature
        state = part.dump_state(json_mode=True)
        parts[name] = {key: state[key] for key in ("signature", "demos", "fields") if key in state}
    return parts


def _lms(program: Any) -> dict[str, dict[str, str]]:
    lms: dict[str, dict[str, str]] = {}
    for name, predictor in program.named_predictors():
        lm, role = predictor.lm or dspy.settings.lm, getattr(predictor, "role", name)
        if lm is not None and lms.get(role, {}).get("host") != "local":
            lms[role] = {"model": str(lm.model), "host": host_of(lm)}
    return lms


def save_program(
    program: Any, path: str | Path, *, origin: Mapping[str, Any] | None = None, demos: Demos = "keep"
) -> Path:
    """Writes a program to a JSON file and returns its path.

    Args:
        program: A program made from settings.
        path: The file.
        origin: See `program_state`.
        demos: See `program_state`.

    Raises:
        DeclarationError: The program cannot be saved, or the file cannot be written.
    """
    return write_state(program_state(program, origin=origin, demos=demos), path)


def write_state(document: Mapping[str, Any], path: str | Path) -> Path:
    """Writes what `program_state` returned to a file, whole or not at all.

    Raises:
        DeclarationError: The file cannot be written.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(target.suffix + ".part")
        text = json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True)
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        raise DeclarationError(f"{target}: cannot be written ({error})") from error
    return target
