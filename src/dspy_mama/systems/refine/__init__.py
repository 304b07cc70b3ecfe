"""System B: an answer is written, judged by ethics and by safety, and revised until both accept it."""

from dspy_mama.systems.refine.criteria import Criteria, Principle, load_criteria, shipped_packs
from dspy_mama.systems.refine.evaluators import EthicsEvaluator, SafetyEvaluator
from dspy_mama.systems.refine.generator import ReplyGenerator
from dspy_mama.systems.refine.modules import ROLES
from dspy_mama.systems.refine.planner import RevisionPlanner
from dspy_mama.systems.refine.record import (
    failed_request,
    refine_record,
    request_identity,
    request_key,
    without_texts,
)
from dspy_mama.systems.refine.refiner import SafetyRefiner
from dspy_mama.systems.refine.retrying import retry_parts, with_spent
from dspy_mama.systems.refine.schema import Assessment, Consensus, Evaluator, Gate, GateDecision, Refinement, Version

__all__ = [
    "ROLES",
    "Assessment",
    "Consensus",
    "Criteria",
    "EthicsEvaluator",
    "Evaluator",
    "Gate",
    "GateDecision",
    "Principle",
    "Refinement",
    "ReplyGenerator",
    "RevisionPlanner",
    "SafetyEvaluator",
    "SafetyRefiner",
    "Version",
    "failed_request",
    "load_criteria",
    "refine_record",
    "request_identity",
    "request_key",
    "retry_parts",
    "shipped_packs",
    "with_spent",
    "without_texts",
]
