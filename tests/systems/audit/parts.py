"""A retriever in memory and helpers that the audit's tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dspy_mama.core.cases import DOMAINS, Passage
from dspy_mama.core.errors import ExecutionError
from dspy_mama.systems.audit import RiskAuditor
from scripted import default_values, fields_of, kind_of, scripted_lm, user_of

PAIR = {"question": "Can I take twice the dose?", "answer": "Yes, double it."}


class MemoryRetriever:
    """Two passages a domain; keeps what it was asked."""

    def __init__(self, *, fail: bool = False, text: str = "evidence on {domain}") -> None:
        self.queries: list[str] = []
        self.fail = fail
        self.text = text

    async def asearch(self, query: str, domains: Any) -> dict[Any, tuple[Passage, ...]]:
        self.queries.append(query)
        if self.fail:
            raise ExecutionError("the store is down")
        return {
            domain: tuple(
                Passage(id=f"{domain}#{n}", text=self.text.format(domain=domain), title=f"{domain} {n}", score=0.5)
                for n in (1, 2)
            )
            for domain in domains
        }

    def describe(self) -> dict[str, Any]:
        return {"kind": "memory"}

    def __deepcopy__(self, memo: dict[int, Any]) -> MemoryRetriever:
        return self


def auditor(
    lm: Any = None, system: str = "rag", ablation: str = "full", retriever: Any = None, **overrides: Any
) -> RiskAuditor:
    """A preset whose every role has the same LM; a dict binds roles."""
    lms = lm if isinstance(lm, dict) else {"default": lm} if lm is not None else None
    return RiskAuditor.from_preset(system, ablation, lms=lms, retriever=retriever or MemoryRetriever(), **overrides)


def calls(lm: Any) -> list[tuple[str, Any, Any]]:
    """The sequence of calls, side-by-side ones in a fixed order: kind, system message, last message."""
    return sorted((kind_of(r), r.system, user_of(r)) for r in lm.requests)


def kinds(lm: Any) -> list[str]:
    return sorted(kind_of(request) for request in lm.requests)


def by_kind(**scripts: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A script per kind of call; the others answer with defaults."""

    def script(request: Any) -> Any:
        values = default_values(fields_of(request))
        chosen = scripts.get(kind_of(request))
        return values if chosen is None else chosen(values)

    return script


def labels(**risks: Any) -> Callable[[Any], Any]:
    """Sets some labels of a reply that holds all domains."""
    return lambda values: {**values, **{f"{domain}_risk": risk for domain, risk in risks.items()}}


__all__ = ["DOMAINS", "PAIR", "MemoryRetriever", "auditor", "by_kind", "calls", "kinds", "labels", "scripted_lm"]
