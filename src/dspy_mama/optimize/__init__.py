"""Compiling programs on gold pairs, and programs as artifacts: state, settings and hashes travel together."""

from dspy_mama.optimize.artifact import program_state, save_program
from dspy_mama.optimize.artifact_loading import load_program
from dspy_mama.optimize.compiling import compile_program
from dspy_mama.optimize.nested import NestedResult, compile_nested
from dspy_mama.optimize.result import CompileResult

__all__ = [
    "CompileResult",
    "NestedResult",
    "compile_nested",
    "compile_program",
    "load_program",
    "program_state",
    "save_program",
]
