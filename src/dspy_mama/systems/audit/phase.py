"""Base of the audit's phases: written once as async, callable both ways."""

from __future__ import annotations

from typing import Any

import dspy

from dspy_mama.core.event_loop import run_sync


class PhaseModule(dspy.Module):
    """A `dspy.Module` whose `forward` runs its `aforward`."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs `aforward` to its end, from sync code."""
        return run_sync(self.aforward(*args, **kwargs))

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        """Carries out the phase.

        Raises:
            NotImplementedError: The phase does not say how.
        """
        raise NotImplementedError
