"""The `mama` command."""

from dspy_mama.cli.main import main

__all__ = ["main"]
