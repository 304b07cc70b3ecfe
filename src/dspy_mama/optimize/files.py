"""What a compilation leaves in its folder: splits, candidates, the program, what changed, and the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dspy_mama.datasets.stratified import pairs_hash, split_document
from dspy_mama.optimize.artifact import program_state, write_state
from dspy_mama.optimize.diff import diff_states
from dspy_mama.optimize.metering import unmetered
from dspy_mama.optimize.result import CompileResult
from dspy_mama.settings import OptimizerSettings, to_mapping


def write_result(folder: Path, result: CompileResult, settings: OptimizerSettings, demos: Any = "keep") -> None:
    """Writes a compilation into a folder.

    Args:
        folder: Made if it is not there.
        result: The compilation.
        settings: The optimiser's settings.
        demos: `keep` or `strip` texts of pairs in demonstrations.

    Raises:
        DeclarationError: A file cannot be written.
    """
    write_state(split_document(result.splits, settings.split.salt), folder / "splits.json")
    base = program_state(unmetered(result.candidates[0].program, result.program))
    chosen = diff_states(base, base)
    for number, candidate in enumerate(result.candidates):
        state = program_state(unmetered(candidate.program, result.program), demos=demos)
        diff = diff_states(base, state)
        write_state(state, folder / "candidates" / f"{number:02d}.json")
        _write_text(folder / "candidates" / f"{number:02d}.diff.txt", diff.text)
        if candidate is result.chosen:
            chosen = diff
    write_state(chosen.to_dict(), folder / "diff.json")
    _write_text(folder / "diff.txt", chosen.text)
    write_state(compiled_state(result, settings, demos=demos), folder / "program.json")
    write_state(result.to_dict(), folder / "compile.json")


def _write_text(path: Path, text: str) -> None:
    path.write_text(text or "nothing was changed\n", encoding="utf-8")


def origin_of(result: CompileResult, settings: OptimizerSettings) -> dict[str, Any]:
    """Returns what an artifact keeps of how it was made: settings, hashes of the data, figures; no text."""
    return {
        "optimizer": to_mapping(settings),
        "data": {name: pairs_hash(pairs) for name, pairs in result.splits.items()},
        "evidence": dict(result.program.retriever.describe()),
        "validation": result.to_dict()["validation"],
        "kept": result.kept,
    }


def compiled_state(result: CompileResult, settings: OptimizerSettings, *, demos: Any = "keep") -> dict[str, Any]:
    """Returns the artifact of a compilation as plain data."""
    return program_state(result.program, origin=origin_of(result, settings), demos=demos)
