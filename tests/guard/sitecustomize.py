"""Watches every connection of a Python process and its children: loopback passes, anything else is noted and refused.

Put this folder first on PYTHONPATH and name a file in MAMA_NETWORK_LOG. Audit hooks cannot be taken off again.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from typing import Any

_LOCAL_NAMES = {"localhost", "", "0.0.0.0", "::"}


def _is_local(host: Any) -> bool:
    if host is None:
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(name.split("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse(event: str, where: Any) -> None:
    log = os.environ.get("MAMA_NETWORK_LOG")
    if log:
        with open(log, "a", encoding="utf-8") as stream:
            stream.write(f"{event} {where}\n")
    raise ConnectionRefusedError(f"{event} to {where}: nothing here may leave this machine")


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if isinstance(address, tuple) and address and not _is_local(address[0]):
            _refuse(event, address[0])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname") and not _is_local(arguments[0]):
        _refuse(event, arguments[0])


def install() -> None:
    """Installs the hook in this process."""
    sys.addaudithook(_watch)


if os.environ.get("MAMA_NETWORK_LOG"):
    install()
