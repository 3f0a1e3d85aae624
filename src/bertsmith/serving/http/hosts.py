"""Under which names a server may be asked, so that a page from elsewhere cannot pass itself off as this machine's own.

A page whose name its owner lets point to 127.0.0.1 (DNS rebinding) is, for a browser, of the same origin as a server
there, and could read every answer; but the browser still sends the page's name as `Host`. In: names, and the header of
a request. Out: whether it was meant for us.
"""

import ipaddress
from collections.abc import Iterable

OWN = ("localhost", "127.0.0.1", "::1")


class Hosts:
    def __init__(self, names: Iterable[str]) -> None:
        """No names: any will do."""
        self.names = frozenset(plain(name) for name in names)

    def know(self, host: bytes) -> bool:
        """`host`: the header, which no browser leaves out; what does is a program and not fooled by a name."""
        return not self.names or not host or plain(host.decode("latin-1")) in self.names


def plain(host: str) -> str:
    """A name without its port, brackets or a dot at its end, in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    return host.rstrip(".")


def list_hosts(bound: str, allowed: Iterable[str]) -> tuple[str, ...]:
    """The names for a server that listens on `bound`: where others can reach it, any, unless some are named."""
    allowed = tuple(allowed)
    return tuple(dict.fromkeys((*OWN, bound, *allowed))) if allowed or is_loopback(bound) else ()


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(plain(host)).is_loopback
    except ValueError:
        return plain(host) == "localhost" or plain(host).endswith(".localhost")
