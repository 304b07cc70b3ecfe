"""A program as one JSON file: prompts, demonstrations, thresholds and the settings it was made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ports import Retriever
from dspy_mama.settings import AblationSettings, SystemSettings, from_mapping, to_mapping
from dspy_mama.systems.audit import RiskAuditor, build_program

FORMAT: Final = 1
KIND: Final = "risk_auditor"


def program_state(program: RiskAuditor) -> dict[str, Any]:
    """Returns a program as plain data; LMs are kept by name alone, never with address or key.

    Raises:
        DeclarationError: The program was not made from settings, so that nothing could rebuild it.
    """
    if program.settings is None:
        raise DeclarationError("this program was composed by hand; only programs made by from_preset can be saved")
    system, ablation = program.settings
    # An LM is an address, a key's name or a live engine: none of them belongs into a file.
    bare = program.deepcopy()
    for _, predictor in bare.named_predictors():
        predictor.lm = None
    state = bare.dump_state(json_mode=True)
    lms = {p.role: p.lm.model for _, p in program.named_predictors() if p.lm is not None}
    return {
        "kind": KIND,
        "format": FORMAT,
        "system": to_mapping(system),
        "ablation": to_mapping(ablation),
        "thresholds": dict(program.thresholds),
        "lms": lms,
        "state": state,
    }


def save_program(program: RiskAuditor, path: str | Path) -> Path:
    """Writes a program to a JSON file and returns its path.

    Raises:
        DeclarationError: The program cannot be saved, or the file cannot be written.
    """
    target = Path(path)
    text = json.dumps(program_state(program), ensure_ascii=False, indent=1, sort_keys=True)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(target.suffix + ".part")
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        raise DeclarationError(f"{target}: cannot be written ({error})") from error
    return target


def _read(path: Path) -> dict[str, Any]:
    file = path / "program.json" if path.is_dir() else path
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DeclarationError(f"{file}: not a saved program ({error})") from error
    if not isinstance(saved, dict) or saved.get("kind") != KIND:
        raise DeclarationError(f"{file}: not a saved RiskAuditor")
    if saved.get("format") != FORMAT:
        raise DeclarationError(f"{file}: saved in format {saved.get('format')}, this version reads format {FORMAT}")
    return saved


def load_program(
    path: str | Path, *, lms: Mapping[str, Any] | None = None, retriever: Retriever | None = None
) -> RiskAuditor:
    """Rebuilds a saved program.

    Args:
        path: The file, or a run folder that holds `program.json`.
        lms: LM per role; a role without one takes `dspy.settings.lm`. Saved programs bring no LM with them.
        retriever: Evidence; None = the shipped corpus, where the program reads any.

    Raises:
        DeclarationError: The file is no saved program, or its state does not fit the program that its settings make
            (such as the state of an ablation under the settings of the full method).
    """
    where = Path(path)
    saved = _read(where)
    try:
        system = from_mapping(SystemSettings, saved["system"])
        ablation = from_mapping(AblationSettings, saved["ablation"])
        state, thresholds = dict(saved["state"]), dict(saved["thresholds"])
    except (KeyError, TypeError, ValueError) as error:
        raise DeclarationError(f"{where}: incomplete ({error})") from error
    program = build_program(system, ablation, retriever)
    _check_names(where, program, state)
    for predictor in state.values():
        if isinstance(predictor, dict):
            predictor["lm"] = None
    try:
        program.load_state(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DeclarationError(f"{where}: its state cannot be loaded ({error})") from error
    # Above a cut past 1, or beside NaN, no probability would be risky: every label would read as safe.
    unusable = {d: t for d, t in thresholds.items() if d not in DOMAINS or not _is_share(t)}
    if unusable:
        raise DeclarationError(f"{where}: thresholds must lie in [0, 1] and name a domain: {unusable}")
    program.thresholds = thresholds
    return program.set_lms(lms) if lms else program


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _is_predictor(state: Any) -> bool:
    """Tells whether a part of a state has the shape of a predictor's: a damaged file shows here, not in a call."""
    if not isinstance(state, dict) or not isinstance(state.get("signature"), dict):
        return False
    demos = state.get("demos", [])
    fields_are_list = isinstance(state["signature"].get("fields"), list)
    return fields_are_list and isinstance(demos, list) and all(isinstance(demo, dict) for demo in demos)


def _check_names(where: Path, program: RiskAuditor, state: Mapping[str, Any]) -> None:
    """Refuses a state whose predictors or fields are not those of the program."""
    wanted = dict(program.named_predictors())
    found = {name for name in state if name != "metadata"}
    if found != set(wanted):
        missing, extra = sorted(set(wanted) - found), sorted(found - set(wanted))
        raise DeclarationError(
            f"{where}: its state does not fit its settings (missing: {missing}, not in this program: {extra}); "
            "an ablated program loads only into the same ablation"
        )
    for name, predictor in wanted.items():
        if not _is_predictor(state[name]):
            raise DeclarationError(f"{where}: the state of {name} is damaged; save or compile the program again")
        fields = len(predictor.signature.dump_state()["fields"])
        if len(state[name]["signature"]["fields"]) != fields:
            raise DeclarationError(f"{where}: {name} was saved with other fields; compile it again with this version")
