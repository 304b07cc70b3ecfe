"""In which way an index is searched, in a few facts and in one line."""

from __future__ import annotations

from typing import Any

from dspy_mama.retrieval.glossary import Glossary
from dspy_mama.settings import RetrieverSettings


def way_of(settings: RetrieverSettings, glossary: Glossary | None) -> dict[str, Any]:
    """Returns the settings that a search goes by; those that its mode does not use are None.

    Args:
        settings: How the index is searched.
        glossary: The glossary that searches.

    Returns:
        `search`, `fusion`, `lexical_weight`, `centred`, `glossary` (names of its files), `glossary_hash`,
        `glossary_concepts`, `diversity`, `languages`.
    """
    by_meaning, by_words = settings.search != "lexical", settings.search != "dense"
    by_scores = by_meaning and by_words and settings.fusion == "scores"
    return {
        "search": settings.search,
        "fusion": settings.fusion if by_meaning and by_words else None,
        "lexical_weight": settings.lexical_weight if by_scores else None,
        "centred": settings.centred if by_meaning else None,
        "glossary": list(settings.glossary) if by_words else None,
        "glossary_hash": glossary.id if by_words and glossary else None,
        "glossary_concepts": len(glossary.concepts) if by_words and glossary else None,
        "diversity": settings.diversity,
        "languages": settings.languages,
    }


def in_words(way: dict[str, Any]) -> str:
    """Returns what `way_of` gave as one line, in the words of the settings: what is off or not used is left out."""
    parts = [way["search"]]
    if way["fusion"]:
        weight = f" (lexical_weight={way['lexical_weight']:g})" if way["lexical_weight"] is not None else ""
        parts.append(f"fusion={way['fusion']}{weight}")
    if way["centred"]:
        parts.append("centred")
    if way["glossary"]:
        parts.append(f"glossary={'+'.join(way['glossary'])} ({way['glossary_concepts']} concepts)")
    elif way["glossary"] is not None:
        parts.append("no glossary")
    if way["diversity"]:
        parts.append(f"diversity={way['diversity']:g}")
    if way["languages"] != "all":
        parts.append(f"languages={way['languages']}")
    return ", ".join(parts)
