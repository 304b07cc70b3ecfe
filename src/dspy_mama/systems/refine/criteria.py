"""Criteria packs: what the evaluators judge by, as data that can be read, versioned and replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.core.ids import object_hash
from dspy_mama.core.resources import shipped

LEVELS: Final = (1, 2, 3, 4, 5)
"""Levels of safety risk (paper B, SRA-5)."""

_KEYS: Final = frozenset({"name", "version", "title", "source", "extends", "principles", "guidance", "levels"})


@dataclass(frozen=True, slots=True)
class Principle:
    """One principle; a text violates it or does not.

    Attributes:
        id: Short name, such as `IV`.
        name: What it is called.
        text: What violates it, as the clause that follows "the answer".
    """

    id: str
    name: str
    text: str

    @property
    def field(self) -> str:
        """Name of its fields in a prompt: short, because each reply spells it out twice."""
        plain = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in self.id)
        return plain if plain[:1].isalpha() else f"p{plain}"


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a loop judges by.

    Attributes:
        name: Names of the packs it is made of, joined by `+`.
        version: Their versions, joined alike.
        principles: In the order in which they are judged.
        levels: Meaning of each level of safety risk.
    """

    name: str
    version: str
    principles: tuple[Principle, ...]
    levels: Mapping[int, str] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """Hash of every word of it: two runs with equal hashes were judged by the same criteria."""
        return object_hash([[[p.id, p.name, p.text] for p in self.principles], sorted(self.levels.items())], 16)

    def describe(self) -> dict[str, Any]:
        """Returns what a record says of it."""
        return {"name": self.name, "version": self.version, "hash": self.hash}


def load_criteria(names: Sequence[str] = ("ama",)) -> Criteria:
    """Loads criteria packs and joins them in their order.

    A pack either states principles and levels, or `extends` another with `guidance` (what a principle also means in
    its field) and further principles.

    Args:
        names: Names of shipped packs, or paths of yaml files.

    Raises:
        DeclarationError: There is no such pack, or a pack extends one that was not loaded before it.
        DataError: A file is no criteria pack; the field is named.
    """
    found: Criteria | None = None
    for name in names:
        path = _find(name)
        found = _join(found, _read(path), path)
    if found is None or not found.principles:
        raise DeclarationError("refiner.criteria: no principle to judge by; name a pack such as ama")
    if not found.levels:
        raise DeclarationError(
            f"refiner.criteria: {found.name} does not say what the levels of safety risk mean; add levels 1 to 5 to a "
            "pack, or name ama before it"
        )
    return found


def shipped_packs() -> tuple[str, ...]:
    """Returns the names of the packs that ship with the library."""
    return tuple(sorted(file.stem for file in _packs().iterdir() if file.suffix == ".yaml"))


def _packs() -> Path:
    return Path(shipped("data")) / "criteria"


def _find(name: str) -> Path:
    packs = shipped_packs()
    if name in packs:
        return _packs() / f"{name}.yaml"
    path = Path(name).expanduser()
    if not path.is_file():
        raise DeclarationError(
            f"refiner.criteria: {name!r} is neither a file nor one of the shipped packs {', '.join(packs)}"
        )
    return path


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(str(path), [Fault(None, None, f"cannot be read ({reason})")]) from None
    if not isinstance(content, dict):
        raise DataError(str(path), [Fault(None, None, "is no mapping of name, version, principles and levels")])
    faults = [
        Fault(None, str(key), "unknown field of a criteria pack") for key in sorted(set(content) - _KEYS, key=str)
    ]
    faults += [Fault(None, key, "is missing") for key in ("name", "version") if not str(content.get(key) or "").strip()]
    if not content.get("principles") and not content.get("guidance"):
        faults.append(Fault(None, "principles", "neither principles nor guidance"))
    faults += _shape_faults(content)
    if faults:
        raise DataError(str(path), faults)
    return content


def _shape_faults(content: Mapping[str, Any]) -> list[Fault]:
    faults: list[Fault] = []
    rows = content.get("principles") or []
    if not isinstance(rows, list):
        return [Fault(None, "principles", "is no list")]
    for number, row in enumerate(rows, start=1):
        missing = [k for k in ("id", "name", "text") if not isinstance(row, dict) or not str(row.get(k) or "").strip()]
        faults += [Fault(None, "principles", f"entry {number} has no {key}") for key in missing]
    ids = [str(row["id"]) for row in rows if isinstance(row, dict) and row.get("id")]
    fields = [Principle(i, "", "").field for i in ids]
    twice = sorted({i for i, name in zip(ids, fields, strict=True) if fields.count(name) > 1})
    faults += [Fault(None, "principles", f"{i!r} stands twice, or reads like another id") for i in twice]
    for name in ("guidance", "levels"):
        if not isinstance(content.get(name) or {}, dict):
            faults.append(Fault(None, name, "is no mapping"))
        else:
            blank = [key for key, text in (content.get(name) or {}).items() if not isinstance(text, str) or not text]
            faults += [Fault(None, name, f"{key!r} has no text") for key in blank]
    levels = content.get("levels") or {}
    if isinstance(levels, dict) and levels and set(levels) != set(LEVELS):
        faults.append(Fault(None, "levels", f"must name the levels {', '.join(map(str, LEVELS))}"))
    return faults


def _join(before: Criteria | None, pack: Mapping[str, Any], path: Path) -> Criteria:
    base = pack.get("extends")
    if base and (before is None or base not in before.name.split("+")):
        raise DeclarationError(f"refiner.criteria: {pack['name']} extends {base}; name it first: [{base},{path.stem}]")
    known = {} if before is None else {principle.id: principle for principle in before.principles}
    for key, text in (pack.get("guidance") or {}).items():
        if str(key) not in known:
            raise DataError(str(path), [Fault(None, "guidance", f"{key!r} is no principle of {base or 'any pack'}")])
        known[str(key)] = replace(known[str(key)], text=f"{known[str(key)].text}; {str(text).strip()}")
    for row in pack.get("principles") or ():
        own = Principle(str(row["id"]).strip(), str(row["name"]).strip(), str(row["text"]).strip())
        if own.field in {principle.field for principle in known.values()}:
            reason = f"{own.id!r} is in an earlier pack already, or reads like an id of one"
            raise DataError(str(path), [Fault(None, "principles", reason)])
        known[own.id] = own
    levels = {int(level): str(text) for level, text in (pack.get("levels") or {}).items()}
    return Criteria(
        name=f"{before.name}+{pack['name']}" if before else str(pack["name"]),
        version=f"{before.version}+{pack['version']}" if before else str(pack["version"]),
        principles=tuple(known.values()),
        levels=levels or (before.levels if before else {}),
    )
