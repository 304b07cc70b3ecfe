"""The commands that repair an index, as messages name them: whole, so that they can be run as they stand."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dspy_mama.retrieval.documents import document_files
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings
from dspy_mama.settings.overrides import literal

_CORPUS: Final = ("name", "path", "out", "chunk_size", "chunk_overlap", "cjk_chunk_size", "cjk_chunk_overlap")
_FETCHED: Final = ("name", "path", "out")
_SOURCES: Final = ("wikipedia", "japanese_law", "pages", "urls", "files", "about", "http")
_EMBEDDER: Final = ("model", "api_base", "api_key_env", "dimension", "threads", "cache")
_RETRIEVER: Final = ("path", "host", "port", "collection")
"""Fields that decide what is fetched or built, and where; the others search."""

_OUT: Final = "evidence"
"""Folder that a command names where documents are to be fetched and the settings name none."""

_SET_BY_CHOICE: Final = {"openai": ("model", "api_key_env", "dimension"), "sentence_transformers": ("model",)}
"""Fields that the file of an embedder's choice sets: they are named even where the settings leave them empty."""


@dataclass(frozen=True)
class IndexCommands:
    """Commands for one index, ready for a POSIX shell.

    Attributes:
        build: Makes the index equal to its corpus, or goes on with a build that was killed.
        rebuild: Drops it and makes it anew.
        fetch: Fetches its documents; None where the settings name no sources.
        folder: Folder of its documents; None = the shipped corpus.
        override: What must be added to the settings before these commands are about the same index, or None.
    """

    build: str = "mama index build"
    rebuild: str = "mama index build --rebuild"
    fetch: str | None = None
    folder: str | None = None
    override: str | None = None

    @classmethod
    def of(
        cls, corpus: CorpusSettings, embedder: EmbedderSettings | None, retriever: RetrieverSettings
    ) -> IndexCommands:
        """Returns the commands with the overrides that give back these settings, as far as they tell the index.

        Args:
            corpus: Corpus of the index.
            embedder: Embedder of the index; None = one that no settings describe, which the commands do not name.
            retriever: Where the index is.
        """
        override = None
        if corpus.has_sources and corpus.folder is None:  # without a folder, a build would take the shipped corpus
            corpus, override = dataclasses.replace(corpus, out=_OUT), f"corpus.out={_OUT}"
        overrides = [*_changed("corpus", corpus, _CORPUS)]
        if embedder is not None:
            overrides += _choice("embedder", embedder.kind, EmbedderSettings.kind)
            overrides += _changed("embedder", embedder, _EMBEDDER, _SET_BY_CHOICE.get(embedder.kind, ()))
        overrides += _choice("retriever", retriever.mode, RetrieverSettings.mode)
        overrides += _changed("retriever", retriever, _RETRIEVER)
        build, rebuild = (_command(command, overrides) for command in (cls.build, cls.rebuild))
        sources = _changed("corpus", corpus, (*_FETCHED, *_SOURCES))
        fetch = _command("mama index fetch", sources) if corpus.has_sources else None
        return cls(build, rebuild, fetch, corpus.folder, override)

    @property
    def to_build(self) -> str:
        """What to run so that the index is there, in words; a build alone does not help where there are no documents.

        The folder is looked at whenever this is read.
        """
        return self._after_documents(self.build)

    @property
    def to_rebuild(self) -> str:
        """The same, with a rebuild."""
        return self._after_documents(self.rebuild)

    def _after_documents(self, command: str) -> str:
        if self.folder is None or _has_documents(Path(self.folder)):
            steps = f"run `{command}`"
        elif self.fetch is None:
            steps = f"put documents (*.md) into {self.folder}, or set corpus.path, and run `{command}`"
        else:
            steps = f"run `{self.fetch}` and then `{command}`"
        return f"{steps}; add {self.override} here too" if self.override else steps


def _has_documents(folder: Path) -> bool:
    try:
        return any(True for _ in document_files(folder.expanduser()))
    except (OSError, RuntimeError):  # a folder that cannot be read is the build's to explain
        return True


def _command(command: str, overrides: Iterable[str]) -> str:
    return " ".join((command, *map(shlex.quote, overrides)))


def _choice(group: str, choice: str, default: str) -> Iterator[str]:
    if choice != default:
        yield f"{group}={choice}"


def _changed(group: str, settings: Any, names: Iterable[str], always: tuple[str, ...] = ()) -> Iterator[str]:
    default = type(settings)()
    for name in names:
        value, usual = getattr(settings, name), getattr(default, name)
        if dataclasses.is_dataclass(value):
            yield from _changed(f"{group}.{name}", value, [field.name for field in dataclasses.fields(value)])
        elif value != usual or name in always:
            yield f"{group}.{name}={literal(_plain(value))}"


def _plain(value: Any) -> Any:
    """Returns a value with pages as mappings of what is stated."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        facts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: fact for name, fact in facts.items() if fact is not None}
    return value
