"""The shipped corpus needs no step of its own: its index is made from shipped vectors when it is first needed."""

from __future__ import annotations

import logging

from dspy_mama.core.errors import IndexStateError
from dspy_mama.settings import Settings
from dspy_mama.wiring.build import needs_evidence

logger = logging.getLogger(__name__)


def ensure_shipped_index(settings: Settings) -> None:
    """Builds the shipped corpus's index where there is none yet, or where the corpus has changed.

    Other corpora are left alone: embedding them may take hours or money, so that is a command of its own.

    Raises:
        DeclarationError: Documents or settings are at fault.
    """
    from dspy_mama.retrieval import build_index, index_info

    corpus = settings.corpus
    if not needs_evidence(settings) or corpus.folder or corpus.has_sources or settings.retriever.mode != "persistent":
        return
    try:
        if index_info(settings.corpus, settings.embedder, settings.retriever).fresh:
            return
    except IndexStateError as error:
        logger.info("%s", error)
    build_index(settings.corpus, settings.embedder, settings.retriever)
