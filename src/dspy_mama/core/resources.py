"""Files that ship with the project: inside the wheel, or beside `src` in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from dspy_mama.core.errors import DeclarationError

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(kind: Literal["conf", "data"], *parts: str) -> Path:
    """Returns the path of a shipped file or folder.

    Args:
        kind: `conf` (Hydra groups) or `data` (sample pairs, corpus, replay).
        parts: Path below it, such as `"corpus"`.

    Raises:
        DeclarationError: It is neither in the installed package nor in a checkout.
    """
    homes = [_PACKAGE / kind]
    if _PACKAGE.parent.name == "src":  # a checkout; in site-packages the parent is no concern of ours
        homes.append(_PACKAGE.parents[1] / kind)
    for home in homes:
        path = home.joinpath(*parts)
        if path.exists():
            return path
    raise DeclarationError(
        f"{'/'.join((kind, *parts))} does not ship with this installation (looked in "
        f"{', '.join(str(home) for home in homes)}): install dspy-mama again, or give the path yourself"
    )
