"""Replies that were paid for, by what was asked: a compilation that was killed goes on and repeats no call.

It also freezes what a prompt was answered: optimisers that look at one candidate twice see it once, so that a
sampling LM cannot make them compare a program with itself.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.ids import object_hash

_NOT_ASKED = ("api_key", "api_base", "base_url", "headers", "extra_headers", "timeout", "cache", "num_retries")


Price = tuple[int | None, float | None, int]
"""Tokens and dollars of a call, None where unknown, and an estimate of its tokens."""


class Journal:
    """Replies by key, in memory and where a path is given in a file, a line each, safe on disk before it is used."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Reads what an earlier start wrote; a line that a kill left half-written is dropped.

        Args:
            path: The file; None = memory alone.

        Raises:
            DeclarationError: The file cannot be read or written.
        """
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self._earlier: dict[str, Price] = {}
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists():
                self._read(self._path)
            self._file = self._path.open("ab")
        except OSError as error:
            raise DeclarationError(f"{self._path}: the journal cannot be used ({error})") from error

    def _read(self, path: Path) -> None:
        whole = 0
        for line in path.read_bytes().splitlines(keepends=True):
            try:
                entry = json.loads(line)
                self._known[entry["key"]] = entry["reply"]
                self._earlier[entry["key"]] = tuple(entry["price"])
            except (ValueError, KeyError, TypeError):
                break
            whole += len(line)
        with path.open("r+b") as file:
            file.truncate(whole)

    def __deepcopy__(self, memo: dict[int, Any]) -> Journal:
        """Returns itself: copies of an LM share the journal."""
        return self

    def __len__(self) -> int:
        """Returns the number of replies."""
        return len(self._known)

    def get(self, key: str) -> Any | None:
        """Returns a reply as it was put, or None."""
        with self._lock:
            return self._known.get(key)

    def price_of(self, key: str) -> Price | None:
        """Returns what an earlier start paid for a reply, the first time it is asked for; None after that."""
        with self._lock:
            return self._earlier.pop(key, None)

    def put(self, key: str, reply: Any, price: Price = (None, None, 0)) -> None:
        """Keeps a reply; the first one under a key stays.

        Args:
            key: What was asked.
            reply: Plain data.
            price: What it cost: tokens and dollars, None where unknown, and an estimate of the tokens.
        """
        with self._lock:
            if key in self._known:
                return
            self._known[key] = reply
            if self._path is not None:
                line = json.dumps({"key": key, "reply": reply, "price": price}, ensure_ascii=False) + "\n"
                self._file.write(line.encode("utf-8", "replace"))
                self._file.flush()
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            if self._path is not None and not self._file.closed:
                self._file.close()

    def remove(self) -> None:
        """Deletes the file: the compilation is complete, and the replies hold texts of pairs."""
        self.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def call_key(lm: Any, prompt: Any, messages: Any, settings: Mapping[str, Any]) -> str:
    """Returns the key of a call: model, prompt and sampling settings, the rollout among them; no address and no key."""
    from dspy.lm15 import Request

    own = {**getattr(lm, "kwargs", {}), **settings}
    asked = {name: repr(value) for name, value in own.items() if name not in _NOT_ASKED and value is not None}
    body = repr(prompt) if isinstance(prompt, Request) else [prompt, messages]
    return object_hash([str(lm.model), json.dumps(body, default=repr, ensure_ascii=False), asked], 40)


def encode(answer: Any) -> Any | None:
    """Returns an LM's answer as plain data, or None where it has no such form."""
    from dspy._vendor.lm15.serde import response_to_dict  # DSPy exports no other way to write a reply down
    from dspy.lm15 import Response

    if isinstance(answer, Response):
        return {"response": response_to_dict(answer)}
    try:
        return {"outputs": json.loads(json.dumps(answer))}
    except (TypeError, ValueError):
        return None


def decode(reply: Mapping[str, Any]) -> Any:
    """Returns an LM's answer from plain data."""
    from dspy._vendor.lm15.serde import response_from_dict

    return response_from_dict(reply["response"]) if "response" in reply else reply["outputs"]
