"""Where a panel's doctors stand at its end, beside the consensus and the diagnosis that were declared of them.

Pure, and by names alone: two names are two diseases unless the matcher of spellings, or its dictionary, joins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from dspy_mama.scoring.disease_match import match_disease

DIFFER: Final = "consensus declared while the doctors' latest diagnoses differ"
UNHELD: Final = "the most likely diagnosis of the {who} is held by no doctor"


@dataclass(frozen=True, slots=True)
class Standing:
    """The doctors' latest diagnoses, held against what was declared of them.

    Attributes:
        consensus: Whether the discussion ended in consensus: by the supervisor's flag, or without a supervisor by
            the flags of all doctors.
        held: Latest diagnosis of each doctor who could be read, as (doctor, diagnosis).
        differ: Whether two of these are different diseases.
        unheld: Who declared a diagnosis that no doctor holds: the `supervisor`, where its flag ended the discussion,
            the `concluder`, where it wrote down the outcome.
    """

    consensus: bool
    held: tuple[tuple[str, str], ...]
    differ: bool
    unheld: tuple[str, ...]

    @property
    def contradicted(self) -> bool:
        """Whether there is a consensus that the doctors' own diagnoses speak against."""
        return self.consensus and (self.differ or bool(self.unheld))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the consensus or the outcome, one line each."""
        who = "; ".join(f"{doctor}: {name}" for doctor, name in self.held)
        differ = [f"{DIFFER} ({who})"] if self.consensus and self.differ else []
        return (*differ, *(UNHELD.format(who=who) for who in self.unheld))

    def to_dict(self) -> dict[str, Any]:
        """Returns it as a record keeps it."""
        return {
            "consensus": self.consensus,
            "held": dict(self.held),
            "differ": self.differ,
            "unheld": list(self.unheld),
            "contradicted": self.contradicted,
            "warnings": list(self.warnings),
        }


def standing(
    held: Mapping[str, str],
    declared: Mapping[str, str | None],
    consensus: bool,
    synonyms: Mapping[str, str] | None = None,
) -> Standing:
    """Holds what was declared against the doctors' latest diagnoses.

    Args:
        held: Latest diagnosis by doctor.
        declared: Diagnosis by who declared it; None where there is none, which speaks against nothing.
        consensus: Whether a consensus was declared.
        synonyms: What `synonym_table` made of a dictionary.
    """
    names = list(held.values())
    differ = any(not match_disease(one, [two], synonyms).same for one, two in combinations(names, 2))
    unheld = [who for who, name in declared.items() if name and not match_disease(name, names, synonyms).same]
    return Standing(consensus, tuple(sorted(held.items())), differ, tuple(unheld))


def standing_at_end(
    turns: Iterable[tuple[str, str, str | None]],
    *,
    accepted: bool,
    concluded: str | None,
    consensus: bool,
    synonyms: Mapping[str, str] | None = None,
) -> Standing:
    """Holds the end of a discussion against each doctor's latest diagnosis that could be read.

    Args:
        turns: Speaker, role and diagnosis of every turn, in order; at least one.
        accepted: Whether the last turn is the supervisor's, whose consensus ended the discussion.
        concluded: The concluder's diagnosis; None where it was not asked or could not be read.
        consensus: Whether the discussion ended in consensus.
        synonyms: What `synonym_table` made of a dictionary.
    """
    said = tuple(turns)
    held = {speaker: name for speaker, role, name in said if role == "doctor" and name}
    declared = {"supervisor": said[-1][2] if accepted else None, "concluder": concluded}
    return standing(held, declared, consensus, synonyms)


def kept_standing(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the standing that a record keeps; one that was written before records did has it from its turns."""
    return record.get("standing") or standing_of(record)


def standing_of(record: Mapping[str, Any], synonyms: Mapping[str, str] | None = None) -> dict[str, Any] | None:
    """Returns the standing at the end of a record's discussion, from its turns; None where there was none.

    Args:
        record: A record of a diagnosis, also one that was written before records kept this.
        synonyms: What `synonym_table` made of a dictionary.
    """
    turns: Sequence[Mapping[str, Any]] = record.get("turns") or ()
    if not turns:
        return None
    final = record["final"]
    return standing_at_end(
        ((turn["speaker"], turn["role"], turn["most_likely"]) for turn in turns),
        accepted=bool(turns[-1].get("accepted")),
        concluded=final["most_likely"] if final.get("by") == "concluder" else None,
        consensus=record["stopped"] == "consensus",
        synonyms=synonyms,
    ).to_dict()
