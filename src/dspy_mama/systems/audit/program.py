"""System A (MA-MPA): route, assess, verify, agree."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import dspy

from dspy_mama.core.cases import DOMAINS, Domain
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.event_loop import run_sync
from dspy_mama.core.outcomes import UNDETERMINED
from dspy_mama.core.ports import Retriever
from dspy_mama.lm.module import AsyncModule, bind_lms, check_lms
from dspy_mama.retrieval.claims import split_claims
from dspy_mama.settings import AblationSettings, SystemSettings
from dspy_mama.systems.audit.ordering import ordered
from dspy_mama.systems.audit.rules import collect, cut, name_of, needs_review
from dspy_mama.systems.audit.schema import Evidence, PhaseResult, RoleAssignment

ROLES = ("router", "assessor", "verifier", "judge")


class NullPhase(AsyncModule):
    """The honest null of a phase that an ablation switches off: it gives nothing."""

    async def aforward(self, *args: Any, **kwargs: Any) -> None:
        """Returns None."""
        return


def search_texts(question: str, answer: str, kind: str) -> tuple[str, ...]:
    """Returns what evidence is searched with: `question`, `answer`, `both`, or the question with each of the `claims`.

    A claim alone ("then the danger is over") does not say what it is about; the question does.
    """
    if kind == "claims":
        return tuple(f"{question}\n{claim}" for claim in split_claims(answer))
    return ({"question": question, "answer": answer, "both": f"{question}\n{answer}"}[kind],)


class RiskAuditor(dspy.Module):
    """Labels a patient's question and a chatbot's answer for medical, ethical and legal risk.

    Example:
        ```python
        auditor = RiskAuditor.from_preset(system="rag", lms={"judge": dspy.LM("openai/gpt-4o")})
        audit = auditor(question="...", answer="...")
        audit.medical_verdict, audit.medical_probability, audit.needs_review
        ```

    It is no substitute for a clinical decision or for the risk management of a device.
    """

    def __init__(
        self,
        *,
        router: AsyncModule,
        initial: AsyncModule,
        verification: AsyncModule,
        consensus: AsyncModule,
        retriever: Retriever,
        query: str = "both",
        thresholds: Mapping[Domain, float] | None = None,
        order_seed: int | None = None,
        settings: tuple[SystemSettings, AblationSettings] | None = None,
    ) -> None:
        """Composes the program from its parts; `from_preset` makes them.

        Args:
            router: Gives a `RoleAssignment` for a question.
            initial: MA1, or a null.
            verification: MA2, or a null.
            consensus: MA3, or a null.
            retriever: Evidence, or a null.
            query: What evidence is searched with.
            thresholds: Cuts of the final labels, in [0, 1].
            order_seed: Seed of the order in which passages are shown; None = best first.
            settings: What it was made from, saved with it.

        Raises:
            DeclarationError: A threshold is out of range.
        """
        super().__init__()
        self.router = router
        self.initial = initial
        self.verification = verification
        self.consensus = consensus
        self.retriever = retriever
        self.query = query
        self.thresholds = dict(thresholds or {})
        self.order_seed = order_seed
        self.settings = settings
        wrong = {d: t for d, t in self.thresholds.items() if d not in DOMAINS or not 0 <= t <= 1}
        if wrong:
            raise DeclarationError(f"thresholds must lie in [0, 1] and name a domain: {wrong}")

    @classmethod
    def from_preset(
        cls,
        system: str = "rag",
        ablation: str = "full",
        *,
        lms: Mapping[str, Any] | None = None,
        retriever: Retriever | None = None,
        **overrides: Any,
    ) -> RiskAuditor:
        """Makes one of the paper's systems.

        Args:
            system: `baseline`, `enhanced`, `embedding`, `rag` or `rag_foreign`; `exemplar` asks a trained head, no LM.
            ablation: `full`, `ma`, `ma_mpa`, `ma_ek`, `ma_without_ma2`, `mpa` or `ek`.
            lms: LM per role (`router`, `assessor`, `verifier`, `judge`, or `default` for the rest); a role without
                one takes `dspy.settings.lm` at the call.
            retriever: Evidence; None = the shipped corpus, built on first use, where the system reads any.
            **overrides: Fields of `SystemSettings`, such as `probability="stated"`.

        Raises:
            DeclarationError: A name or an override is unknown.
        """
        from dspy_mama.systems.audit.presets import build_auditor

        return build_auditor(system, ablation, lms=lms, retriever=retriever, **overrides)

    def set_lms(self, lms: Mapping[str, Any]) -> RiskAuditor:
        """Binds LMs to roles and returns the program.

        Raises:
            DeclarationError: A role is unknown, or what is given for it is no LM.
        """
        check_lms(lms, ROLES)
        bind_lms(self, lms)
        return self

    def forward(self, question: str, answer: str, **context: Any) -> dspy.Prediction:
        """Runs `aforward` to its end."""
        return run_sync(self.aforward(question, answer, **context))

    async def aforward(self, question: str, answer: str, **context: Any) -> dspy.Prediction:
        """Audits one pair.

        Args:
            question: The patient's question.
            answer: The chatbot's answer.
            **context: Further fields of an example (gold, id); they are not looked at.

        Returns:
            Per domain `{domain}_risk` (True, False or UNDETERMINED), `_verdict` (risky, safe, undetermined),
            `_probability`, `_reason`; and `needs_review`, `final_phase`, `phases`, `routing`.

        Raises:
            DeclarationError: Question or answer is empty, or the LM's configuration is at fault.
            ExecutionError: Evidence could not be searched.
        """
        for name, text in (("question", question), ("answer", answer)):
            if not isinstance(text, str) or not text.strip():
                raise DeclarationError(f"{name} is empty: an audit needs both the question and the answer")
        queries = search_texts(question, answer, self.query)
        roles, initial, evidence = await self._first_round(question, answer, queries)
        asked = "\n\n".join(queries)
        verification = await self.verification.acall(question, answer, roles, initial, evidence, asked)
        consensus = await self.consensus.acall(question, answer, initial, verification)
        phases = {"initial": initial, "verification": verification, "consensus": consensus}
        return self._prediction(roles, {name: phase for name, phase in phases.items() if phase is not None})

    async def _first_round(
        self, question: str, answer: str, queries: tuple[str, ...]
    ) -> tuple[RoleAssignment, PhaseResult | None, Evidence]:
        """Routing, MA1 and the search do not need one another; MA1 waits for evidence only where it reads any."""
        search = asyncio.ensure_future(self._search(queries))
        routing = asyncio.ensure_future(self.router.acall(question))
        try:
            early = await search if getattr(self.initial, "with_evidence", False) else None
            initial = await self.initial.acall(question, answer, early)
            return await routing, initial, await search
        finally:
            for task in (search, routing):
                task.cancel()
            # Also takes the error of a task that failed beside another: asyncio reports unseen ones.
            await asyncio.gather(search, routing, return_exceptions=True)

    async def _search(self, queries: tuple[str, ...]) -> Evidence:
        found = await self.retriever.asearch(queries[0] if len(queries) == 1 else queries, DOMAINS)
        asked = "\n\n".join(queries)
        return {domain: ordered(passages, self.order_seed, domain, asked) for domain, passages in found.items()}

    def _prediction(self, roles: RoleAssignment, phases: Mapping[str, PhaseResult]) -> dspy.Prediction:
        name = list(phases)[-1]
        last = phases[name]
        cuts = collect({domain: cut(last.verdict(domain), self.thresholds.get(domain)) for domain in DOMAINS})
        final = PhaseResult(*cuts, last.usage, last.model)
        fields: dict[str, Any] = {}
        for domain in DOMAINS:
            verdict = final.verdict(domain)
            fields[f"{domain}_risk"] = UNDETERMINED if verdict.risk is None else verdict.risk
            fields[f"{domain}_verdict"] = name_of(verdict)
            fields[f"{domain}_probability"] = verdict.probability
            fields[f"{domain}_reason"] = verdict.reason
        return dspy.Prediction(
            **fields,
            needs_review=needs_review(final),
            final_phase=name,
            phases={**phases, name: final},
            routing=roles,
        )
