"""Which column of a file of labels holds which domain's label or probability, for gold and for predictions."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from dspy_mama.core.cases import DOMAINS, Domain
from dspy_mama.core.errors import DataError, DeclarationError, Fault
from dspy_mama.datasets.tables import Table

Role = Literal["gold", "predictions"]

_ID: Final = ("id", "pairid", "caseid", "exampleid")
_LABEL: Final[Mapping[Role, tuple[tuple[str, ...], ...]]] = {
    # Each group is tried before the next; two columns of one group would be a guess.
    "gold": (("{d}gold",), ("{d}risk", "{d}label"), ("{d}",)),
    "predictions": (
        ("{d}verdict", "{d}predicted", "{d}prediction", "{d}pred"),
        ("{d}risk", "{d}label"),
        ("{d}",),
    ),
}
_CHANCE: Final = ("{d}probability", "{d}prob", "{d}riskprobability", "{d}riskprob", "p{d}", "{d}p")
_ONE_LABEL: Final[Mapping[Role, tuple[tuple[str, ...], ...]]] = {
    "gold": (("gold",), ("label", "risk", "risky"), ("value",)),
    "predictions": (("verdict", "predicted", "prediction", "pred"), ("label", "risk", "risky"), ("value",)),
}
_ONE_CHANCE: Final = ("probability", "prob", "score", "p")
FIELDS: Final = ("id", "repeat", *DOMAINS, *(f"{domain}_probability" for domain in DOMAINS))
"""Fields that a column may be declared for."""


def plain(name: str) -> str:
    """Returns a column's name without case, blanks and signs: `medicalRisk` and `Medical risk` agree."""
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())


def _pick(table: Table, groups: Sequence[Sequence[str]], what: str) -> str | None:
    for group in groups:
        found = [column for column in table.columns if plain(column) in group]
        if len(found) > 1:
            reason = f"{' and '.join(map(repr, found))} could both be the {what}; declare one of them"
            raise DataError(table.name, [Fault(None, None, reason)])
        if found:
            if found[0] in table.repeated:
                reason = f"two columns have this name, and one is needed as the {what}; rename or delete one"
                raise DataError(table.name, [Fault(None, found[0], reason)])
            return found[0]
    return None


def label_columns(table: Table, role: Role, declared: Mapping[str, str], only: Domain | None = None) -> dict[str, str]:
    """Finds the columns of a file of labels: as declared, else by our names or the shared task's (`medicalRisk`).

    Args:
        table: The file.
        role: Whether it is read for its gold labels or for its predictions; a file may hold both.
        declared: Field (`id`, `repeat`, `medical`, `medical_probability`, ...) -> the file's column.
        only: The one domain of the file, whose column may then be called just `label`, `risk`, `probability`.

    Returns:
        Field -> column, for those that are there.

    Raises:
        DeclarationError: A declared field or column does not exist.
        DataError: Two columns could be the same field, or none holds a label or a probability.
    """
    found = _declared(table, declared)
    singles: dict[str, Sequence[Sequence[str]]] = {"id": [(name,) for name in _ID], "repeat": [("repeat",)]}
    for domain in (only,) if only else DOMAINS:
        labels = [tuple(name.format(d=domain) for name in group) for group in _LABEL[role]]
        chances = [tuple(name.format(d=domain) for name in _CHANCE)]
        if only:
            labels, chances = [*labels, *_ONE_LABEL[role]], [*chances, _ONE_CHANCE]
        singles[domain] = labels
        if role == "predictions":
            singles[f"{domain}_probability"] = chances
    for field, groups in singles.items():
        if field not in found and (column := _pick(table, groups, field)):
            found[field] = column
    if not any(field.removesuffix("_probability") in DOMAINS for field in found):
        wanted = "medicalRisk, ethicalRisk, legalRisk" if only is None else f"{only}, label, risk or probability"
        reason = f"no column of {role} was found (such as {wanted}); it has the columns: {', '.join(table.columns)}"
        raise DataError(table.name, [Fault(None, None, reason)])
    return found


def _declared(table: Table, declared: Mapping[str, str]) -> dict[str, str]:
    for field, column in declared.items():
        if field not in FIELDS:
            raise DeclarationError(f"column {field}={column}: not a field; the fields are {', '.join(FIELDS)}")
        if column not in table.columns:
            raise DeclarationError(f"column {field}={column}: {table.name} has the columns: {', '.join(table.columns)}")
    return dict(declared)
