"""The folder of a run: five files that say what was asked, what came out, and from what."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

from dspy_mama.core.errors import DeclarationError, ExecutionError
from dspy_mama.tracking.atomic import write_json
from dspy_mama.tracking.lock import FileLock
from dspy_mama.tracking.records import (
    Record,
    RecordFile,
    in_data_order,
    is_finished,
    iter_records,
    read_records,
    repair_tail,
    to_line,
)
from dspy_mama.tracking.scrub import scrub
from dspy_mama.tracking.spec import spec_hash

RECORDS: Final = "records.jsonl"
RUN_FILES: Final = ("spec.json", RECORDS, "summary.json", "program.json", "manifest.json")
"""A run is complete when all five are there."""

Part = Literal["summary", "program", "manifest"]


def find_resumable(root: Path | str, spec: Mapping[str, Any]) -> Path | None:
    """Returns the newest incomplete run with the same spec, or None.

    Args:
        root: Tracking root (its `runs` folder is searched).
        spec: Settings of the run that is about to start.
    """
    wanted = spec_hash(spec)
    folders = sorted(Path(root, "runs").glob(f"*-{wanted[:8]}*"), key=lambda folder: folder.name, reverse=True)
    return next((f for f in folders if _stored_hash(f) == wanted and not is_complete(f)), None)


def _stored_hash(folder: Path) -> str | None:
    try:
        return spec_hash(json.loads((folder / "spec.json").read_text("utf-8")))
    except (OSError, ValueError, AttributeError):  # a folder that was never finished being made
        return None


def is_complete(folder: Path) -> bool:
    """Tells whether all five files of a run are there."""
    return all((folder / name).is_file() for name in RUN_FILES)


class RunStore:
    """One run folder. Records may be appended from any thread; one process writes, any number read.

    Attributes:
        folder: The run's folder; its name is the run id.
        torn: Half-written lines that were cut off when the run was opened for writing.
    """

    def __init__(self, folder: Path, lock: FileLock | None = None) -> None:
        self.folder = folder
        self.torn = repair_tail(folder / RECORDS) if lock else 0
        self._file_lock = lock
        self._thread_lock = threading.Lock()
        self._descriptor: int | None = None

    @classmethod
    def create(cls, root: Path | str, spec: Mapping[str, Any], now: datetime | None = None) -> RunStore:
        """Makes a new run folder, writes its spec, and holds it for writing.

        Args:
            root: Tracking root; the folder is made below `root/runs`.
            spec: Settings as plain data and a `name`.
            now: Time of the run id; None = now, in UTC.

        Raises:
            DeclarationError: The folder cannot be made.
        """
        stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        stem = f"{stamp}-{spec_hash(spec)[:8]}"
        try:
            folder = _new_folder(Path(root, "runs"), stem)
            store = cls(folder, FileLock.acquire(folder))
            write_json(folder / "spec.json", scrub(spec))
            (folder / RECORDS).touch()
        except OSError as error:
            raise DeclarationError(f"tracking.root={str(root)!r}: no run folder can be made there: {error}") from error
        return store

    @classmethod
    def open(cls, folder: Path | str) -> RunStore:
        """Opens a run for reading.

        Raises:
            DeclarationError: It is not a run folder.
        """
        path = Path(folder)
        if not (path / "spec.json").is_file():
            raise DeclarationError(
                f"{path} is not a run: it holds no spec.json (runs are kept below <tracking.root>/runs)"
            )
        return cls(path)

    @classmethod
    def resume(cls, folder: Path | str) -> RunStore:
        """Opens a run for writing; what a killed process left half-written is cut off.

        Raises:
            DeclarationError: It is not a run folder, or another process writes it.
        """
        path = cls.open(folder).folder
        return cls(path, FileLock.acquire(path))

    @classmethod
    def start(cls, root: Path | str, spec: Mapping[str, Any], resume: bool = True) -> RunStore:
        """Resumes the newest incomplete run with the same spec, or makes a new one.

        Raises:
            DeclarationError: The run to resume is being written by another process, or no folder can be made.
        """
        found = find_resumable(root, spec) if resume else None
        return cls.resume(found) if found else cls.create(root, spec)

    @property
    def run_id(self) -> str:
        """Name of the folder: UTC time of the start and a short hash of the spec."""
        return self.folder.name

    @property
    def is_complete(self) -> bool:
        """Whether all five files are there."""
        return is_complete(self.folder)

    def append(self, *records: Mapping[str, Any]) -> None:
        """Appends records, one whole line each, and returns when they are safe on disk.

        Raises:
            ExecutionError: The disk refused; nothing half-written is left behind.
        """
        if self._file_lock is None:
            raise ExecutionError(f"run {self.run_id} is open for reading only")
        lines = b"".join(to_line(record) for record in records)
        with self._thread_lock:
            try:
                self._append(lines)
            except OSError as error:
                raise ExecutionError(
                    f"{self.folder / RECORDS} cannot be written ({error}); what was written before is kept"
                ) from error

    def _append(self, lines: bytes) -> None:
        if self._descriptor is None:
            self._descriptor = os.open(self.folder / RECORDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        before = os.fstat(self._descriptor).st_size
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, before)
            raise

    def read(self) -> RecordFile:
        """Returns the records, one a pair, and how many lines were torn or superseded.

        Raises:
            DataError: A line before the last is not a record.
        """
        return read_records(self.folder / RECORDS)

    def records(self) -> tuple[Record, ...]:
        """Returns the records, one an item, in the order of the data.

        Raises:
            DataError: A line before the last is not a record.
        """
        return in_data_order(self.read().records)

    def finished_keys(self) -> set[str]:
        """Returns the keys that need not be audited again (those that failed on infrastructure do).

        Raises:
            DataError: A line before the last is not a record.
        """
        last = {r["key"]: is_finished(r) for r in iter_records(self.folder / RECORDS) if r is not None}
        return {key for key, finished in last.items() if finished}

    def write(self, part: Part, data: Mapping[str, Any]) -> Path:
        """Writes one of the run's JSON files whole: readers see the old one or the new one, never half.

        Args:
            part: Which file. Write `summary` last: with it the run is complete and is no longer resumed.
            data: Its content; secrets are taken out.

        Raises:
            OSError: The disk refused.
        """
        path = self.folder / f"{part}.json"
        write_json(path, scrub(data))
        return path

    def load(self, part: Part | Literal["spec"]) -> dict[str, Any]:
        """Returns the content of one of the run's JSON files.

        Raises:
            DeclarationError: The file is missing or not JSON.
        """
        path = self.folder / f"{part}.json"
        try:
            content: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise DeclarationError(f"{path} cannot be read: {error}") from error
        return content

    def close(self) -> None:
        """Lets go of the run; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._file_lock is not None:
            self._file_lock.release()
            self._file_lock = None

    def __enter__(self) -> RunStore:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the run."""
        self.close()


def _new_folder(runs: Path, stem: str) -> Path:
    runs.mkdir(parents=True, exist_ok=True)
    names: Iterable[str] = (stem, *(f"{stem}-{number}" for number in range(2, 1000)))
    for name in names:
        with contextlib.suppress(FileExistsError):  # another run with this spec started in the same second
            (runs / name).mkdir()
            return runs / name
    raise FileExistsError(f"{runs / stem} and 998 more of that second exist")
