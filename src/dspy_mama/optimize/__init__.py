"""Programs as artifacts: state, settings and hashes travel together."""

from dspy_mama.optimize.artifact import load_program, program_state, save_program

__all__ = ["load_program", "program_state", "save_program"]
