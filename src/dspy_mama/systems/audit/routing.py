"""Expert generation: which specialist should verify a question (paper A, Preprocessing)."""

from __future__ import annotations

import json
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dspy_mama.core.csv_text import CsvRowError, read_csv
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.core.ids import content_hash
from dspy_mama.core.outcomes import Scored
from dspy_mama.lm.module import AsyncModule
from dspy_mama.lm.predict import StructuredPredict, reading_of
from dspy_mama.systems.audit.schema import RoleAssignment
from dspy_mama.systems.audit.signatures import RouteQuestion

GENERAL_SPECIALTY = "General medicine"


def question_key(question: str) -> str:
    """Returns the key of a question in tables: blanks, width and case do not matter."""
    return content_hash(" ".join(unicodedata.normalize("NFKC", question).casefold().split()), 16)


@dataclass(frozen=True, slots=True)
class SpecialtyList:
    """An allow-list of specialties with aliases.

    Attributes:
        names: Permitted specialties.
        aliases: Other spellings, to the name that they mean.
    """

    names: tuple[str, ...]
    aliases: Mapping[str, str]

    def __post_init__(self) -> None:
        """Refuses an alias to a specialty that is not permitted."""
        wrong = sorted(set(self.aliases.values()) - set(self.names))
        if wrong:
            raise DeclarationError(f"system.router.aliases lead to specialties that are not in allow_list: {wrong}")

    def resolve(self, name: str) -> str | None:
        """Returns the permitted specialty that a name means, or None."""
        folded = name.casefold().strip()
        known = {n.casefold(): n for n in self.names} | {a.casefold(): n for a, n in self.aliases.items()}
        return known.get(folded)


class SpecialistTable:
    """Specialties by question, kept as JSON so that a later run reuses them.

    Saved whole and atomically after each addition; the entries are plain text.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        """Opens a table.

        Args:
            path: JSON file; None keeps the table in memory alone.

        Raises:
            DataError: The file is not such a table.
        """
        self._path = Path(path) if path else None
        self._lock = threading.Lock()
        self._rows: dict[str, dict[str, str]] = {}
        if self._path is not None and self._path.exists():
            self._rows = self._load(self._path)

    @staticmethod
    def _load(path: Path) -> dict[str, dict[str, str]]:
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
            kept = {str(key): {str(k): str(v) for k, v in row.items() if v is not None} for key, row in rows.items()}
            nameless = [key for key, row in kept.items() if not row.get("specialty", "").strip()]
            if nameless:
                raise ValueError(f"entry {nameless[0]!r} has no specialty")
            return kept
        except (OSError, ValueError, AttributeError) as error:
            fault = Fault(None, None, f"not a table of specialists ({error}); delete it or name another file")
            raise DataError(str(path), [fault]) from error

    def __deepcopy__(self, memo: dict[int, Any]) -> SpecialistTable:
        """Returns itself: copies of a program share the table."""
        return self

    def find(self, question: str) -> RoleAssignment | None:
        """Returns the stored assignment of a question."""
        with self._lock:
            row = self._rows.get(question_key(question))
        if row is None:
            return None
        return RoleAssignment(
            row["specialty"], row.get("definition", ""), row.get("source", ""), origin="table",
            outcome=Scored(row["specialty"]),
        )  # fmt: skip

    def add(self, question: str, found: RoleAssignment) -> None:
        """Stores an assignment.

        Raises:
            DeclarationError: The file cannot be written.
        """
        if found.specialty is None:
            return
        row = {"specialty": found.specialty, "definition": found.definition, "source": found.source}
        with self._lock:
            self._rows[question_key(question)] = row
            if self._path is None:
                return
            draft = self._path.with_suffix(self._path.suffix + ".part")
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                draft.write_text(json.dumps(self._rows, ensure_ascii=False, indent=1, sort_keys=True), encoding="utf-8")
                draft.replace(self._path)
            except OSError as error:
                raise DeclarationError(f"system.router.table: {self._path} cannot be written ({error})") from error


def read_mapping(path: str | Path) -> dict[str, RoleAssignment]:
    """Reads a curated mapping: csv or json with `question`, `specialty` and, if known, `definition`, `source`.

    Returns:
        Assignments by question key; their sources count as verified, for a person wrote them.

    Raises:
        DataError: The file or one of its rows cannot be used.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
        rows = _json_rows(text) if file.suffix.lower() == ".json" else _csv_rows(text)
    except UnicodeDecodeError as error:
        raise DataError(str(file), [Fault(None, None, f"is not UTF-8 ({error}); save it as UTF-8")]) from error
    except CsvRowError as fault:
        raise DataError(str(file), [Fault(fault.number, None, fault.reason)]) from fault
    except (OSError, ValueError) as error:
        raise DataError(str(file), [Fault(None, None, f"cannot be read ({error})")]) from error
    faults: list[Fault] = []
    found: dict[str, RoleAssignment] = {}
    for number, row in rows:
        if not isinstance(row, dict) or not str(row.get("question") or "").strip():
            faults.append(Fault(number, "question", "is missing"))
        elif not str(row.get("specialty") or "").strip():
            faults.append(Fault(number, "specialty", "is missing"))
        else:
            name, key = str(row["specialty"]).strip(), question_key(str(row["question"]))
            if key in found and found[key].specialty != name:
                faults.append(Fault(number, "specialty", f"{name!r}, but an earlier row sends this question elsewhere"))
            found[key] = RoleAssignment(
                name, str(row.get("definition") or ""), str(row.get("source") or ""), True, "mapping", Scored(name)
            )
    if faults or not found:
        raise DataError(str(file), faults or [Fault(None, None, "holds no rows: question, specialty are needed")])
    return found


