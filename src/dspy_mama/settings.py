"""Settings as frozen dataclasses, one per conf group; a wrong one fails before the first token is spent."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from dspy_mama.core.errors import DeclarationError

_STRICT = ConfigDict(extra="forbid")

SystemName = Literal["baseline", "enhanced", "embedding", "rag", "rag_foreign"]
AblationName = Literal["full", "ma", "ma_mpa", "ma_ek", "ma_without_ma2", "mpa", "ek"]
ProbabilitySource = Literal["token", "stated", "none"]


@dataclass(frozen=True, config=_STRICT)
class RouterSettings:
    """How a question gets its specialist (expert generation).

    Attributes:
        scope: `case` names one specialty per question; `agnostic` sends every question to a general physician.
        allow_list: Permitted specialties; empty = open vocabulary.
        aliases: Other spellings, to the specialty of the allow-list that they mean.
        mapping: File (csv or json) of curated specialties per question; replaces the LM where it has the question.
        table: File in which generated specialties are kept and from which they are reused.
    """

    scope: Literal["case", "agnostic"] = "case"
    allow_list: tuple[str, ...] = ()
    aliases: dict[str, str] = Field(default_factory=dict)
    mapping: str | None = None
    table: str | None = None


@dataclass(frozen=True, config=_STRICT)
class SystemSettings:
    """One of the paper's systems: the context component and the MA3 prompt.

    Attributes:
        name: The system.
        context: Which collections MA2 may read: none, the limited encyclopedic source, all of a jurisdiction.
        jurisdictions: Whose sources MA2 may read.
        query: What evidence is searched with: the question, the answer, or both.
        judge_prompt: MA3's prompt, `base` or `enhanced`.
        evidence: What MA3 sees: MA2's `notes` (the paper), the `topk` passages, or both (`hybrid`).
        consensus: MA3 by reasoning (`judge`) or by counting votes (`majority`, a comparator).
        probability: Where a label's probability comes from.
        thresholds: Cut per domain in [0, 1] for the final label; a missing domain keeps the label as written.
        router: How a question gets its specialist.
    """

    name: SystemName = "rag"
    context: Literal["none", "encyclopedic", "all"] = "all"
    jurisdictions: tuple[str, ...] = ("JP", "INT")
    query: Literal["question", "answer", "both"] = "both"
    judge_prompt: Literal["base", "enhanced"] = "enhanced"
    evidence: Literal["notes", "topk", "hybrid"] = "notes"
    consensus: Literal["judge", "majority"] = "judge"
    probability: ProbabilitySource = "token"
    thresholds: dict[Literal["medical", "ethical", "legal"], float] = Field(default_factory=dict)
    router: RouterSettings = Field(default_factory=RouterSettings)


@dataclass(frozen=True, config=_STRICT)
class AblationSettings:
    """Which parts of the method are on (paper A, ablation study).

    Attributes:
        name: The ablation.
        initial: MA1 runs.
        verification: MA2 runs.
        consensus: MA3 runs.
        roles: Professional role agents (MPA); off = one general assessor.
        knowledge: External knowledge (EK); off = no retrieval.
    """

    name: AblationName = "full"
    initial: bool = True
    verification: bool = True
    consensus: bool = True
    roles: bool = True
    knowledge: bool = True

    def __post_init__(self) -> None:
        """Refuses a method without a judge."""
        if not (self.initial or self.verification):
            raise ValueError("an ablation needs the initial or the verification phase: nothing would be assessed")


@dataclass(frozen=True, config=_STRICT)
class LMSpec:
    """One LM as a role uses it.

    Attributes:
        model: `embedded`, or a DSPy model string such as `openai/gpt-4o`.
        model_path: GGUF file for `embedded`; None = the model that ships with the `embedded` extra.
        sha256: Expected hash of `model_path`; None = not checked.
        api_base: Address of an OpenAI-compatible server; None = the provider's own.
        api_key_env: Name of the environment variable that holds the key; the key itself is never a setting.
        temperature: Sampling temperature, 0 to 2; None = the model's default.
        top_p: Nucleus mass in (0, 1]; None = the model's default.
        max_tokens: Limit of new tokens.
        cache: Reuse DSPy's response cache.
        num_retries: Retries of 429, 5xx and lost connections, with backoff and Retry-After.
        timeout: Seconds to wait for the server.
        json_schema: Whether the server enforces JSON schemas; None = as DSPy knows it.
        logprobs: Whether the server returns log probabilities; None = as DSPy knows it.
        top_logprobs: Alternatives asked for per token, 1 to 20.
        context_tokens: Context window for `embedded`, in tokens.
        evidence_tokens: Evidence per domain that this model can take, in tokens; None = the retriever's budget alone.
        threads: CPU threads for `embedded`; None = the cores this process may use.
        requests_per_minute: Shared limit over all calls of this LM; None = none.
        max_concurrency: Calls in flight over all pairs of this LM; None = none.
        price_input: Money per million prompt tokens; None = as DSPy knows it, else unknown.
        price_output: Money per million new tokens; None = as DSPy knows it, else unknown.
        extra: Further settings handed to `dspy.LM`.
    """

    model: str = "embedded"
    model_path: str | None = None
    sha256: str | None = None
    api_base: str | None = None
    api_key_env: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=400, ge=1)
    cache: bool = False
    num_retries: int = Field(default=5, ge=0)
    timeout: float = Field(default=300.0, gt=0)
    json_schema: bool | None = None
    logprobs: bool | None = None
    top_logprobs: int = Field(default=5, ge=1, le=20)
    context_tokens: int = Field(default=4096, ge=512)
    evidence_tokens: int | None = Field(default=None, ge=1)
    threads: int | None = Field(default=None, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    max_concurrency: int | None = Field(default=None, ge=1)
    price_input: float | None = Field(default=None, ge=0)
    price_output: float | None = Field(default=None, ge=0)
    extra: dict[str, Any] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses a key that was written into the settings."""
        secret = [k for k in self.extra if "key" in k.lower() or ("token" in k.lower() and not k.endswith("tokens"))]
        if secret:
            raise ValueError(f"{secret}: keys come from the environment alone; name the variable in api_key_env")


