"""The commands that repair an index, as messages name them: whole, so that they can be run as they stand."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings
from dspy_mama.settings.overrides import literal

_CORPUS: Final = ("name", "path", "out", "chunk_size", "chunk_overlap", "cjk_chunk_size", "cjk_chunk_overlap")
_EMBEDDER: Final = ("model", "api_base", "api_key_env", "dimension", "threads", "cache")
_RETRIEVER: Final = ("path", "host", "port", "collection")
"""Fields that decide what is built, and where; the others fetch or search."""

_SET_BY_CHOICE: Final = {"openai": ("model", "api_key_env", "dimension"), "sentence_transformers": ("model",)}
"""Fields that the file of an embedder's choice sets: they are named even where the settings leave them empty."""


@dataclass(frozen=True)
class IndexCommands:
    """Commands for one index, ready for a POSIX shell.

    Attributes:
        build: Makes the index equal to its corpus, or goes on with a build that was killed.
        rebuild: Drops it and makes it anew.
    """

    build: str = "mama index build"
    rebuild: str = "mama index build --rebuild"

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
        overrides = [*_changed("corpus", corpus, _CORPUS)]
        if embedder is not None:
            overrides += _choice("embedder", embedder.kind, EmbedderSettings.kind)
            overrides += _changed("embedder", embedder, _EMBEDDER, _SET_BY_CHOICE.get(embedder.kind, ()))
        overrides += _choice("retriever", retriever.mode, RetrieverSettings.mode)
        overrides += _changed("retriever", retriever, _RETRIEVER)
        tail = "".join(f" {shlex.quote(override)}" for override in overrides)
        return cls(f"{cls.build}{tail}", f"{cls.rebuild}{tail}")


def _choice(group: str, choice: str, default: str) -> Iterator[str]:
    if choice != default:
        yield f"{group}={choice}"


def _changed(group: str, settings: Any, names: Iterable[str], always: tuple[str, ...] = ()) -> Iterator[str]:
    default = type(settings)()
    for name in names:
        value = getattr(settings, name)
        if value != getattr(default, name) or name in always:
            yield f"{group}.{name}={literal(value)}"
