"""The door that every request comes through: who may come in, how much it may bring, and what is noted of it.

In: ASGI. Out: ASGI, with a request id, headers for safety and timing; one line in the log and the counts at the end.
"""

import asyncio
import re
import secrets
import time
from typing import Any

from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertsmith.serving.asks import Refusal
from bertsmith.serving.http.answering import ClientGone
from bertsmith.serving.http.bodies import JSON, Incoming, answer_then_drop, check_headers, replay
from bertsmith.serving.http.complaints import Complaint, of_refusal, render
from bertsmith.serving.http.directory import METHODS, UNKNOWN, Directory
from bertsmith.serving.http.hosts import Hosts
from bertsmith.serving.http.keys import Keys
from bertsmith.serving.http.logs import tell_failure, tell_request
from bertsmith.serving.http.records import Record
from bertsmith.serving.settings import Settings

HARMLESS = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
BODILESS = frozenset({"GET", "HEAD", "OPTIONS"})
SAFETY = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
]
STRICT = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
PRIVATE = (b"cache-control", b"no-store")


class Door:
    def __init__(self, app: ASGIApp, state: State) -> None:
        """`state`: the app's, with its settings, backend, metrics, directory and whether it is draining."""
        self.app, self.state = app, state
        self.directory: Directory = state.directory
        self.settings: Settings = state.settings
        self.hosts, self.keys = Hosts(self.settings.hosts), Keys(self.settings.keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        record = self._open(scope, headers)
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, record)
            await send(message)

        self.state.metrics.in_flight.inc()
        try:
            await self._pass(scope, headers, record, receive, send_on)
        except ClientGone:
            record.complaint = "gone"
            status = 499
        except asyncio.CancelledError:
            if status or not self.state.draining:
                raise
            # Its time to end is over, and the server's fault it is not: left to uvicorn that would be a bare 500.
            stopping = Refusal("unavailable", "the server is stopping; ask again in a moment.", 1.0)
            await self._refuse(of_refusal(stopping), record, None, send_on)
        except Exception:
            tell_failure(record)
            if not status:
                await self._refuse(of_refusal(Refusal("internal", "")), record, None, send_on)
        finally:
            seconds = time.perf_counter() - record.started
            self.state.metrics.in_flight.dec()
            self.state.metrics.count(record, status or 499, seconds)
            tell_request(record, status or 499, seconds, (scope.get("client") or ("",))[0])

    def _open(self, scope: Scope, headers: dict[bytes, bytes]) -> Record:
        method, path = scope["method"], scope["path"]
        given = headers.get(b"x-request-id", b"")
        name = given.decode() if HARMLESS.fullmatch(given) else secrets.token_hex(8)
        route, style = self.directory.find(method, path)
        record = Record(name, method if method in METHODS else "OTHER", route, style, time.perf_counter())
        scope.setdefault("state", {})["record"] = record
        return record

    async def _pass(
        self, scope: Scope, headers: dict[bytes, bytes], record: Record, receive: Receive, send: Send
    ) -> None:
        complaint = self._check(scope, headers, record)
        incoming = Incoming(receive)
        if record.method in BODILESS:
            receive = replay(b"", receive)  # whatever comes, nobody reads it
        elif complaint is None:
            body = await incoming.read(self.settings.body_bytes, self.settings.read_timeout)
            if isinstance(body, bytes):
                record.read = len(body)
                receive = replay(body, receive)
                # Whatever it was called, it is JSON or it is refused as not being JSON.
                kept = [pair for pair in scope["headers"] if pair[0] != b"content-type"]
                scope["headers"] = [*kept, (b"content-type", JSON)]
            else:
                complaint = body
        if complaint is None:
            if record.method == "HEAD" and "HEAD" in self.directory.list_methods(scope["path"]):
                scope = {**scope, "method": "GET"}  # the same answer; the server, which knows better, sends no body
            await self.app(scope, receive, send)
        else:
            # One that waits for leave to send (`Expect: 100-continue`) gets none, and sends nothing.
            incoming.ended = incoming.ended or b"expect" in headers
            await self._refuse(complaint, record, incoming, send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes], record: Record) -> Complaint | None:
        """What can be said before the body is read."""
        if not self.hosts.know(headers.get(b"host", b"")):
            return Complaint("host", "this server is not known by that name; start it with --allowed-host NAME.")
        if not self.keys.opens(scope["method"], scope["path"], headers.get(b"authorization", b"")):
            return Complaint("key", "this server wants a key; send it in the header Authorization: Bearer KEY.")
        if record.method in BODILESS:
            return None
        complaint = check_headers(headers, self.settings.body_bytes)
        if complaint is not None or record.route == UNKNOWN:
            return complaint
        backend = self.state.backend
        if not backend.is_ready() and not backend.cards():
            return Complaint("unavailable", "no model is served yet; ask again later.", retry_after=1.0)
        seconds = backend.admits(int(headers.get(b"content-length", b"0")))
        if seconds is None:
            return None
        return Complaint("overloaded", "too many requests are waiting; ask again later.", retry_after=seconds)

    async def _refuse(self, complaint: Complaint, record: Record, incoming: Incoming | None, send: Send) -> None:
        """`incoming`: where the client may still be sending."""
        record.complaint = complaint.kind
        response = render(complaint, record.style, record.id)
        if complaint.kind in ("large", "slow"):
            response.headers["connection"] = "close"
        await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
        body = bytes(response.body)
        if incoming is None or complaint.kind == "slow":
            await send({"type": "http.response.body", "body": body, "more_body": False})
        else:
            await answer_then_drop(body, incoming, send)

    def _add_headers(self, message: Message, record: Record) -> None:
        added: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
        names = {name for name, _ in added}
        added += [*SAFETY, (b"x-request-id", record.id.encode())]
        added += [pair for pair in (STRICT, PRIVATE) if pair[0] not in names]
        if self.state.draining and b"connection" not in names:
            added.append((b"connection", b"close"))
        if record.replies:
            added += [(name, str(value).encode()) for name, value in tell_costs(record).items()]
        message["headers"] = added


def tell_costs(record: Record) -> dict[bytes, Any]:
    """The headers of text-embeddings-inference, whose times are whole milliseconds, and what was cut."""
    total = round((time.perf_counter() - record.started) * 1000)
    queued, worked = (round(record.total(name) * 1000) for name in ("queued", "worked"))
    return {
        b"x-truncated-tokens": record.truncated(),
        b"x-compute-tokens": int(record.total("tokens")),
        b"x-queue-time": queued,
        b"x-inference-time": worked,
        b"x-compute-time": max(0, total - queued),
        b"x-total-time": total,
    }
