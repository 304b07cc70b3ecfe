"""Where an LM answers: on this machine or its private network, or at a public address."""

from __future__ import annotations

import ipaddress
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from dspy_mama.core.errors import DeclarationError

Host = Literal["local", "public", "unknown"]

_LOCAL_PROVIDERS: Final = frozenset({"embedded", "ollama", "ollama_chat", "lm_studio", "llamafile"})
"""Providers whose address is this machine unless another is given."""
_LOCAL_NAMES: Final = (".local", ".localhost", ".internal", ".intranet", ".lan", ".home.arpa")


def address_kind(address: str) -> Literal["local", "public"]:
    """Tells whether an address lies on this machine or in a private network; whatever is not known to is public.

    Nothing is looked up: a name counts as local without a dot, or under a name kept for private networks.

    Args:
        address: Such as `http://127.0.0.1:8000/v1`.
    """
    name = (urlsplit(address).hostname or "").rstrip(".").casefold()
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        local = bool(name) and ("." not in name or name.endswith(_LOCAL_NAMES))
        return "local" if local else "public"
    return "local" if found.is_private or found.is_loopback or found.is_link_local else "public"


def host_of(lm: Any) -> Host:
    """Tells where an LM answers; an engine of the caller's own says nothing about it.

    Args:
        lm: A `dspy.LM`.
    """
    if not isinstance(getattr(lm, "_engine_spec", None), str):
        engine = getattr(lm, "engine", None)
        if hasattr(type(engine), "request_count"):  # the embedded server, in this process
            return "local"
        address = getattr(engine, "api_base", None)
        return address_kind(address) if isinstance(address, str) else "unknown"
    settings = getattr(lm, "kwargs", {})
    return host_at(str(getattr(lm, "model", "")), settings.get("api_base") or settings.get("base_url"))


def host_at(model: str, address: str | None) -> Literal["local", "public"]:
    """Tells where a model answers by its name and address.

    Args:
        model: `embedded`, or a DSPy model string such as `openai/gpt-4o`.
        address: Address of the server; None = the provider's own.
    """
    if address is not None:
        return address_kind(address)
    return "local" if model.split("/", 1)[0] in _LOCAL_PROVIDERS else "public"


def refuse_leaving(role: str, lm: Any) -> None:
    """Refuses an LM that is not known to be local, for a program that was made with a local one.

    Raises:
        DeclarationError: It is public, or nobody knows where it answers.
    """
    host = host_of(lm)
    if host != "local":
        raise DeclarationError(
            f"this program was made with a local LM for the role {role!r}, and {getattr(lm, 'model', lm)} of "
            f"dspy.settings answers at {'a public' if host == 'public' else 'an unknown'} address: texts of patients "
            "would leave this machine. Name the LM yourself, load_program(..., lms={...}), or allow it with "
            "allow_public=True"
        )
