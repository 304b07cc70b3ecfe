"""What optimisation changed in a program: prompts, demonstrations and cuts, as data and as a unified diff."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.errors import DeclarationError
from dspy_mama.optimize.artifact import program_state
from dspy_mama.optimize.artifact_kinds import KINDS
from dspy_mama.optimize.artifact_loading import program_file, program_groups, read_artifact

_SENTENCE: Final = re.compile(r"(?<=[.!?])[ \t]+|(?<=[。！？])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_CONTEXT: Final = 2


@dataclass(frozen=True, slots=True)
class ProgramDiff:
    r"""How one program differs from another.

    Attributes:
        predictors: Per predictor that differs: `instructions`, `fields` and `cuts` as `{"before", "after"}`, and
            `demonstrations` as `{"before": n, "after": n, "added": [...], "removed": [...]}`; only what differs.
        thresholds: Per domain `{"before", "after"}`; None = the label as written.
        settings: Per dotted setting `{"before", "after"}`.
        text: The same as a unified diff, a sentence a line; control characters are shown as `\\xNN`.
    """

    predictors: Mapping[str, Mapping[str, Any]]
    thresholds: Mapping[str, Mapping[str, float | None]]
    settings: Mapping[str, Mapping[str, Any]]
    text: str

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.predictors or self.thresholds or self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Returns the difference as plain data."""
        parts = {"predictors": self.predictors, "thresholds": self.thresholds, "settings": self.settings}
        return {"changed": not self.empty, **{name: dict(part) for name, part in parts.items()}}


def diff_states(
    before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str] = ("uncompiled", "compiled")
) -> ProgramDiff:
    """Compares two programs as `program_state` returns them.

    Args:
        before: The one.
        after: The other.
        names: What they are called in the text.

    Raises:
        DeclarationError: They are programs of different kinds.
    """
    if before["kind"] != after["kind"]:
        raise DeclarationError(f"a {before['kind']} and a {after['kind']} have nothing to compare")
    predictors, texts = {}, []
    for name in dict.fromkeys([*before["state"], *after["state"]]):
        old, new = before["state"].get(name, {}), after["state"].get(name, {})
        if changed := _predictor(old, new):
            predictors[name] = changed
            texts.append(_unified(_lines(old), _lines(new), name, names))
    thresholds = _changes(before["thresholds"], after["thresholds"])
    settings = _changes(_flat(before["settings"]), _flat(after["settings"]))
    for title, part in (("thresholds", thresholds), ("settings", settings)):
        old_lines, new_lines = (
            [f"{name}: {_cut(values[side])}" for name, values in part.items()] for side in ("before", "after")
        )
        texts.append(_unified(old_lines, new_lines, title, names))
    return ProgramDiff(predictors, thresholds, settings, "".join(texts))


def _cut(value: Any) -> str:
    return "as written" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    names = dict.fromkeys([*before, *after])
    return {
        name: {"before": before.get(name), "after": after.get(name)}
        for name in names
        if before.get(name) != after.get(name)
    }


