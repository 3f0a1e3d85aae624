"""The sockets of a server: one that the world connects to, and those between its own processes.

In: a host and a port, or a path. Out: sockets; what the system refuses is told in a sentence.
"""

import errno
import socket

from bertsmith.errors import BertsmithError

PATH_BYTES = 100  # of a Unix socket; systems take 104 to 108


def bind(host: str, port: int) -> socket.socket:
    """Bound, so that a port that is taken is known before any model is loaded; it listens when they are there."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise BertsmithError(f"--host {host!r} is not the name or the address of a machine.") from None
    # Of `localhost`, the address that most clients try.
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise BertsmithError(_explain(error, host, port)) from None
    return made


def listen(bound: socket.socket, backlog: int) -> None:
    try:
        bound.listen(backlog)
    except OSError as error:
        raise BertsmithError(_explain(error, *bound.getsockname()[:2])) from None


def _explain(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} of {host} is taken by another program; give another --port, or 0 for any free one."
        case errno.EACCES:
            return f"this user may not listen on port {port}; give --port a number from 1024 on."
        case errno.EADDRNOTAVAIL:
            return f"--host {host!r} is not an address of this machine."
        case _:
            return f"cannot listen on port {port} of {host}: {error.strerror}."


def listen_here(path: str) -> socket.socket:
    """For processes of this machine; whoever connects waits in line while the one who answers is replaced."""
    if len(path.encode()) > PATH_BYTES:
        raise BertsmithError(f"the folder for temporary files has too long a name for sockets; set TMPDIR ({path}).")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(path)
    made.listen(128)
    return made


def tell_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
