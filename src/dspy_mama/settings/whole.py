"""Everything a run is made from, and the way from plain data to it and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings.audit import AblationSettings, SystemSettings
from dspy_mama.settings.baseline import SupervisedSettings
from dspy_mama.settings.evidence import CorpusSettings, EmbedderSettings, RetrieverSettings
from dspy_mama.settings.lm import LMSettings
from dspy_mama.settings.optimize import OptimizerSettings
from dspy_mama.settings.panel import PanelSettings
from dspy_mama.settings.refiner import RefinerSettings
from dspy_mama.settings.run import DataSettings, ExperimentSettings, RuntimeSettings, TrackingSettings
from dspy_mama.settings.strict import STRICT


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Everything a run is made from."""

    system: SystemSettings = Field(default_factory=SystemSettings)
    ablation: AblationSettings = Field(default_factory=AblationSettings)
    lm: LMSettings = Field(default_factory=LMSettings)
    embedder: EmbedderSettings = Field(default_factory=EmbedderSettings)
    retriever: RetrieverSettings = Field(default_factory=RetrieverSettings)
    corpus: CorpusSettings = Field(default_factory=CorpusSettings)
    data: DataSettings = Field(default_factory=DataSettings)
    baseline: SupervisedSettings = Field(default_factory=SupervisedSettings)
    refiner: RefinerSettings = Field(default_factory=RefinerSettings)
    panel: PanelSettings = Field(default_factory=PanelSettings)
    optimizer: OptimizerSettings = Field(default_factory=OptimizerSettings)
    runtime: RuntimeSettings = Field(default_factory=RuntimeSettings)
    tracking: TrackingSettings = Field(default_factory=TrackingSettings)
    experiment: ExperimentSettings = Field(default_factory=ExperimentSettings)


T = TypeVar("T")

_REASONS: Final = {
    "unexpected_keyword_argument": "unknown setting",
    "tuple_type": "should be a list, such as [a] or [a,b]",
}
"""Reasons of pydantic in the words of a command line."""


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
            reason = _REASONS.get(item["type"], item["msg"])
            given = "" if reason == "unknown setting" else given
            lines.append(f"{where}: {reason}{given}")
        raise DeclarationError("; ".join(lines)) from None


def to_mapping(settings: Any) -> dict[str, Any]:
    """Returns a settings dataclass as plain data, as `spec.json` keeps it."""
    return dataclasses.asdict(settings)
