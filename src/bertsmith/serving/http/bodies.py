"""The body of a request, read whole within its limits of size and time before anything looks into it.

In: the headers and what ASGI receives. Out: the bytes, or a `Complaint`.
"""

import asyncio
from contextlib import suppress
from typing import Any

from starlette.types import Receive, Send

from bertsmith.serving.http.answering import ClientGone
from bertsmith.serving.http.complaints import Complaint

JSON = b"application/json"
# A body of these kinds is surely no JSON. Any other may be: curl calls what it sends a form unless told otherwise.
OTHER_TYPES = (b"multipart/", b"image/", b"audio/", b"video/", b"font/", b"text/html", b"text/xml", b"text/csv")
OTHER_NAMES = frozenset({b"application/pdf", b"application/zip", b"application/gzip", b"application/xml"})
LINGER_BYTES = 2**26
LINGER_SECONDS = 5.0


def check_headers(headers: dict[bytes, bytes], most: int) -> Complaint | None:
    length = headers.get(b"content-length", b"0")
    if not length.isdigit():
        return Complaint("input", "the header Content-Length is not a number.")
    if len(length) > 18 or int(length) > most:
        return too_large(most)
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        return Complaint("media", "the body is packed (Content-Encoding); send it as plain JSON.")
    kind = headers.get(b"content-type", JSON).split(b";")[0].strip().lower()
    if kind.startswith(OTHER_TYPES) or kind in OTHER_NAMES:
        return Complaint("media", "the body must be JSON; send it with the header Content-Type: application/json.")
    return None


def too_large(most: int) -> Complaint:
    return Complaint("large", f"the body is larger than the {most} bytes that are taken; send fewer texts at once.")


class Incoming:
    """What a client sends, and whether all of it has come."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.ended = False

    async def next(self) -> bytes:
        """Raises `ClientGone` where the client went away in the middle."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        self.ended = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part

    async def read(self, most: int, seconds: float) -> bytes | Complaint:
        parts: list[bytes] = []
        count = 0
        try:
            async with asyncio.timeout(seconds):
                while not self.ended:
                    parts.append(await self.next())
                    count += len(parts[-1])
                    if count > most:
                        return too_large(most)
        except TimeoutError:
            return Complaint("slow", f"the request was not sent within {seconds:g} seconds.")
        return parts[0] if len(parts) == 1 else b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, and after it whatever is received."""
    given = False

    async def receive_again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def answer_then_drop(body: bytes, incoming: Incoming, send: Send) -> None:
    """Sends the last of an answer to a client that may still be sending: what it sends is thrown away for a while,
    because a connection that is closed with bytes unread loses the answer as well."""
    if not incoming.ended:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        body = b""
        count = 0
        with suppress(TimeoutError, ClientGone):
            async with asyncio.timeout(LINGER_SECONDS):
                while count < LINGER_BYTES and not incoming.ended:
                    count += len(await incoming.next())
    await send({"type": "http.response.body", "body": body, "more_body": False})
