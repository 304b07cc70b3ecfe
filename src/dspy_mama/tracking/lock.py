"""One process writes a run: a lock that the system drops by itself when the process dies."""

from __future__ import annotations

import os
from pathlib import Path

from dspy_mama.core.errors import DeclarationError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: runs are written without a lock there
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """An exclusive lock on a folder, held until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, folder: Path) -> FileLock:
        """Takes the lock without waiting.

        Raises:
            DeclarationError: Another process (or another store in this one) holds it.
            OSError: The lock file cannot be made.
        """
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise DeclarationError(
                f"run {folder.name} is being written by process {holder or 'unknown'}; wait for it to end, "
                "or start a new run beside it with runtime.resume=false"
            ) from None
        except OSError:
            pass  # file systems without locks (some network shares): better unlocked than not at all
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return cls(descriptor)

    def release(self) -> None:
        """Gives the lock back; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
