"""What the Hydra apps of `experiments/` share: arguments, one run, one printed line."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from dspy_mama.core.errors import MamaError
from dspy_mama.wiring.compose import hydra_overrides, settings_from
from dspy_mama.wiring.index import ensure_shipped_index
from dspy_mama.wiring.study import run_study


def experiment_arguments(name: str) -> None:
    """Prepares `sys.argv` for Hydra: names the experiment and lets any field be set, as the `mama` command does."""
    options = [part for part in sys.argv[1:] if part.startswith("-")]
    overrides = [part for part in sys.argv[1:] if not part.startswith("-")]
    if not any(part.startswith("experiment=") for part in overrides):
        overrides.insert(0, f"experiment={name}")
    sys.argv[1:] = [*options, *hydra_overrides(overrides)]


def run_experiment(config: Any, *, varied: str) -> float | None:
    """Carries out one run of a study and prints its line.

    Args:
        config: Hydra's config.
        varied: The group that the study varies, for the line.

    Returns:
        Average macro-F1 of the final phase; None where no domain has gold labels.

    Raises:
        SystemExit: The run could not be carried out (2 for settings, 1 otherwise) or too much is unscored (3).
    """
    try:
        settings = settings_from(config)
        ensure_shipped_index(settings)
        result = asyncio.run(run_study(settings, verb=settings.experiment.name))
    except MamaError as error:
        print(f"{varied}: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from error
    name = getattr(settings, varied).name
    if result.exit_code:
        print(f"{varied}={name}: {result.unscored}", file=sys.stderr)  # noqa: T201
        raise SystemExit(result.exit_code)
    final = result.summary["final"]
    average, joint = final["average_macro_f1"], final["joint_accuracy"]
    shown = "no gold labels" if average is None else f"average macro-F1 {average:.3f}"
    together = f", joint accuracy {joint['correct']}/{joint['n']}" if joint["n"] else ""
    print(f"{varied}={name}: {shown}{together}, n={result.summary['n']}, {result.folder}")  # noqa: T201
    return None if average is None else float(average)
