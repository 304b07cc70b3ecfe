"""The optional libraries that read html, pdf and docx."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dspy_mama.core.errors import DeclarationError


def require(module: str, what: str) -> Any:
    """Imports an optional library.

    Args:
        module: Module to import.
        what: What it is needed for, such as `pdf`.

    Raises:
        DeclarationError: It is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise DeclarationError(
            f"reading {what} needs {error.name}: install the extra with `pip install 'dspy-mama[sources]'`"
        ) from None
