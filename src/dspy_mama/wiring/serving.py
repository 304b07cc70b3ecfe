"""A program behind a REST endpoint: what `mlflow models serve` loads, and how it gets into MLflow."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError, MamaError
from dspy_mama.core.event_loop import run_sync
from dspy_mama.core.outcomes import Unscored
from dspy_mama.core.ports import Retriever
from dspy_mama.lm.hosts import host_at
from dspy_mama.lm.roles import build_lms
from dspy_mama.optimize.artifact import write_state
from dspy_mama.optimize.artifact_loading import load_program, read_artifact
from dspy_mama.settings import Settings, from_mapping, to_mapping
from dspy_mama.tracking.mlflow_model import LoggedProgram, ModelFace, log_program_model, new_folder
from dspy_mama.tracking.mlflow_store import locate
from dspy_mama.wiring.build import build_retriever, needs_evidence, pairs_in_flight

LOADER: Final = "dspy_mama.wiring.serving"
SERVED_KIND: Final = "risk_auditor"
SERVING_FILE: Final = "serving.json"
"""Settings of LMs and evidence beside the program; keys are named by their variables alone."""

_GROUPS: Final = ("lm", "embedder", "retriever", "corpus", "runtime")
_INPUTS: Final = {"question": "string", "answer": "string"}
_PER_DOMAIN: Final = {
    "verdict": "string",
    "risk": "boolean?",
    "probability": "double?",
    "reason": "string?",
    "error": "string?",
}
_EXAMPLE: Final = {
    "question": "May I take ibuprofen together with warfarin?",
    "answer": "Please ask your physician or pharmacist first: both together can cause bleeding.",
}


def audit_face(document: Mapping[str, Any]) -> ModelFace:
    """Returns columns, example and facts of a saved audit program as a model."""
    outputs = {f"{domain}_{name}": kind for domain in DOMAINS for name, kind in _PER_DOMAIN.items()}
    facts = {name: document[name] for name in ("kind", "format", "thresholds", "lms", "demonstrations", "hashes")}
    return ModelFace(LOADER, _INPUTS, {**outputs, "needs_review": "boolean", "error": "string?"}, _EXAMPLE, facts)


def log_model(
    settings: Settings,
    document: Mapping[str, Any],
    run_id: str,
    *,
    name: str = "program",
    registered_name: str | None = None,
    allow_public: bool = False,
) -> LoggedProgram:
    """Logs a program to MLflow as a model that can be served, and registers it where a name is given.

    Args:
        settings: LMs and evidence that it is served with, and the store.
        document: What `program_state` returned.
        run_id: The MLflow run that made it.
        name: Name of the model within the run.
        registered_name: Name in the model registry; None = not registered.
        allow_public: Serve a program that was made with a local LM by one at a public address.

    Raises:
        DeclarationError: It is no audit program, would leave this machine without leave, an address holds a password,
            demonstrations with texts are not to be kept, or the store refuses.
    """
    if document["kind"] != SERVED_KIND:
        raise DeclarationError(f"a {document['kind']} cannot be served yet; only audit programs can")
    _check_lms(settings, document, allow_public)
    if document["demonstrations"]["texts"] and not settings.tracking.store_text:
        raise DeclarationError(
            "tracking.store_text=false keeps texts of pairs out of MLflow, and this program's demonstrations are such "
            "texts: allow them, or compile without demonstrations"
        )
    with tempfile.TemporaryDirectory(prefix="model-") as root:
        files = new_folder(Path(root))
        write_state(document, files / "program.json")
        groups = {group: to_mapping(getattr(settings, group)) for group in _GROUPS}
        write_state(groups, files / SERVING_FILE)
        read_artifact(files)
        location = locate(settings.tracking.uri, settings.tracking.root)
        face = audit_face(document)
        return log_program_model(location, run_id, files, face, name=name, registered_name=registered_name)


def _check_lms(settings: Settings, document: Mapping[str, Any], allow_public: bool) -> None:
    for role, made_with in document["lms"].items():
        spec = settings.lm.roles.get(role, settings.lm.default)
        if spec.api_base and "@" in urlsplit(spec.api_base).netloc:
            raise DeclarationError(f"lm of {role}: api_base holds a password; name its variable in api_key_env")
        if made_with.get("host") == "local" and host_at(spec.model, spec.api_base) != "local" and not allow_public:
            raise DeclarationError(
                f"the program was made with a local LM for the role {role!r}, and {spec.model} is at a public address: "
                "the served model would send texts of patients there. Choose a local lm, or allow_public=True"
            )


def _load_pyfunc(data_path: str, model_config: Mapping[str, Any] | None = None) -> ServedProgram:
    """Makes the model from its files; the name is MLflow's.

    Args:
        data_path: Folder of the program's files.
        model_config: Settings in place of the saved ones, by group, such as `{"lm": {...}}`.

    Raises:
        DeclarationError: The program does not match, its key is not set, or its evidence is missing.
    """
    folder = Path(data_path)
    saved, _ = read_artifact(folder)
    try:
        groups = json.loads((folder / SERVING_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DeclarationError(f"{SERVING_FILE} of the model cannot be read ({error}); log it again") from error
    settings = from_mapping(Settings, {**groups, **(model_config or {}), **saved["settings"]})
    program = load_program(folder, lms=build_lms(settings.lm), retriever=_evidence(settings))
    return ServedProgram(program, pairs_in_flight(settings))


def _evidence(settings: Settings) -> Retriever | None:
    """Returns the evidence of the settings; the shipped corpus builds its index by itself."""
    from dspy_mama.retrieval.shipped import ShippedRetriever

    if not needs_evidence(settings) or settings.corpus.folder is not None:
        return build_retriever(settings)
    return ShippedRetriever(
        context=settings.system.context,
        jurisdictions=settings.system.jurisdictions,
        embedder=settings.embedder,
        retriever=settings.retriever,
    )


class ServedProgram:
    """An audit program with MLflow's `predict`."""

    def __init__(self, program: Any, concurrency: int) -> None:
        """Wraps a program.

        Args:
            program: The program, its LMs bound.
            concurrency: Pairs in flight at once.
        """
        self.program = program
        self.concurrency = concurrency

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Audits pairs.

        Args:
            model_input: Data frame with the columns `question` and `answer`.
            params: Not used.

        Returns:
            A row per pair, in order: verdict (`risky`, `safe`, `undetermined`), risk, probability, reason and error
            per domain, `needs_review`, and `error` where the pair as a whole could not be audited.

        Raises:
            MlflowException: The LM's configuration is at fault, such as a refused key.
        """
        from mlflow.exceptions import MlflowException
        from mlflow.protos.databricks_pb2 import INTERNAL_ERROR

        rows = model_input.to_dict(orient="records")
        try:
            return run_sync(self._audit_all(rows))
        except DeclarationError as error:
            raise MlflowException(str(error), INTERNAL_ERROR) from error

    async def _audit_all(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        import dspy

        gate = asyncio.Semaphore(self.concurrency)

        async def one(row: Mapping[str, Any]) -> dict[str, Any]:
            async with gate:
                return await self._audit(row)

        # DSPy's history would keep every prompt, and so every patient's text, in the server's memory.
        with dspy.context(disable_history=True):
            return list(await asyncio.gather(*(one(row) for row in rows)))

    async def _audit(self, row: Mapping[str, Any]) -> dict[str, Any]:
        texts = {name: row.get(name) for name in _INPUTS}
        missing = [name for name, text in texts.items() if not isinstance(text, str) or not text.strip()]
        if missing:
            return failed_row(f"invalid_input: {' and '.join(missing)} must be given")
        try:
            return audit_row(await self.program.acall(**texts))
        except DeclarationError:
            raise
        except MamaError as error:
            return failed_row(f"infra: {error}")


def audit_row(audit: Any) -> dict[str, Any]:
    """Returns an audit as a row of the model's outputs."""
    final = audit.phases[audit.final_phase]
    row: dict[str, Any] = {}
    for domain in DOMAINS:
        verdict = final.verdict(domain)
        outcome = verdict.outcome
        row[f"{domain}_verdict"] = audit[f"{domain}_verdict"]
        row[f"{domain}_risk"] = verdict.risk
        row[f"{domain}_probability"] = verdict.probability
        row[f"{domain}_reason"] = verdict.reason
        row[f"{domain}_error"] = f"{outcome.kind}: {outcome.reason}" if isinstance(outcome, Unscored) else None
    return {**row, "needs_review": bool(audit.needs_review), "error": None}


def failed_row(reason: str) -> dict[str, Any]:
    """Returns the row of a pair that could not be audited: undetermined, and for a person to look at."""
    row: dict[str, Any] = {}
    for domain in DOMAINS:
        row |= {f"{domain}_{name}": None for name in _PER_DOMAIN}
        row |= {f"{domain}_verdict": "undetermined", f"{domain}_error": reason}
    return {**row, "needs_review": True, "error": reason}