@dataclass(frozen=True, config=_STRICT)
class LMSettings:
    """LMs by role: `router`, `assessor`, `verifier`, `judge`; a role without its own takes `default`."""

    name: str = "embedded"
    default: LMSpec = Field(default_factory=LMSpec)
    roles: dict[str, LMSpec] = Field(default_factory=dict)


@dataclass(frozen=True, config=_STRICT)
class EmbedderSettings:
    """Which model turns texts into vectors.

    Attributes:
        kind: `e5` and `use` need no network; `openai` is any OpenAI-compatible endpoint.
        model: Model name for `openai` and `sentence_transformers`.
        api_base: Endpoint for `openai`; None = the provider's own.
        api_key_env: Environment variable that holds the key.
        dimension: Expected length of a vector; None = asked of the model.
        threads: CPU threads; None = the cores this process may use.
        cache: Folder of the vector cache; None = beside the index.
    """

    kind: Literal["e5", "use", "openai", "sentence_transformers"] = "e5"
    model: str | None = None
    api_base: str | None = None
    api_key_env: str | None = None
    dimension: int | None = Field(default=None, ge=1)
    threads: int | None = Field(default=None, ge=1)
    cache: str | None = None


@dataclass(frozen=True, config=_STRICT)
class CorpusSettings:
    """Documents and how they are cut (paper A: 1,500 characters, 500 overlap).

    Attributes:
        path: Folder of Markdown documents; None = the corpus that ships with the project.
        chunk_size: Characters of a chunk.
        chunk_overlap: Characters shared by neighbours.
        cjk_chunk_size: The same for Japanese: 1,500 characters pass the embedder's 512 tokens.
        cjk_chunk_overlap: The same for Japanese.
    """

    name: str = "shipped"
    path: str | None = None
    chunk_size: int = Field(default=1500, ge=50)
    chunk_overlap: int = Field(default=500, ge=0)
    cjk_chunk_size: int = Field(default=750, ge=50)
    cjk_chunk_overlap: int = Field(default=250, ge=0)

    def __post_init__(self) -> None:
        """Refuses an overlap that swallows its chunk."""
        if self.chunk_overlap >= self.chunk_size or self.cjk_chunk_overlap >= self.cjk_chunk_size:
            raise ValueError("chunk overlap must be smaller than chunk size")


@dataclass(frozen=True, config=_STRICT)
class RetrieverSettings:
    """The index and how it is asked.

    Attributes:
        mode: `persistent` keeps Chroma on disk, `server` asks a running `chroma run`.
        path: Folder of the persistent index; None = the user's data folder.
        host: Host of the server.
        port: Port of the server.
        collection: Name of the collection; None = made from the embedder and the chunking.
        top_k: Passages per domain (LangChain's default, which the paper used, is 4).
        evidence_tokens: Budget of evidence per domain in tokens (estimated from characters).
        min_score: Cosine similarity below which a passage is left out.
    """

    mode: Literal["persistent", "server"] = "persistent"
    path: str | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=1, le=65535)
    collection: str | None = None
    top_k: int = Field(default=4, ge=1, le=100)
    evidence_tokens: int = Field(default=2000, ge=1)
    min_score: float = Field(default=-1.0, ge=-1, le=1)


