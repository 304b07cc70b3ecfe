"""System A (MA-MPA): multiassessment by multiprofessional agents (see `RiskAuditor`)."""

from dspy_mama.systems.audit.exemplar import Exemplar, exemplar_of
from dspy_mama.systems.audit.presets import ABLATIONS, SYSTEMS, WITHOUT_LM, build_auditor, build_program
from dspy_mama.systems.audit.program import ROLES, RiskAuditor
from dspy_mama.systems.audit.record import audit_record
from dspy_mama.systems.audit.schema import PhaseResult, RiskVerdict, RoleAssignment
from dspy_mama.systems.audit.severity import SEVERITY_SCALE, ErrorKind, SeverityAssessor, SeverityOpinion

__all__ = [
    "ABLATIONS",
    "ROLES",
    "SEVERITY_SCALE",
    "SYSTEMS",
    "WITHOUT_LM",
    "ErrorKind",
    "Exemplar",
    "PhaseResult",
    "RiskAuditor",
    "RiskVerdict",
    "RoleAssignment",
    "SeverityAssessor",
    "SeverityOpinion",
    "audit_record",
    "build_auditor",
    "build_program",
    "exemplar_of",
]
