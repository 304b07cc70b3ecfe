"""The `mama` command."""

from dspy_mama.cli.main import main, run

__all__ = ["main", "run"]
