"""Programs as artifacts: state, settings and hashes travel together."""

from dspy_mama.optimize.artifact import program_state, save_program
from dspy_mama.optimize.artifact_loading import load_program

__all__ = ["load_program", "program_state", "save_program"]
