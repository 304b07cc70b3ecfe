"""One HTTP request in its turn, within limits of size and time."""

from __future__ import annotations

import email.utils
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

import httpx

from dspy_mama.retrieval.sources.page import SourceError, TransientError
from dspy_mama.retrieval.sources.robots import AGENT
from dspy_mama.settings.sources import HttpSettings

_TRANSIENT: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(slots=True)
class Traffic:
    """What a client has done.

    Attributes:
        requests: Requests sent, retries and robots.txt included.
        cached: Pages taken from the cache, asked for or not.
        received: Bytes of bodies, unpacked.
    """

    requests: int = 0
    cached: int = 0
    received: int = 0


class Transfer:
    """Sends requests, no two at once, and leaves each host a pause between them."""

    def __init__(self, settings: HttpSettings, sleep: Callable[[float], None], now: Callable[[], float]) -> None:
        """Opens the client; see `PoliteClient`."""
        contact = f" ({settings.contact})" if settings.contact else ""
        agent = f"{AGENT}/{version('dspy-mama')}{contact} python-httpx/{httpx.__version__}"
        self.settings = settings
        self.traffic = Traffic()
        self._sleep, self._now = sleep, now
        self._last: dict[str, float] = {}
        self._client = httpx.Client(
            headers={"User-Agent": agent, "Accept-Encoding": "gzip, deflate"},
            timeout=settings.timeout,
            follow_redirects=True,
            max_redirects=settings.max_redirects,
        )

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def send(self, address: str, headers: Mapping[str, str], pause: float = 0.0) -> tuple[httpx.Response, bytes]:
        """Sends one request in its turn and reads the body within the limits.

        Args:
            address: http(s) address.
            headers: Further headers.
            pause: Seconds between requests that the host asks for.

        Returns:
            The response, and its body if its status is 200.

        Raises:
            TransientError: Worth another try.
            SourceError: Not worth one.
        """
        host = urlsplit(address).netloc
        since = self._now() - self._last.get(host, float("-inf"))
        wait = max(self.settings.delay, pause) - since
        if wait > 0:
            self._sleep(wait)
        self.traffic.requests += 1
        try:
            with self._client.stream("GET", address, headers=dict(headers)) as response:
                if response.status_code in _TRANSIENT:
                    asked = retry_after(response.headers.get("retry-after", ""), self._now())
                    raise TransientError(f"the server answers {status_text(response)}", asked)
                return response, self._body(response, address) if response.status_code == 200 else b""
        except httpx.TooManyRedirects:
            raise SourceError(address, f"redirects in a loop (more than {self.settings.max_redirects})") from None
        except httpx.TimeoutException:
            raise TransientError(f"no answer within {self.settings.timeout:g} s", lost=True) from None
        except httpx.RemoteProtocolError:
            raise TransientError("the answer was cut off or broken") from None
        except httpx.TransportError as error:
            if isinstance(error, httpx.UnsupportedProtocol):
                raise SourceError(address, "leads to an address that is not http(s)") from None
            raise TransientError(f"the server could not be reached ({error})", lost=True) from None
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            raise SourceError(address, f"cannot be read ({error})") from None
        finally:
            self._last[host] = self._now()

    def _body(self, response: httpx.Response, address: str) -> bytes:
        limit, start = self.settings.max_bytes, self._now()
        too_large = SourceError(address, f"larger than {limit:,} bytes (corpus.http.max_bytes)")
        declared = response.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            raise too_large
        body = bytearray()
        for block in response.iter_bytes():
            body += block
            if len(body) > limit:
                raise too_large
            if self._now() - start > self.settings.deadline:
                raise SourceError(address, f"still arriving after {self.settings.deadline:g} s (corpus.http.deadline)")
        self.traffic.received += len(body)
        return bytes(body)


def retry_after(value: str, now: float) -> float | None:
    """Returns the seconds that a `Retry-After` header asks for (RFC 9110, 10.2.3), or None where it says nothing."""
    text = value.strip()
    if text.isdigit():
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, when.timestamp() - now)


def status_text(response: httpx.Response) -> str:
    """Returns status and reason, such as `404 Not Found`."""
    return f"{response.status_code} {response.reason_phrase}".strip()
