"""Declarative LLM programs on DSPy that audit, mend and test the safety of medical chatbots."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dspy_mama.core import UNDETERMINED
    from dspy_mama.lm import embedded_lm
    from dspy_mama.optimize import save_program
    from dspy_mama.systems.audit import RiskAuditor
    from dspy_mama.systems.mac import DiagnosisPanel
    from dspy_mama.systems.refine import SafetyRefiner
    from dspy_mama.wiring.programs import load_program

__version__ = "0.1.0"

__all__ = [
    "UNDETERMINED",
    "DiagnosisPanel",
    "RiskAuditor",
    "SafetyRefiner",
    "__version__",
    "embedded_lm",
    "load_program",
    "save_program",
]

_HOMES = {
    "RiskAuditor": "dspy_mama.systems.audit",
    "SafetyRefiner": "dspy_mama.systems.refine",
    "DiagnosisPanel": "dspy_mama.systems.mac",
    "load_program": "dspy_mama.wiring.programs",
    "save_program": "dspy_mama.optimize",
    "embedded_lm": "dspy_mama.lm",
    "UNDETERMINED": "dspy_mama.core",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first asked for: `import dspy_mama` itself loads nothing heavy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Returns the public names."""
    return __all__
