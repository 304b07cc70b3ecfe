"""What every settings dataclass shares: unknown fields are refused."""

from __future__ import annotations

from typing import Final

from pydantic import ConfigDict

STRICT: Final = ConfigDict(extra="forbid")
