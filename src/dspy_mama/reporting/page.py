"""A self-contained page from a template: everything escaped, one script, a policy that permits no other."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dspy_mama.reporting.figures import to_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ASSETS: Final = Path(__file__).with_name("assets")
# Not allowed in HTML text; a browser would drop or replace them anyway.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def render_page(template: str, script: str, values: Mapping[str, Any]) -> str:
    """Returns a page that needs no network and no other file.

    Args:
        template: Name of a template of this package.
        script: Name of its script.
        values: What the template prints; all of it is escaped.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_ASSETS), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    code = (_ASSETS / script).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    page = environment.get_template(template).render(
        **values,
        # Both are this package's own files.
        style=Markup((_ASSETS / "report.css").read_text(encoding="utf-8")),
        script=Markup(code),
        script_hash=f"sha256-{digest}",
    )
    return _CONTROLS.sub("", page).encode("utf-8", "replace").decode("utf-8")


def write_page(path: Path, page: str) -> Path:
    """Writes a page and returns its path; the file appears complete or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(page, encoding="utf-8", newline="\n")
    draft.replace(path)
    return path


def inline(figure: Figure, alt: str, caption: str) -> dict[str, str]:
    """Returns a picture as a page holds it."""
    return {"data": base64.b64encode(to_png(figure)).decode(), "alt": alt, "caption": caption}


def model_lines(summary: Mapping[str, Any]) -> list[str]:
    """Returns a line per LM or classifier of a run, with the roles that it had.

    Args:
        summary: Its `models` are read: names by role.
    """
    roles: dict[str, list[str]] = {}
    for role, models in summary["models"].items():
        roles.setdefault(", ".join(models), []).append(role)
    kinds = {model: "Classifier" if names == ["classifier"] else "LM" for model, names in roles.items()}
    return [f"{kinds[model]}: {model} ({', '.join(names)})" for model, names in roles.items()]
