"""Settings as frozen dataclasses, one per conf group; a wrong one fails before the first token is spent."""

from dspy_mama.settings.audit import (
    AblationName,
    AblationSettings,
    Jurisdiction,
    ProbabilitySource,
    RouterSettings,
    SystemName,
    SystemSettings,
)
from dspy_mama.settings.baseline import BertSettings, SupervisedName, SupervisedSettings
from dspy_mama.settings.evidence import CorpusSettings, EmbedderSettings, RetrieverSettings
from dspy_mama.settings.lm import LMSettings, LMSpec
from dspy_mama.settings.optimize import BudgetSettings, MetricSettings, OptimizerSettings, SplitSettings
from dspy_mama.settings.run import DataSettings, ExperimentSettings, RuntimeSettings, TrackingSettings
from dspy_mama.settings.whole import Settings, from_mapping, to_mapping

__all__ = [
    "AblationName",
    "AblationSettings",
    "BertSettings",
    "BudgetSettings",
    "CorpusSettings",
    "DataSettings",
    "EmbedderSettings",
    "ExperimentSettings",
    "Jurisdiction",
    "LMSettings",
    "LMSpec",
    "MetricSettings",
    "OptimizerSettings",
    "ProbabilitySource",
    "RetrieverSettings",
    "RouterSettings",
    "RuntimeSettings",
    "Settings",
    "SplitSettings",
    "SupervisedName",
    "SupervisedSettings",
    "SystemName",
    "SystemSettings",
    "TrackingSettings",
    "from_mapping",
    "to_mapping",
]
