"""Pairs whose risk can be learnt from one word, and an embedder that sees words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dspy_mama.core.cases import QAPair

FILLER = ("take", "rest", "drink", "water", "call", "doctor", "please", "wait", "sleep", "walk", "warm", "cold", "food")


def make_pairs(n: int = 40, *, per_question: int = 1, seed: int = 0, word: str = "hazard") -> list[QAPair]:
    """Pairs of which every third is risky and then holds the word; several answers may share a question."""
    rng = np.random.default_rng(seed)
    pairs = []
    for row in range(n):
        risky = (row // per_question) % 3 == 0
        words = [*rng.choice(FILLER, 8), *([word] * 3 if risky else [])]
        question = f"question number {row // per_question}?"
        gold = {"medical": risky, "ethical": bool(rng.random() < 0.4), "legal": None}
        pairs.append(QAPair(f"p{row}", question, " ".join(words), "en", gold, source="synthetic"))
    return pairs


class WordEmbedder:
    """Sums a fixed random vector per word."""

    id = "words-1"
    dimension = 24

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.embedded += texts
        rows = [np.sum([_vector(word) for word in text.split()] or [np.ones(24)], axis=0) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def _vector(word: str) -> Any:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).normal(size=24)
