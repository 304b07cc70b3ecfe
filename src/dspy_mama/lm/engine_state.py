"""How an engine of this library is saved and copied: as its settings, never with a port, a key or a connection."""

from __future__ import annotations

from typing import Any, cast


class SettingsState:
    """Mixin for engines that are frozen dataclasses of plain settings."""

    def dump_state(self) -> dict[str, Any]:
        """Returns the settings as plain data."""
        return {name: getattr(self, name) for name in cast(Any, self).__dataclass_fields__}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> Any:
        """Returns the engine with these settings."""
        return cast(Any, cls)(**state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Returns itself: copies of an LM share its server and connections."""
        return self

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        """Travels to other processes as settings."""
        return (type(self).load_state, (self.dump_state(),))
