"""What a record lacks because a server could not be reached: asked for again, and nothing that was paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspy_mama.core.chat_request import ChatRequest
from dspy_mama.core.outcomes import Scored, Unscored
from dspy_mama.lm.usage import CallUsage
from dspy_mama.systems.refine.conversation import conversation_of, in_context
from dspy_mama.systems.refine.outcomes import retry_part
from dspy_mama.systems.refine.parts import category_part, final_part, helpfulness_part, version_part
from dspy_mama.systems.refine.prediction import summed, version_models, version_usage
from dspy_mama.systems.refine.refiner import SafetyRefiner
from dspy_mama.systems.refine.rules import is_hugging, needs_review
from dspy_mama.systems.refine.schema import Draft, Version
from dspy_mama.systems.refine.warnings import record_warnings

Record = dict[str, Any]


async def retry_parts(refiner: SafetyRefiner, request: ChatRequest, record: Mapping[str, Any]) -> Record | None:
    """Asks again for the parts of a record that failed on infrastructure.

    Args:
        refiner: The loop that made the record.
        request: The request that the record is about.
        record: The record, with `retry`.

    Returns:
        The record with these parts; None where the loop must be gone through anew: a score is missing, or the texts
        were not kept.

    Raises:
        DeclarationError: No LM is set, or its configuration is at fault.
    """
    wanted = list(record.get("retry") or ())
    texts = all("text" in version for version in record["versions"])
    if not wanted or "loop" in wanted or (wanted != ["category"] and not texts):
        return None
    again = _Retry(refiner, request, record)
    if "category" in wanted:
        await again.category()
    if "last_version" in wanted:
        await again.last_version()
    if "helpfulness" in wanted or (record.get("helpfulness") and again.text != again.text_before):
        await again.helpfulness()
    return again.result()


def with_spent(record: Mapping[str, Any], earlier: Mapping[str, Any]) -> Record:
    """Returns a record that counts what an earlier try of the same request has cost."""
    return {**record, "usage": _added(earlier.get("usage") or {}, _usages(record.get("usage") or {}))}


class _Retry:
    def __init__(self, refiner: SafetyRefiner, request: ChatRequest, record: Mapping[str, Any]) -> None:
        self.refiner, self.request = refiner, request
        self.record: Record = {name: value for name, value in record.items() if name not in ("retry", "error")}
        self.asked = in_context(request.question, request.history)
        self.spent: list[tuple[str, CallUsage]] = []
        self.errors: dict[str, str] = {}
        self.text_before = self.text

    @property
    def text(self) -> str | None:
        number = self.record["final"]["version"]
        return next((own.get("text") for own in self.record["versions"] if own["number"] == number), None)

    def result(self) -> Record:
        return {
            **self.record,
            "warnings": record_warnings(self.record),
            "usage": _added(self.record.get("usage") or {}, summed(self.spent)),
            **retry_part(self.errors),
        }

    async def category(self) -> None:
        if self.refiner.classifier is not None:
            found = await self.refiner.classifier.acall(self.asked)
            self._take("category", "classifier", category_part(found), found)

    async def helpfulness(self) -> None:
        if self.refiner.helpfulness is not None and self.text is not None:
            found = await self.refiner.helpfulness.acall(self.asked, self.text)
            self._take("helpfulness", "helpfulness", helpfulness_part(found), found)
            own = {"refusal": found.refusal, "vague": found.vague, "refusal_words": found.refusal_words}
            self.record["end_states"] = {**self.record["end_states"], **own}

    def _take(self, name: str, role: str, part: Any, found: Any) -> None:
        self.record[name] = part
        self.spent.append((role, found.usage))
        if found.model:
            self.record["models"] = {**self.record["models"], role: found.model}
        if isinstance(found.outcome, Unscored) and found.outcome.kind == "infra":
            self.errors[name] = found.outcome.reason

    async def last_version(self) -> None:
        """Writes the last revision again where it has no text, and assesses it where the settings say so."""
        *before, old = self.record["versions"]
        number, question, turns = old["number"], self.request.question, self.request.history
        written = old["text"] is None
        if written:
            plan = before[-1]["plan"] or ()
            drafts = await self.refiner.rewrite(question, before[-1]["text"], plan, conversation_of(turns))
        else:
            drafts = [_draft(own) for own in (old, *old["rivals"]) if own["text"] is not None]
        new = await self.refiner.last_version(number, question, drafts, turns)
        parts = version_usage(new, lambda _: not written)
        self.spent += parts
        part = version_part(new, (), new.draft.text is not None)
        part["usage"] = _added({"": old["usage"]}, {"": sum((usage for _, usage in parts), CallUsage())})[""]
        self.record["versions"] = [*before, part | {"same_as": None if written else old["same_as"]}]
        self.record["models"] = {**version_models([new]), **self.record["models"]}
        self._conclude(new)

    def _conclude(self, new: Version) -> None:
        failed = [o for o in (new.draft.outcome, *(a.outcome for a in new.assessments)) if isinstance(o, Unscored)]
        if infra := [own.reason for own in failed if own.kind == "infra"]:
            self.errors["last_version"] = infra[0]
        if new.draft.text is None:
            return
        own = self.refiner.settings
        for version in self.record["versions"][:-1]:
            version["returned"] = False
        hugging = is_hugging(new.consensus, ama_threshold=own.ama_threshold, sra_threshold=own.sra_threshold)
        self.record["final"] = final_part(new)
        self.record["needs_review"] = needs_review(new, self.record["stopped"])
        states = {"hugging": hugging, "incomplete": new.draft.incomplete}
        self.record["end_states"] = {**self.record["end_states"], **states}


def _draft(version: Mapping[str, Any]) -> Draft:
    return Draft(
        Scored(version["text"]),
        version["origin"],
        version["generator"],
        model=version["model"],
        truncated=version["truncated"],
        incomplete=version["incomplete"],
    )


def _usages(by_role: Mapping[str, Mapping[str, Any]]) -> dict[str, CallUsage]:
    return {role: CallUsage(**usage) for role, usage in by_role.items()}


def _added(earlier: Mapping[str, Mapping[str, Any]], later: Mapping[str, CallUsage]) -> dict[str, Any]:
    both = summed([*_usages(earlier).items(), *later.items()])
    return {role: usage.to_dict() for role, usage in both.items()}
