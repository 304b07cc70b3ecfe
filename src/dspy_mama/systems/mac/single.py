"""One model diagnoses alone: any baseline, put behind the panel's own face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Unscored
from dspy_mama.core.patient_case import STAGES, PatientCase, Stage, as_case
from dspy_mama.lm.module import AsyncModule, bind_lms, check_lms
from dspy_mama.systems.mac.accounts import prediction_of
from dspy_mama.systems.mac.rules import others
from dspy_mama.systems.mac.schema import Conclusion, Cut, Diagnosis, Discussion, outcome_name
from dspy_mama.systems.mac.signatures import DiagnoseCase, without_tests
from dspy_mama.systems.mac.transcript import cut_to


class SingleDiagnosis(AsyncModule):
    """Diagnoses a case by one of the baselines; the same fields, limits and stages as the panel."""

    def __init__(
        self,
        make: Callable[[Any], Any],
        *,
        method: str,
        prompt_tokens: int | None = None,
        lms: Mapping[str, Any] | None = None,
    ) -> None:
        """Makes the program.

        Args:
            make: Makes a baseline of a signature, such as `lambda s: SelfConsistency(s, role="doctor")`; its
                prediction must have a `BaselineResult` behind it.
            method: Name of the baseline in records.
            prompt_tokens: Tokens of the case that a prompt may hold, as in `PanelSettings`, so that a case which the
                panel sees cut is cut here too; None = the whole case.
            lms: LM per role; the baseline asks the `doctor`'s.
        """
        super().__init__()
        self.method = method
        self.prompt_tokens = prompt_tokens
        self.primary = make(DiagnoseCase)
        self.follow_up = make(without_tests(DiagnoseCase))
        if lms:
            self.set_lms(lms)

    def set_lms(self, lms: Mapping[str, Any]) -> SingleDiagnosis:
        """Binds the `doctor`'s LM, or `default`, and returns the program; the panel's other roles are passed over.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        from dspy_mama.systems.mac.panel import ROLES

        check_lms(lms, (*ROLES, "grader"))
        bind_lms(self, lms)
        return self

    async def aforward(
        self, case: PatientCase | str | Mapping[str, Any], stage: Stage = "primary", **context: Any
    ) -> dspy.Prediction:
        """Diagnoses one case; arguments and results are those of `DiagnosisPanel`.

        Raises:
            DeclarationError: The case holds no text, the stage is unknown, or the LM's configuration is at fault.
        """
        if stage not in STAGES:
            raise DeclarationError(f"stage={stage!r}: a case has the stages {', '.join(STAGES)}")
        program = self.primary if stage == "primary" else self.follow_up
        text = as_case(case).text(stage)
        cuts: tuple[Cut, ...] = ()
        if self.prompt_tokens is not None:
            shown = cut_to(text, (), self.prompt_tokens)
            text, cut = shown.case, shown.cut(1, "doctor", self.prompt_tokens)
            cuts = (cut,) if cut else ()
        prediction = await program.acall(case=text)
        result: Any = prediction._result
        reading = result.reading
        conclusion = Conclusion(
            outcome=reading.outcomes["most_likely"],
            by=result.by,
            possible=others(reading.value("differentials") or (), reading.value("most_likely")),
            tests=tuple(reading.value("tests") or ()) if stage == "primary" else (),
            usage=reading.usage,
            model=reading.model,
        )
        names = {"solver": "doctor"}
        return prediction_of(
            Diagnosis(
                method=self.method,
                stage=stage,
                conclusion=conclusion,
                discussion=Discussion(cuts=cuts),
                attempts=tuple(_attempt(attempt) for attempt in result.attempts),
                usage={names.get(part, part): used for part, used in result.usage.items()},
                models={"doctor": reading.model} if reading.model else {},
                notes=(*result.notes, *(["the end of the case was left out for length"] if cuts else [])),
            )
        )


def _attempt(attempt: Any) -> dict[str, Any]:
    reading = attempt.reading
    outcome = reading.outcomes["most_likely"]
    most_likely = reading.value("most_likely")
    return {
        "number": attempt.number,
        "kind": attempt.kind,
        "outcome": outcome_name(outcome),
        "error": outcome.reason if isinstance(outcome, Unscored) else None,
        "most_likely": most_likely,
        "possible": list(others(reading.value("differentials") or (), most_likely)),
        "tests": list((reading.value("tests") if "tests" in reading.outcomes else None) or ()),
        "reasoning": reading.value("reasoning") if "reasoning" in reading.outcomes else None,
        "group": attempt.group,
        "chosen": attempt.chosen,
        "score": attempt.score,
        "feedback": attempt.critique,
        "kept": attempt.kept,
        "usage": reading.usage.to_dict(),
    }