def _predictor(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what differs in one predictor; {} where nothing does."""
    found: dict[str, Any] = {}
    old, new = before.get("signature", {}), after.get("signature", {})
    found |= _changes(_only(old, "instructions"), _only(new, "instructions"))
    if fields := _changes(_fields(old), _fields(new)):
        found["fields"] = fields
    if cuts := _changes(_flat(before.get("fields", {})), _flat(after.get("fields", {}))):
        found["cuts"] = cuts
    had, has = before.get("demos", []), after.get("demos", [])
    if had != has:
        found["demonstrations"] = {
            "before": len(had),
            "after": len(has),
            "added": [demo for demo in has if demo not in had],
            "removed": [demo for demo in had if demo not in has],
        }
    return found


def _only(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: values[name]} if name in values else {}


def _fields(signature: Mapping[str, Any]) -> dict[str, str]:
    """Returns descriptions by the field's prefix, which is its name in words."""
    return {field["prefix"].rstrip(":"): field["description"] for field in signature.get("fields", [])}


def _lines(part: Mapping[str, Any]) -> list[str]:
    """Returns a predictor as lines: a sentence each, so that a changed word does not show a whole paragraph."""
    if not part:
        return []
    signature = part["signature"]
    lines = [piece for line in signature["instructions"].splitlines() for piece in _SENTENCE.split(line) or [""]]
    lines += [f"[field] {name}: {text}" for name, text in _fields(signature).items()]
    lines += [f"[cut] {name}: {_cut(value)}" for name, value in _flat(part.get("fields", {})).items()]
    for number, demo in enumerate(part.get("demos", []), 1):
        lines.append(f"[demonstration {number}]")
        lines += [f"  {name}: {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in demo.items()]
    return lines


def _unified(before: Iterable[str], after: Iterable[str], title: str, names: tuple[str, str]) -> str:
    old, new = ([_visible(line) for line in side] for side in (before, after))
    labels = (f"{names[0]}/{title}", f"{names[1]}/{title}")
    lines = difflib.unified_diff(old, new, *labels, n=_CONTEXT, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _visible(line: str) -> str:
    """Returns a line without control characters: texts of others may hold commands for the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", line.replace("\n", "\\n"))


def uncompiled_state(document: Mapping[str, Any], where: Path = Path("program")) -> dict[str, Any]:
    """Returns the state of the program that an artifact's settings make before any optimisation.

    Args:
        document: What `program_state` returned.
        where: The file, for messages.

    Raises:
        DeclarationError: This version does not know its settings.
    """
    kind = KINDS[document["kind"]]
    return program_state(kind.build(program_groups(where, document, kind), None))


def diff_artifact(path: str | Path) -> tuple[ProgramDiff, dict[str, Any]]:
    """Compares a saved program with what its settings make before any optimisation.

    Args:
        path: The file, a run folder, or the folder of an MLflow model.

    Returns:
        The difference, and the saved program as plain data.

    Raises:
        DeclarationError: It is no saved program of this version.
    """
    document, _ = read_artifact(path)
    return diff_states(uncompiled_state(document, program_file(path)), document), document


def describe_artifact(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a person wants to know of an artifact besides its prompts."""
    names = ("kind", "format", "versions", "thresholds", "lms", "demonstrations", "origin", "hashes")
    return {**{name: document[name] for name in names}, "settings": document["settings"]}


def show_artifact(path: str | Path) -> tuple[str, dict[str, Any]]:
    """Returns an artifact for a terminal and as plain data: what it is, and what optimisation changed.

    Args:
        path: The file, a run folder, or the folder of an MLflow model.

    Raises:
        DeclarationError: It is no saved program of this version.
    """
    diff, document = diff_artifact(path)
    about = describe_artifact(document)
    return "\n".join([*_heading(about), "", diff.text or "nothing was changed\n"]), {**about, "diff": diff.to_dict()}


def _heading(about: Mapping[str, Any]) -> list[str]:
    settings, demos = about["settings"], about["demonstrations"]
    names = ", ".join(f"{group} {values.get('name', '')}".strip() for group, values in settings.items())
    lms = ", ".join(f"{role} {lm['model']} ({lm['host']})" for role, lm in about["lms"].items()) or "none bound"
    optimizer = about["origin"].get("optimizer")
    by = optimizer.get("name") if isinstance(optimizer, Mapping) else None
    counted = ", ".join(f"{count} in {name}" for name, count in demos["count"].items()) or "none"
    kept = "" if not demos["count"] else " (texts of pairs)" if demos["kept"] else " (left out of this file)"
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [
        f"program         {about['kind']}: {names}",
        f"made by         {by or 'no optimiser that it tells of'}, {versions}",
        f"LMs             {lms}",
        f"demonstrations  {counted}{kept}",
        f"criteria        {about['hashes'].get('criteria')}",
    ]
    return [_visible(line) for line in lines]
