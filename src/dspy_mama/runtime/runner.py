"""Items in, records out: bounded, resumable, and nothing that was done is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from contextlib import suppress
from typing import Any, TypeVar

from dspy_mama.core.cases import Phase, QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.wording import plural
from dspy_mama.runtime.failures import describe, root_cause
from dspy_mama.runtime.interrupts import interrupts
from dspy_mama.runtime.items import ItemKind, PairKind
from dspy_mama.runtime.progress import LineProgress, Progress
from dspy_mama.runtime.result import RunResult, TooManyFailuresError
from dspy_mama.settings import RuntimeSettings
from dspy_mama.tracking import RunStore, is_finished

Record = dict[str, Any]
Item = TypeVar("Item")
Work = Callable[[Item], Awaitable[Record]]


async def run_pairs(
    pairs: Iterable[QAPair],
    audit: Work[QAPair],
    store: RunStore,
    settings: RuntimeSettings,
    *,
    final_phase: Phase = "consensus",
    **options: Any,
) -> RunResult:
    """Audits the pairs that the store does not hold yet: `run_items` for pairs of question and answer.

    Args:
        pairs: Pairs to audit; read as they are needed.
        audit: Audits one pair and returns its record.
        store: The run, open for writing.
        settings: Concurrency and the limit of failures in a row.
        final_phase: Phase whose verdicts count in this run, for the records of failed pairs.
        **options: `repeat`, `store_text`, `progress` and `on_record`, as in `run_items`.

    Raises:
        DeclarationError: A pair showed that the run is set up wrongly; records so far are kept.
        TooManyFailuresError: `settings.max_failures_in_row` pairs failed one after the other.
        ExecutionError: A record could not be written.
    """
    return await run_items(pairs, audit, store, settings, kind=PairKind(final_phase), **options)


async def run_items(
    items: Iterable[Item],
    work: Work[Item],
    store: RunStore,
    settings: RuntimeSettings,
    *,
    kind: ItemKind[Item],
    repeat: int = 0,
    store_text: bool = True,
    progress: Progress | None = None,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
) -> RunResult:
    """Does the work for the items that the store does not hold yet and appends each record as soon as it is there.

    An error of one item is recorded as `infra` and the run goes on. SIGINT and SIGTERM stop it: the first lets the
    items in flight finish, the second cancels them.

    Args:
        items: What to work on; read as they are needed.
        work: Works on one item and returns its record; `id`, `key`, `repeat` and the like are filled in here.
        store: The run, open for writing.
        settings: Concurrency and the limit of failures in a row.
        kind: How items are known and what their failures look like.
        repeat: 0-based index where the same items are worked on several times.
        store_text: Keep the texts of patients and chatbots in the records.
        progress: Told of every record; None = messages on stderr alone.
        on_record: Called with each record in a thread, after it is on disk (to trace it).

    Raises:
        DeclarationError: An item showed that the run is set up wrongly; records so far are kept.
        TooManyFailuresError: `settings.max_failures_in_row` items failed one after the other.
        ExecutionError: A record could not be written.
    """
    run = _Run(work, store, settings, kind, repeat, store_text, progress or LineProgress(quiet=True), on_record)
    return await run.execute(items)


class _Run:
    """State of one call: workers take items, one writer appends, one observer tells others."""

    def __init__(
        self,
        work: Work[Any],
        store: RunStore,
        settings: RuntimeSettings,
        kind: ItemKind[Any],
        repeat: int,
        store_text: bool,
        progress: Progress,
        on_record: Callable[[Mapping[str, Any]], None] | None,
    ) -> None:
        self._do, self._store, self._settings = work, store, settings
        self._kind, self._repeat, self._store_text = kind, repeat, store_text
        self._progress, self._on_record = progress, on_record
        self._records: asyncio.Queue[Record | None] = asyncio.Queue()
        self._written: asyncio.Queue[Record | None] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        self._observer: asyncio.Task[None]
        self._started = time.monotonic()
        self._done = self._skipped = self._failed = self._in_flight = self._failures_in_row = 0
        self._last_failure = ""
        self._stopping = self._interrupted = self._gave_up = False

    async def execute(self, items: Iterable[Any]) -> RunResult:
        self._progress.start(len(items) if isinstance(items, Sized) else None)
        todo = self._todo(items, await asyncio.to_thread(self._store.finished_keys))
        writer = asyncio.create_task(self._write())
        self._observer = asyncio.create_task(self._observe())
        with interrupts(self._stop_softly, self._cancel_now):
            try:
                self._workers = [asyncio.create_task(self._work(todo)) for _ in range(self._settings.concurrency)]
                await self._until_done(writer)
                self._interrupted &= self._is_cut_short(todo)
            finally:
                await self._drain(writer)
        result = self._result()
        if self._gave_up:
            raise TooManyFailuresError(self._failures_in_row, self._last_failure, result, self._kind.noun)
        return result

    def _result(self) -> RunResult:
        seconds = time.monotonic() - self._started
        return RunResult(self._done, self._skipped, self._failed, self._interrupted, seconds)

    def _is_cut_short(self, todo: Iterator[tuple[int, Any]]) -> bool:
        return any(worker.cancelled() for worker in self._workers) or next(todo, None) is not None

    def _todo(self, items: Iterable[Any], finished: set[str]) -> Iterator[tuple[int, Any]]:
        for position, item in enumerate(items):
            key = self._kind.key(item, self._repeat)
            if key in finished:
                self._skipped += 1
                self._progress.skip()
            else:
                finished.add(key)
                yield position, item

    async def _work(self, todo: Iterator[tuple[int, Any]]) -> None:
        while not self._stopping and (taken := next(todo, None)) is not None:
            self._in_flight += 1
            try:
                record = {**await self._one(taken[1]), "position": taken[0]}
            finally:
                self._in_flight -= 1
            self._count(record)
            self._records.put_nowait(record)

    async def _one(self, item: Any) -> Record:
        started = time.monotonic()
        try:
            record = {**self._kind.identity(item, self._repeat, self._store_text), **await self._do(item)}
            is_finished(record)  # a record of the wrong shape is an error of the set-up, found at the first item
        except Exception as error:
            if isinstance(cause := root_cause(error), DeclarationError):
                raise cause from error
            record = self._kind.failed(item, cause, self._repeat, self._store_text)
        record["key"] = self._kind.key(item, self._repeat)
        if not self._store_text:
            record = self._kind.without_texts(record)
        record.setdefault("seconds", round(time.monotonic() - started, 3))
        return record

    def _count(self, record: Record) -> None:
        if is_finished(record):
            self._done += 1
            self._failures_in_row = 0
            return
        self._failed += 1
        self._failures_in_row += 1
        self._last_failure = _error_of(record) or self._last_failure
        if self._failures_in_row >= self._settings.max_failures_in_row:
            self._gave_up = True
            self._cancel_workers()

    async def _until_done(self, writer: asyncio.Task[None]) -> None:
        """Waits for the workers; the first error of one of them, or of the writer, ends all."""
        waiting: set[asyncio.Task[None]] = {*self._workers, writer}
        while waiting - {writer}:
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                if not task.cancelled():
                    task.result()

    async def _drain(self, writer: asyncio.Task[None]) -> None:
        """Ends the workers, writes what they left, and lets the observer catch up."""
        self._cancel_workers()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._records.put_nowait(None)
        try:
            await writer
        finally:
            self._written.put_nowait(None)
            with suppress(asyncio.CancelledError):
                await self._observer
            self._progress.close()

    async def _write(self) -> None:
        """Appends records; those that finish while the disk is busy are written together."""
        ended = False
        while not ended:
            batch = [await self._records.get()]
            while not self._records.empty():
                batch.append(self._records.get_nowait())
            ended = None in batch
            records = [record for record in batch if record is not None]
            if records:
                await asyncio.to_thread(self._store.append, *records)
            for record in records:
                self._progress.add(record)
                self._written.put_nowait(record)

    async def _observe(self) -> None:
        while (record := await self._written.get()) is not None:
            if self._on_record is not None:
                try:
                    await asyncio.to_thread(self._on_record, record)
                except Exception as error:  # noqa: BLE001 - an onlooker must not fail a run that was paid for
                    self._progress.say(f"Records are no longer handed on: {describe(error)}")
                    self._on_record = None

    def _stop_softly(self) -> None:
        self._stopping = self._interrupted = True
        self._progress.say(
            f"Stopping: {self._in_flight} {plural(self._kind.noun, self._in_flight)} in flight will be finished. "
            "Interrupt again to cancel what is in flight. What is done is kept; the same command goes on from here."
        )

    def _cancel_now(self) -> None:
        self._progress.say("Cancelled. What is done is kept; the same command goes on from here.")
        self._cancel_workers()
        self._observer.cancel()

    def _cancel_workers(self) -> None:
        self._stopping = True
        current = asyncio.current_task()
        for worker in self._workers:
            if worker is not current:
                worker.cancel()


def _error_of(record: Mapping[str, Any]) -> str:
    if record.get("error"):
        return str(record["error"])
    verdicts = (record.get("phases") or {}).get(record.get("final_phase")) or {}
    return next((str(verdict["error"]) for verdict in verdicts.values() if verdict.get("error")), "")