def _json_rows(text: str) -> list[tuple[int, Any]]:
    rows = json.loads(text)
    return list(enumerate(rows, 1)) if isinstance(rows, list) else []


def _csv_rows(text: str) -> list[tuple[int, Any]]:
    rows = [row for row in read_csv(text) if any(cell.strip() for cell in row.cells)]
    names = [name.strip() for name in rows[0].cells] if rows else []
    for row in rows[1:]:
        # A comma outside quotes would cut a question short, so that it matched another or none.
        if any(cell.strip() for cell in row.cells[len(names) :]):
            reason = f"{len(row.cells)} cells under a header of {len(names)}; put text that holds commas in quotes"
            raise CsvRowError(row.number, row.line, reason)
    return [(row.number, dict(zip(names, row.cells, strict=False))) for row in rows[1:]]


class SpecialistRouter(AsyncModule):
    """Names the specialist for a question; asks the LM only for questions it has not seen."""

    def __init__(
        self, *, specialties: SpecialtyList | None = None, table: SpecialistTable | None = None,
        mapping: Mapping[str, RoleAssignment] | None = None,
    ) -> None:  # fmt: skip
        """Makes the router.

        Args:
            specialties: Allow-list; None = open vocabulary.
            table: Where assignments are kept; None = in memory.
            mapping: Curated assignments by question key, which come first.

        Raises:
            DeclarationError: The mapping names a specialty that the allow-list does not permit.
        """
        super().__init__()
        signature: Any = RouteQuestion
        if specialties is not None:
            closed: Any = Literal.__getitem__(specialties.names)
            signature = signature.with_updated_fields("specialty", type_=closed, aliases=dict(specialties.aliases))
            named = {found.specialty for found in (mapping or {}).values() if found.specialty}
            wrong = sorted(name for name in named if specialties.resolve(name) is None)
            if wrong:
                raise DeclarationError(f"system.router.mapping names specialties that are not in allow_list: {wrong}")
        self.specialties = specialties
        self.table = table or SpecialistTable()
        self.mapping = dict(mapping or {})
        self.route = StructuredPredict(signature, role="router", logprobs=False)

    async def aforward(self, question: str) -> RoleAssignment:
        """Returns the assignment; its specialty is None where the reply could not be read."""
        known = self._permitted(self.mapping.get(question_key(question)) or self.table.find(question))
        if known is not None:
            return known
        prediction = await self.route.acall(question=question)
        reading = reading_of(prediction)
        found = RoleAssignment(
            reading.value("specialty"),
            reading.value("definition") or "",
            reading.value("source") or "",
            origin="lm",
            outcome=reading.outcomes["specialty"],
            usage=reading.usage,
            model=reading.model,
        )
        self.table.add(question, found)
        return found

    def _permitted(self, known: RoleAssignment | None) -> RoleAssignment | None:
        """Returns a known assignment under its permitted name; None where the table is from a wider vocabulary."""
        if known is None or known.specialty is None or self.specialties is None:
            return known
        name = self.specialties.resolve(known.specialty)
        return None if name is None else replace(known, specialty=name, outcome=Scored(name))


class AgnosticRouter(AsyncModule):
    """Sends every question to a general physician: the case-agnostic form, without an LM."""

    async def aforward(self, question: str) -> RoleAssignment:
        """Returns the same assignment for every question."""
        return RoleAssignment(GENERAL_SPECIALTY, origin="agnostic", outcome=Scored(GENERAL_SPECIALTY))


class NoRouter(AsyncModule):
    """The honest null: roles are off, nobody is assigned."""

    async def aforward(self, question: str) -> RoleAssignment:
        """Returns an assignment without a specialty."""
        return RoleAssignment(None)


def allow_list(names: Sequence[str], aliases: Mapping[str, str]) -> SpecialtyList | None:
    """Returns the allow-list, or None where the vocabulary is open.

    Raises:
        DeclarationError: Aliases without a list, or to a name that is not on it.
    """
    if not names:
        if aliases:
            raise DeclarationError("system.router.aliases need system.router.allow_list")
        return None
    return SpecialtyList(tuple(names), dict(aliases))
