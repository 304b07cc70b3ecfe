"""System C (MAC): multi-agent conversation for diagnosis (see `DiagnosisPanel`)."""

from dspy_mama.systems.mac.accounts import diagnosis_of
from dspy_mama.systems.mac.panel import ROLES, DiagnosisPanel
from dspy_mama.systems.mac.schema import Conclusion, Diagnosis, Discussion, Turn

__all__ = [
    "ROLES",
    "Conclusion",
    "Diagnosis",
    "DiagnosisPanel",
    "Discussion",
    "Turn",
    "diagnosis_of",
]