@dataclass(frozen=True, config=_STRICT)
class DataSettings:
    """Pairs to audit.

    Attributes:
        name: `sample`, `mednlp_chat`, `kqa`, or `table` (csv, jsonl, parquet, xlsx with a column mapping).
        path: File or folder; None only for `sample`.
        language: Which language's columns are read where a file has several.
        columns: Our field -> the file's column, for `table`.
        encoding: Text encoding; None = found from the bytes.
        limit: At most so many pairs, from the top.
        ids: Only these ids.
        split: `train`, `dev` or `test` by hash of the id; None = all.
        strict: K-QA only: a Neutral on a Must_have claim is risky too.
    """

    name: Literal["sample", "mednlp_chat", "kqa", "table"] = "sample"
    path: str | None = None
    language: str = "en"
    columns: dict[str, str] = Field(default_factory=dict)
    encoding: str | None = None
    limit: int | None = Field(default=None, ge=1)
    ids: tuple[str, ...] = ()
    split: Literal["train", "dev", "test"] | None = None
    strict: bool = False


@dataclass(frozen=True, config=_STRICT)
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


@dataclass(frozen=True, config=_STRICT)
class TrackingSettings:
    """Where runs are kept.

    Attributes:
        kind: `mlflow` or `none` (the run folder is written all the same).
        uri: MLflow store; None = sqlite under `root`.
        root: Folder of runs, artifacts and the sqlite store.
        experiment: MLflow experiment; `{data}` stands for the data set's name.
        store_text: Keep questions and answers in the records (the report shows them).
        traces: Share of pairs traced in MLflow, 0 to 1.
    """

    kind: Literal["mlflow", "none"] = "mlflow"
    uri: str | None = None
    root: str = "mlruns"
    experiment: str = "dspy_mama/{data}"
    store_text: bool = True
    traces: float = Field(default=0.0, ge=0, le=1)


@dataclass(frozen=True, config=_STRICT)
class OptimizerSettings:
    """Optimiser of the prompts; `none` leaves the program as it is."""

    name: Literal["none"] = "none"


@dataclass(frozen=True, config=_STRICT)
class ExperimentSettings:
    """Name and seed of a study."""

    name: str = "default"
    seed: int = 0
    resamples: int = Field(default=1000, ge=1)


@dataclass(frozen=True, config=_STRICT)
class Settings:
    """Everything a run is made from."""

    system: SystemSettings = Field(default_factory=SystemSettings)
    ablation: AblationSettings = Field(default_factory=AblationSettings)
    lm: LMSettings = Field(default_factory=LMSettings)
    embedder: EmbedderSettings = Field(default_factory=EmbedderSettings)
    retriever: RetrieverSettings = Field(default_factory=RetrieverSettings)
    corpus: CorpusSettings = Field(default_factory=CorpusSettings)
    data: DataSettings = Field(default_factory=DataSettings)
    optimizer: OptimizerSettings = Field(default_factory=OptimizerSettings)
    runtime: RuntimeSettings = Field(default_factory=RuntimeSettings)
    tracking: TrackingSettings = Field(default_factory=TrackingSettings)
    experiment: ExperimentSettings = Field(default_factory=ExperimentSettings)


T = TypeVar("T")


def from_mapping(kind: type[T], values: Mapping[str, Any]) -> T:
    """Builds a settings dataclass from plain data.

    Raises:
        DeclarationError: A key is unknown or a value does not fit; every fault is named by its dotted path.
    """
    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        lines = []
        for item in error.errors(include_url=False):
            where = ".".join(str(part) for part in item["loc"]) or kind.__name__
            # Only scalars are shown: a group's values could hold a secret that was put there by mistake.
            scalar = isinstance(item["input"], (str, int, float)) and item["type"] != "value_error"
            given = f" (given: {item['input']!r})" if scalar else ""
            reason = "unknown setting" if item["type"] == "unexpected_keyword_argument" else item["msg"]
            given = "" if reason == "unknown setting" else given
            lines.append(f"{where}: {reason}{given}")
        raise DeclarationError("; ".join(lines)) from None


def to_mapping(settings: Any) -> dict[str, Any]:
    """Returns a settings dataclass as plain data, as `spec.json` keeps it."""
    return dataclasses.asdict(settings)
