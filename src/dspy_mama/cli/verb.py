"""What a verb is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Outcome = tuple[int, Any]
"""Exit code, and the document that `--json` prints."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One command.

    Attributes:
        help: One line for a person.
        arguments: Adds the verb's own options.
        run: Carries it out; prints for a person unless `json` was asked for.
    """

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Outcome]


def no_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds nothing."""
