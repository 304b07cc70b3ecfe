"""System C (MAC): doctors and a supervisor discuss a case until they agree on its diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, get_args

import dspy

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.outcomes import Scored
from dspy_mama.core.patient_case import STAGES, PatientCase, Stage, as_case
from dspy_mama.lm.module import AsyncModule, bind_lms, check_lms
from dspy_mama.settings import from_mapping
from dspy_mama.settings.panel import PanelRole, PanelSettings
from dspy_mama.systems.mac import rules
from dspy_mama.systems.mac.accounts import panel_diagnosis, prediction_of
from dspy_mama.systems.mac.concluder import Concluder
from dspy_mama.systems.mac.consultant import Consultant, FixedSpecialties, NoSpecialties
from dspy_mama.systems.mac.doctor import Doctor
from dspy_mama.systems.mac.schema import SUPERVISOR, Conclusion, Discussion, Seat, Selection
from dspy_mama.systems.mac.speakers import AutoSpeaker, RoundRobin
from dspy_mama.systems.mac.supervisor import Supervisor
from dspy_mama.systems.mac.transcript import Shown, cut_to

ROLES: tuple[str, ...] = get_args(PanelRole)


class DiagnosisPanel(AsyncModule):
    """Two to five doctors discuss a case, with or without a supervisor, until they agree or the rounds are over.

    Example:
        ```python
        dspy.configure(lm=dspy.LM("openai/gpt-4o"))
        found = DiagnosisPanel(doctors=4)(case="A girl of six with ...")
        found.most_likely, found.possible, found.tests, found.consensus
        ```

    A round is one turn of a doctor or the supervisor (`round="turn"`, as AutoGen's group chat counts), or one turn of
    everybody (`round="pass"`). Everybody speaks once in order; then `speaker` decides. The discussion ends

    - with a supervisor: at its typed consensus flag, where every doctor has had the floor and at least two could be
      read. Words such as "do not terminate yet" in a text are words; a flag that could not be read is no consensus;
    - without one: when every doctor's latest turn says by its typed flag that it agrees;
    - after `rounds` rounds;
    - when as many doctors' turns in a row as there are doctors could not be read.

    A turn that could not be read is kept as such and the discussion goes on. It is no substitute for a clinical
    decision.
    """

    def __init__(
        self,
        doctors: int = 4,
        *,
        supervisor: bool = True,
        specialties: bool | Sequence[str] = False,
        lms: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        """Seats the panel.

        Args:
            doctors: 2 to 5.
            supervisor: Whether a supervisor leads.
            specialties: False = none; True = chosen by a senior consultant for each case; or one a doctor.
            lms: LM per role (see `set_lms`); a role without one takes `dspy.settings.lm` at the call.
            **settings: Further fields of `PanelSettings`, such as `speaker="round_robin"` or `rounds=25`.

        Raises:
            DeclarationError: A setting is unknown or out of range, or a role is.
        """
        super().__init__()
        if not isinstance(specialties, bool):
            listed = isinstance(specialties, Sequence) and not isinstance(specialties, str)
            if not listed or (isinstance(doctors, int) and len(specialties) > doctors):
                raise DeclarationError(f"specialties={specialties!r}: give True, False or a list of one a doctor")
            if not specialties:
                raise DeclarationError("specialties is empty: give one a doctor, or False for none")
            settings |= {"specialties": "fixed", "allow_list": tuple(specialties)}
        else:
            settings |= {"specialties": "chosen" if specialties else "none"}
        values = {"doctors": doctors, "supervisor": supervisor, **settings}
        self._seat(from_mapping(PanelSettings, values))
        if lms:
            self.set_lms(lms)

    @classmethod
    def from_settings(cls, settings: PanelSettings, lms: Mapping[str, Any] | None = None) -> DiagnosisPanel:
        """Makes the panel that settings describe."""
        panel = cls.__new__(cls)
        AsyncModule.__init__(panel)
        panel._seat(settings)
        return panel.set_lms(lms) if lms else panel

    def _seat(self, settings: PanelSettings) -> None:
        heat = settings.temperatures
        names = tuple(f"Doctor {number}" for number in range(1, settings.doctors + 1))
        auto = settings.speaker == "auto"
        self.settings = settings
        self.names = names
        self.order = rules.speaking_order([Seat(name) for name in names], settings.supervisor)
        self.doctors = [
            Doctor(temperature=heat.get("doctor"), argument_characters=settings.argument_characters) for _ in names
        ]
        self.supervisor = (
            Supervisor(doctors=names if auto else (), temperature=heat.get("supervisor"))
            if settings.supervisor
            else None
        )
        self.concluder = Concluder(temperature=heat.get("concluder"))
        self.speaker = (
            AutoSpeaker(self.order, allow_repeat=settings.allow_repeat, temperature=heat.get("speaker"))
            if auto
            else RoundRobin(self.order)
        )
        self.consultant = self._consultant(settings)

    @staticmethod
    def _consultant(settings: PanelSettings) -> AsyncModule:
        if settings.specialties == "none":
            return NoSpecialties()
        consultant = Consultant(
            doctors=settings.doctors,
            allow_list=settings.allow_list,
            temperature=settings.temperatures.get("consultant"),
        )
        chosen = settings.specialties == "chosen"
        return consultant if chosen else FixedSpecialties(consultant.allowed[: settings.doctors])

    def set_lms(self, lms: Mapping[str, Any]) -> DiagnosisPanel:
        """Binds LMs to roles and returns the panel.

        Args:
            lms: By `doctor`, `supervisor`, `concluder`, `consultant`, `speaker`, `default` for the rest, and
                `doctor_1` to `doctor_5` for one doctor alone. `grader` is no member of the panel and is passed over.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        single = [f"doctor_{number}" for number in range(1, len(self.names) + 1)]
        check_lms(lms, (*ROLES, *single, "grader"))
        bind_lms(self, lms)
        for role, doctor in zip(single, self.doctors, strict=True):
            if role in lms:
                bind_lms(doctor, {"doctor": lms[role]})
        return self

    async def aforward(
        self, case: PatientCase | str | Mapping[str, Any], stage: Stage = "primary", **context: Any
    ) -> dspy.Prediction:
        """Discusses one case.

        Args:
            case: A text, a mapping of section names to texts, or a `PatientCase`; untrusted.
            stage: `primary` (diagnosis, other possible diagnoses, further tests) or `follow_up` (no tests).
            **context: Further fields of an example (the true diagnosis, id); they are not looked at.

        Returns:
            `most_likely` (None where there is none), `possible`, `tests`, `outcome` (`scored`, or why there is no
            diagnosis), `consensus`, `rounds`, `warnings` (such as a consensus that the doctors' own latest diagnoses
            contradict, by name), and `diagnosis` (a `Diagnosis` with every turn, cut and cost).

        Raises:
            DeclarationError: The case holds no text, the stage is unknown, or the LM's configuration is at fault.
        """
        if stage not in STAGES:
            raise DeclarationError(f"stage={stage!r}: a case has the stages {', '.join(STAGES)}")
        text = as_case(case).text(stage)
        talk, seen = Discussion(), text
        if isinstance(self.consultant, Consultant):
            talk, shown = self._show(text, talk, "consultant", 1)
            seen = shown.case
        choice = await self.consultant.acall(seen)
        specialties = choice.chosen if choice else (None,) * len(self.names)
        seats = tuple(Seat(name, specialty) for name, specialty in zip(self.names, specialties, strict=True))
        while talk.stopped is None:
            talk = await self._round(text, seats, stage, talk)
        talk, conclusion = await self._conclude(text, seats, stage, talk)
        return prediction_of(panel_diagnosis(stage, conclusion, talk, choice, self._facts(seats)))

    async def _round(self, case: str, seats: tuple[Seat, ...], stage: Stage, talk: Discussion) -> Discussion:
        """Returns the discussion with one more turn, and ended where a rule ends it."""
        talk, selection = await self._next(seats, talk)
        number = len(talk.turns) + 1
        place = {"number": number, "round": rules.round_of(number, self.order, self.settings.round)}
        leads = selection.speaker == SUPERVISOR
        talk, shown = self._show(case, talk, "supervisor" if leads else "doctor", place["round"])
        if leads and self.supervisor is not None:
            turn = await self.supervisor.acall(shown, roster_of(seats), stage, selection=selection, **place)
        else:
            seat = next(seat for seat in seats if seat.name == selection.speaker)
            turn = await self.doctors[seats.index(seat)].acall(shown, seat, stage, selection=selection, **place)
        return self._ended(replace(talk, turns=(*talk.turns, turn)), seats)

    async def _next(self, seats: tuple[Seat, ...], talk: Discussion) -> tuple[Discussion, Selection]:
        shown = None
        if isinstance(self.speaker, AutoSpeaker) and self.speaker.candidates(talk.turns):
            round_number = rules.round_of(len(talk.turns) + 1, self.order, self.settings.round)
            talk, shown = self._show("", talk, "speaker", round_number)
        return talk, await self.speaker.acall(talk.turns, shown, roster_of(seats))

    def _show(self, case: str, talk: Discussion, role: PanelRole, round_number: int) -> tuple[Discussion, Shown]:
        """Returns what a prompt shows, and the discussion with a note of what it leaves out."""
        limit = self.settings.prompt_tokens
        shown = cut_to(case, talk.turns, limit)
        if cut := shown.cut(round_number, role, limit):
            talk = replace(talk, cuts=(*talk.cuts, cut))
        return talk, shown

    def _ended(self, talk: Discussion, seats: tuple[Seat, ...]) -> Discussion:
        turns, latest = talk.turns, talk.turns[-1]
        if latest.role == "supervisor" and latest.readable and latest.consensus is True:
            if rules.consensus_counts(turns, seats):
                return replace(talk, turns=(*turns[:-1], replace(latest, accepted=True)), stopped="consensus")
        elif self.supervisor is None and rules.doctors_agree(turns, seats):
            return replace(talk, stopped="consensus")
        if rules.nothing_readable(turns, seats):
            return replace(talk, stopped="unreadable")
        if len(turns) >= rules.turn_limit(self.settings.rounds, self.order, self.settings.round):
            return replace(talk, stopped="rounds")
        return talk

    async def _conclude(
        self, case: str, seats: tuple[Seat, ...], stage: Stage, talk: Discussion
    ) -> tuple[Discussion, Conclusion]:
        """Returns the supervisor's accepted consensus, or what the concluder makes of the discussion."""
        latest = talk.turns[-1]
        if talk.stopped == "unreadable":
            return talk, Conclusion(rules.why_unreadable(talk.turns, seats))
        if latest.accepted and self.settings.conclude == "open" and isinstance(latest.outcome, Scored):
            possible = rules.others(latest.differentials, latest.most_likely)
            return talk, Conclusion(latest.outcome, "supervisor", possible, latest.tests)
        talk, shown = self._show(case, talk, "concluder", latest.round)
        return talk, await self.concluder.acall(shown, roster_of(seats), stage)

    def _facts(self, seats: tuple[Seat, ...]) -> dict[str, Any]:
        kept = ("doctors", "supervisor", "speaker", "allow_repeat", "rounds", "round", "conclude", "prompt_tokens")
        named = [seat.specialty for seat in seats]
        return {name: asdict(self.settings)[name] for name in kept} | {"specialties": named if any(named) else None}


def roster_of(seats: Sequence[Seat]) -> str:
    """Returns who sits on the panel, in one line."""
    return ", ".join(seat.title for seat in seats)
