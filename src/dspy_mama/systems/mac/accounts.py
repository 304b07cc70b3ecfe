"""What a discussion cost and who spoke for which model: from turns to a diagnosis and its prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import dspy

from dspy_mama.core.outcomes import Scored
from dspy_mama.core.patient_case import Stage
from dspy_mama.lm.usage import CallUsage
from dspy_mama.scoring.standing import Standing, standing_at_end
from dspy_mama.systems.mac.schema import Conclusion, Diagnosis, Discussion, SpecialtyChoice, outcome_name


def _usage(talk: Discussion, conclusion: Conclusion, choice: SpecialtyChoice | None) -> dict[str, CallUsage]:
    spent: dict[str, CallUsage] = {}

    def add(role: str, usage: CallUsage | None) -> None:
        if usage is not None:
            spent[role] = spent.get(role, CallUsage()) + usage

    for turn in talk.turns:
        add(turn.role, turn.usage)
        add("speaker", turn.selection.usage if turn.selection else None)
    if conclusion.by == "concluder":
        add("concluder", conclusion.usage)
    if choice is not None and choice.outcome is not None:
        add("consultant", choice.usage)
    return spent


def _models(talk: Discussion, conclusion: Conclusion, choice: SpecialtyChoice | None) -> dict[str, str]:
    found: list[tuple[str, str | None]] = [(turn.role, turn.model) for turn in talk.turns]
    found += [(turn.speaker.lower().replace(" ", "_"), turn.model) for turn in talk.turns if turn.role == "doctor"]
    found += [("speaker", turn.selection.model) for turn in talk.turns if turn.selection]
    found += [("concluder", conclusion.model), ("consultant", choice.model if choice else None)]
    models: dict[str, str] = {}
    for role, model in found:
        if model is not None:
            models.setdefault(role, model)
    doctors = {role: model for role, model in models.items() if role.startswith("doctor_")}
    if len(set(doctors.values())) <= 1:  # one model for all doctors: the role says it
        models = {role: model for role, model in models.items() if role not in doctors}
    return models


def _notes(talk: Discussion) -> tuple[str, ...]:
    """Returns what did not go as planned: unreadable turns by speaker, choices of a speaker that were no use, cuts."""
    lost = Counter((turn.speaker, outcome_name(turn.outcome)) for turn in talk.turns if not turn.readable)
    notes = [f"{speaker}: {count} turn(s) not readable ({kind})" for (speaker, kind), count in lost.items()]
    if fallbacks := sum(turn.selection is not None and turn.selection.by == "fallback" for turn in talk.turns):
        notes.append(f"{fallbacks} choice(s) of the next speaker were no use; the next in order spoke")
    if talk.cuts:
        notes.append(f"{len(talk.cuts)} prompt(s) left earlier turns or the end of the case out for length")
    return tuple(notes)


def _standing(talk: Discussion, conclusion: Conclusion) -> Standing:
    """Returns the doctors' latest diagnoses beside the supervisor's that ended it, and the concluder's."""
    outcome = conclusion.outcome
    return standing_at_end(
        ((turn.speaker, turn.role, turn.most_likely) for turn in talk.turns),
        accepted=bool(talk.turns[-1].accepted),
        concluded=outcome.value if conclusion.by == "concluder" and isinstance(outcome, Scored) else None,
        consensus=talk.stopped == "consensus",
    )


def panel_diagnosis(
    stage: Stage, conclusion: Conclusion, talk: Discussion, choice: SpecialtyChoice | None, panel: Mapping[str, Any]
) -> Diagnosis:
    """Returns the diagnosis of a panel with its costs by role and by doctor."""
    by_doctor: dict[str, CallUsage] = {}
    for turn in talk.turns:
        if turn.role == "doctor":
            by_doctor[turn.speaker] = by_doctor.get(turn.speaker, CallUsage()) + turn.usage
    return Diagnosis(
        method="mac",
        stage=stage,
        conclusion=conclusion,
        discussion=talk,
        specialties=choice,
        panel=panel,
        usage=_usage(talk, conclusion, choice),
        usage_by_doctor=dict(sorted(by_doctor.items())),
        models=_models(talk, conclusion, choice),
        notes=_notes(talk),
        standing=_standing(talk, conclusion),
    )


def prediction_of(diagnosis: Diagnosis) -> dspy.Prediction:
    """Returns a diagnosis as every method's prediction shows it."""
    conclusion = diagnosis.conclusion
    outcome = conclusion.outcome
    return dspy.Prediction(
        most_likely=outcome.value if isinstance(outcome, Scored) else None,
        possible=list(conclusion.possible),
        tests=list(conclusion.tests),
        outcome=outcome_name(outcome),
        consensus=diagnosis.discussion.stopped == "consensus",
        rounds=diagnosis.rounds,
        warnings=list(diagnosis.warnings),
        diagnosis=diagnosis,
    )


def diagnosis_of(prediction: Any) -> Diagnosis:
    """Returns the `Diagnosis` behind a prediction of the panel or of a baseline."""
    found: Diagnosis = prediction.diagnosis
    return found
