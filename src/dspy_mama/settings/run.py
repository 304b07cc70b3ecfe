"""Data, and how a run is carried out and kept."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dspy_mama.settings.strict import STRICT


@dataclass(frozen=True, config=STRICT)
class DataSettings:
    """Pairs to audit.

    Attributes:
        name: Pairs: `sample`, `mednlp_chat`, `kqa`, or `table` (csv, jsonl, parquet, xlsx with a column mapping).
            Requests to answer safely: `medsafetybench`, `table`. Cases to diagnose: `mac`, `table`.
        path: File or folder; None only for `sample`.
        language: Which language's columns are read where a file has several.
        columns: Our field -> the file's column, for `table`.
        encoding: Text encoding; None = found from the bytes.
        limit: At most so many pairs, from the top.
        ids: Only these ids.
        split: `train`, `dev` or `test` by hash of the id, or a split of the data set's own such as
            `gpt4_balanced`; None = all.
        strict: K-QA only: a Neutral on a Must_have claim is risky too.
    """

    name: Literal["sample", "mednlp_chat", "kqa", "table", "medsafetybench", "mac"] = "sample"
    path: str | None = None
    language: str = "en"
    columns: dict[str, str] = Field(default_factory=dict)
    encoding: str | None = None
    limit: int | None = Field(default=None, ge=1)
    ids: tuple[str, ...] = ()
    split: str | None = None
    strict: bool = False


@dataclass(frozen=True, config=STRICT)
class RuntimeSettings:
    """How a run is carried out.

    Attributes:
        concurrency: Pairs in flight.
        max_unscored_rate: Share of final verdicts that may be unscored before the run fails (exit 3), in [0, 1].
        max_failures_in_row: Pairs that fail one after the other on infrastructure before the run stops.
        resume: Continue a run that was started with the same settings, if there is one.
        progress: Show a progress bar (only on a terminal).
    """

    kind: Literal["local"] = "local"
    concurrency: int = Field(default=8, ge=1)
    max_unscored_rate: float = Field(default=0.05, ge=0, le=1)
    max_failures_in_row: int = Field(default=10, ge=1)
    resume: bool = True
    progress: bool = True


@dataclass(frozen=True, config=STRICT)
class TrackingSettings:
    """Where runs are kept.

    Attributes:
        kind: `mlflow` or `none` (the run folder is written all the same).
        uri: MLflow store; None = sqlite under `root`.
        root: Folder of runs, artifacts and the sqlite store.
        experiment: MLflow experiment; `{data}` stands for the data set's name.
        store_text: Keep texts in the records (the report shows them): questions, answers, cases, and what LMs wrote
            about them, which may quote them.
        traces: Share of pairs traced in MLflow, 0 to 1.
    """

    kind: Literal["mlflow", "none"] = "mlflow"
    uri: str | None = None
    root: str = "mlruns"
    experiment: str = "dspy_mama/{data}"
    store_text: bool = True
    traces: float = Field(default=0.0, ge=0, le=1)


@dataclass(frozen=True, config=STRICT)
class ExperimentSettings:
    """Name of a study, and how its intervals are made.

    Attributes:
        name: Name of the study.
        seed: Seed of the bootstrap.
        resamples: Resamples behind each interval.
        interval: `percentile` (the paper's), or `bca` (bias-corrected and accelerated).
        cluster_by_question: Resample pairs with the same question together.
    """

    name: str = "default"
    seed: int = 0
    resamples: int = Field(default=1000, ge=1)
    interval: Literal["percentile", "bca"] = "percentile"
    cluster_by_question: bool = False
