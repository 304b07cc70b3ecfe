"""System C (MAC): multi-agent conversation for diagnosis (see `DiagnosisPanel`)."""

from dspy_mama.core.disease_knowledge import DIMENSIONS
from dspy_mama.systems.mac.accounts import diagnosis_of
from dspy_mama.systems.mac.knowledge import DiseaseExpert, KnowledgePanel
from dspy_mama.systems.mac.knowledge_record import answers_without_texts, failed_knowledge, knowledge_record
from dspy_mama.systems.mac.knowledge_schema import KnowledgeAnswer
from dspy_mama.systems.mac.panel import ROLES, DiagnosisPanel
from dspy_mama.systems.mac.record import (
    DiagnosisItem,
    diagnosis_record,
    failed_record,
    identity_record,
    item_key,
    why_failed,
    without_texts,
)
from dspy_mama.systems.mac.schema import Conclusion, Diagnosis, Discussion, Turn
from dspy_mama.systems.mac.single import SingleDiagnosis

__all__ = [
    "DIMENSIONS",
    "ROLES",
    "Conclusion",
    "Diagnosis",
    "DiagnosisItem",
    "DiagnosisPanel",
    "Discussion",
    "DiseaseExpert",
    "KnowledgeAnswer",
    "KnowledgePanel",
    "SingleDiagnosis",
    "Turn",
    "answers_without_texts",
    "diagnosis_of",
    "diagnosis_record",
    "failed_knowledge",
    "failed_record",
    "identity_record",
    "item_key",
    "knowledge_record",
    "why_failed",
    "without_texts",
]
