"""Saved programs come back as they were, or are refused with the reason."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import object_hash
from dspy_mama.core.ports import Retriever
from dspy_mama.lm.hosts import refuse_leaving
from dspy_mama.optimize.artifact import FORMAT
from dspy_mama.optimize.artifact_hashes import content_hash, differing, prompt_hashes
from dspy_mama.optimize.artifact_kinds import KINDS, ProgramKind
from dspy_mama.optimize.artifact_shape import damage_of
from dspy_mama.settings import from_mapping

logger = logging.getLogger(__name__)

OnMismatch = Literal["refuse", "warn"]

_FILES: Final = ("program.json", "data/program/program.json")
"""In a run folder, and in an MLflow model."""
_EVIDENCE: Final = ("kind", "revision", "embedder", "scope")
"""What tells one body of evidence from another."""


def program_file(path: str | Path) -> Path:
    """Returns the file of a saved program: the path itself, or the one in a run's or an MLflow model's folder."""
    where = Path(path)
    if not where.is_dir():
        return where
    return next((where / name for name in _FILES if (where / name).is_file()), where / _FILES[0])


def read_artifact(path: str | Path) -> tuple[dict[str, Any], ProgramKind]:
    """Reads a saved program as plain data, with its kind. Only JSON is read: nothing in it can run.

    Raises:
        DeclarationError: It is no saved program, or of a format that this version does not read.
    """
    file = program_file(path)
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DeclarationError(f"{file}: not a saved program ({error})") from error
    kind = KINDS.get(str(saved.get("kind"))) if isinstance(saved, dict) else None
    if kind is None:
        raise DeclarationError(f"{file}: not a saved program; kinds are {', '.join(KINDS)}")
    if saved.get("format") != FORMAT:
        found = saved.get("format")
        newer = isinstance(found, int) and found > FORMAT
        todo = "update dspy-mama" if newer else "save or compile the program again"
        raise DeclarationError(f"{file}: saved in format {found!r}, this version reads format {FORMAT}; {todo}")
    if damage := damage_of(saved):
        raise DeclarationError(f"{file}: is damaged ({damage}); save or compile the program again")
    return saved, kind


def load_program(
    path: str | Path,
    *,
    lms: Mapping[str, Any] | None = None,
    retriever: Retriever | None = None,
    on_mismatch: OnMismatch = "refuse",
    allow_public: bool = False,
) -> Any:
    """Rebuilds a saved program. No pickle is read, and no LM comes with it.

    Its attributes `artifact` and `origin` are the hash of the file's content, and what it says of how it was made.

    Args:
        path: The file, a run folder that holds `program.json`, or the folder of an MLflow model.
        lms: LM per role; a role without one takes `dspy.settings.lm`.
        retriever: Evidence; None = the shipped corpus, where the program reads any.
        on_mismatch: What to do where the file was changed after it was saved, or prompts, criteria or evidence of
            this version are not those it was made with: `refuse`, or `warn` and go on with the saved ones.
        allow_public: Let a program that was made with a local LM take `dspy.settings.lm` at a public address.

    Raises:
        DeclarationError: The file is no saved program, is damaged, or does not match (such as the state of an
            ablation under the settings of the full method); or its LM was local and `dspy.settings.lm` is not.
    """
    saved, kind = read_artifact(path)
    where = program_file(path)
    groups = program_groups(where, saved, kind)
    program = _restored(where, saved, kind.build(groups, retriever))
    for reason in _mismatches(saved, kind, groups, program, retriever):
        if on_mismatch == "refuse":
            raise DeclarationError(f"{where}: {reason}, or load it as it is with on_mismatch='warn'")
        logger.warning("%s: %s", where, reason)
    program.artifact, program.origin = saved["hashes"]["content"], saved["origin"]
    if lms:
        program.set_lms(lms)
    if not allow_public:
        _keep_local(program, saved["lms"])
    return program


def program_groups(where: Path, saved: Mapping[str, Any], kind: ProgramKind) -> dict[str, Any]:
    """Returns the settings of a saved program, by group.

    Raises:
        DeclarationError: A group is missing, or this version does not know one of its settings.
    """
    missing = [name for name in kind.groups if name not in saved["settings"]]
    if missing:
        raise DeclarationError(f"{where}: incomplete (settings without {', '.join(missing)})")
    try:
        return {name: from_mapping(group, saved["settings"][name]) for name, group in kind.groups.items()}
    except DeclarationError as error:
        raise DeclarationError(f"{where}: its settings are not those of this version ({error})") from error


def _restored(where: Path, saved: Mapping[str, Any], program: Any) -> Any:
    """Returns the uncompiled program with the saved prompts, demonstrations and thresholds."""
    demos = saved["demonstrations"]
    if demos["count"] and not demos["kept"]:
        raise DeclarationError(
            f"{where}: its demonstrations were left out when it was saved (tracking.store_text=false), so it is not "
            "the program that ran; load the file that was compiled"
        )
    state = copy.deepcopy(saved["state"])
    _check_names(where, program, state)
    for name, predictor in program.named_predictors():
        known = {key: state[name][key] for key in ("signature", "demos", "fields") if key in state[name]}
        try:
            predictor.load_state({**known, "lm": None})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DeclarationError(f"{where}: the state of {name} cannot be loaded ({error})") from error
    thresholds = dict(saved["thresholds"])
    # Above a cut past 1, or beside NaN, no probability would be risky: every label would read as safe.
    unusable = {d: t for d, t in thresholds.items() if d not in DOMAINS or not _is_share(t)}
    if unusable:
        raise DeclarationError(f"{where}: thresholds must lie in [0, 1] and name a domain: {unusable}")
    if hasattr(program, "thresholds"):
        program.thresholds = thresholds
    return program


def _mismatches(
    saved: Mapping[str, Any],
    kind: ProgramKind,
    groups: Mapping[str, Any],
    program: Any,
    retriever: Retriever | None,
) -> list[str]:
    """Returns what is not as it was when the program was saved, each with what to do."""
    hashes = saved["hashes"]
    fresh = kind.build(groups, getattr(program, "retriever", None))
    found = []
    if hashes["content"] != content_hash(saved):
        found.append("it was changed after it was saved (its hash does not fit): take the original")
    if hashes["criteria"] != object_hash(kind.criteria(groups), 16):
        found.append("it was made with other criteria of risk than this version has: compile it again")
    others = differing(hashes["uncompiled"], prompt_hashes(fresh))
    if others:
        found.append(f"it was made from other prompts than this version has ({', '.join(others)}): compile it again")
    elif changed := differing(hashes["prompts"], prompt_hashes(program)):
        found.append(f"prompts are not sent as they were when it was saved ({', '.join(changed)}): compile it again")
    if other := _other_dspy(saved["versions"].get("dspy", "an unknown version")):
        found.append(other)
    evidence = _other_evidence(saved["origin"].get("evidence"), program, retriever)
    return [*found, evidence] if evidence else found


def _other_dspy(made_with: str) -> str | None:
    """Tells whether a program was made with another major version of DSPy, whose states and calls may differ."""
    now = metadata.version("dspy")
    if made_with.split(".")[0] == now.split(".")[0]:
        return None
    return f"it was made with DSPy {made_with}, and {now} is installed: install that one, or compile it again"


def _other_evidence(made_with: Any, program: Any, retriever: Retriever | None) -> str | None:
    """Tells evidence apart where the file says what the program was made with."""
    if not isinstance(made_with, dict) or not hasattr(program, "retriever"):
        return None
    now = json.loads(json.dumps(dict(program.retriever.describe()), default=str))
    differ = [name for name in _EVIDENCE if made_with.get(name) != now.get(name)]
    if not differ:
        return None
    source = "the retriever given" if retriever is not None else "the shipped corpus"
    return f"it was made with other evidence than {source} ({', '.join(differ)} differ): give its retriever=..."


def _keep_local(program: Any, lms: Mapping[str, Any]) -> None:
    """Holds roles whose LM was local to local ones, now and at every call."""
    import dspy

    for name, predictor in program.named_predictors():
        role = getattr(predictor, "role", name)
        made_with = lms.get(role)
        if predictor.lm is not None or made_with is None or made_with["host"] != "local":
            continue
        predictor.local_only = True
        if dspy.settings.lm is not None:
            refuse_leaving(role, dspy.settings.lm)


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _check_names(where: Path, program: Any, state: Mapping[str, Any]) -> None:
    """Refuses a state whose predictors or fields are not those of the program."""
    wanted = dict(program.named_predictors())
    if set(state) != set(wanted):
        missing, extra = sorted(set(wanted) - set(state)), sorted(set(state) - set(wanted))
        raise DeclarationError(
            f"{where}: its state does not fit its settings (missing: {missing}, not in this program: {extra}); "
            "an ablated program loads only into the same ablation"
        )
    for name, predictor in wanted.items():
        fields = len(predictor.signature.dump_state()["fields"])
        if len(state[name]["signature"]["fields"]) != fields:
            raise DeclarationError(f"{where}: {name} was saved with other fields; compile it again with this version")
