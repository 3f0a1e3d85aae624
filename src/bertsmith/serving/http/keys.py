"""Who may ask: the keys of a server, compared in a time that does not tell how much of a key was right.

In: the keys and a request's headers. Out: whether it may come in.
"""

import hashlib
import hmac
from collections.abc import Iterable

# What a load balancer or a scraper asks for, and pages that hold nothing of this server's.
OPEN = frozenset({"/health", "/healthz/live", "/healthz/ready", "/ping", "/metrics", "/docs"})
PAGE = "/page/"


class Keys:
    def __init__(self, keys: Iterable[str]) -> None:
        self.digests = [_digest(key.encode()) for key in keys]

    def opens(self, method: str, path: str, authorization: bytes) -> bool:
        """`authorization`: the header `Authorization: Bearer KEY`, or nothing."""
        if not self.digests or path in OPEN:
            return True
        if method in ("GET", "HEAD") and (path == "/" or path.startswith(PAGE)):
            return True
        scheme, _, key = authorization.partition(b" ")
        given = _digest(key.strip())
        # Every key is compared, whichever fits.
        fits = [hmac.compare_digest(given, digest) for digest in self.digests]
        return scheme.lower() == b"bearer" and any(fits)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
