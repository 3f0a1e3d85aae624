"""Why a request was not answered, in the words and the shape that its client knows.

In: a `Complaint`, a `Refusal` or what FastAPI raises, and the style of a route. Out: a response with a status of HTTP.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from starlette.responses import Response

from bertsmith.serving.asks import Refusal

Style = Literal["openai", "tei", "huggingface", "cohere", "bertsmith"]
STYLES: tuple[Style, ...] = ("openai", "tei", "huggingface", "cohere", "bertsmith")

STATUS = {
    "input": 400, "job": 400, "model": 404, "overloaded": 429, "unavailable": 503, "timeout": 504, "internal": 500,
    "json": 400, "empty": 400, "key": 401, "route": 404, "method": 405, "slow": 408, "large": 413, "media": 415,
    "host": 421, "gone": 499,
}  # fmt: skip
TEI_STATUS = {"input": 422, "job": 424}
TEI_TYPES = {
    "input": "Validation", "job": "Backend", "model": "Validation", "overloaded": "Overloaded", "json": "Validation",
    "unavailable": "Unhealthy", "timeout": "Backend", "internal": "Backend", "empty": "Empty", "key": "Unauthorized",
}  # fmt: skip
OPENAI_CODES = {
    "model": "model_not_found", "overloaded": "rate_limit_exceeded", "key": "invalid_api_key", "route": "unknown_url",
    "timeout": "timeout", "unavailable": "service_unavailable", "large": "request_too_large",
}  # fmt: skip
OF_STATUS = {404: "route", 405: "method", 413: "large", 415: "media", 401: "key", 408: "slow"}


class EmptyInput(Refusal):
    """There is nothing in the request to work on; clients of text-embeddings-inference know this one apart."""

    def __init__(self, message: str) -> None:
        super().__init__("input", message)


@dataclass(frozen=True)
class Complaint:
    kind: str  # a key of `STATUS`
    message: str  # a sentence for the one who asked
    param: str | None = None  # the field at fault
    retry_after: float | None = None
    headers: dict[str, str] = field(default_factory=dict)


def of_refusal(refusal: Refusal) -> Complaint:
    if refusal.kind == "internal":
        return Complaint("internal", "something went wrong here; the server's log has more under this request's id.")
    kind = "empty" if isinstance(refusal, EmptyInput) else refusal.kind
    return Complaint(kind, refusal.message, retry_after=refusal.retry_after)


def of_validation(errors: Sequence[Any]) -> Complaint:
    """The first mistake that pydantic found, named by its field; what was sent is not repeated."""
    first: dict[str, Any] = errors[0] if errors else {"loc": (), "msg": "it cannot be read", "type": ""}
    path = [str(part)[:40] for part in first["loc"][1:]]  # behind "body", "query" or "path"
    if first["type"] == "json_invalid":
        return Complaint("json", "the body is not JSON.")
    if not path:
        return Complaint("input", f"the body does not fit: {_lower(first['msg'])}; send a JSON object.")
    if first["type"] == "missing":
        return Complaint("input", f"the field {'.'.join(path)!r} is missing.", ".".join(path))
    return Complaint("input", f"the field {path[0]!r} does not fit: {_lower(first['msg'])}.", path[0])


def _lower(message: str) -> str:
    return (message[:1].lower() + message[1:200]).rstrip(".")


def of_status(status: int, method: str, path: str, detail: object) -> Complaint:
    """For what the router itself refuses, or a handler with an `HTTPException`."""
    kind = OF_STATUS.get(status, "input" if status < 500 else "internal")
    if kind == "route" and detail in (None, "Not Found"):
        return Complaint(kind, f"there is no {method} {path[:100]!r} here; GET / lists what there is.")
    if kind == "method":
        return Complaint(kind, f"{path[:100]!r} does not take {method}; the Allow header says what it takes.")
    if kind == "internal":
        return of_refusal(Refusal("internal", ""))
    return Complaint(kind, str(detail)[:300])


def render(complaint: Complaint, style: str, request_id: str = "") -> Response:
    status = STATUS[complaint.kind]
    if style == "tei":
        status = TEI_STATUS.get(complaint.kind, status)
    headers = dict(complaint.headers)
    if complaint.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(complaint.retry_after)))
        headers["retry-after-ms"] = str(max(1, round(complaint.retry_after * 1000)))  # openai's client reads it first
    if complaint.kind == "key":
        headers["www-authenticate"] = 'Bearer realm="bertsmith"'
    body = orjson.dumps(shape(complaint, style, status, request_id))
    return Response(body, status, headers, media_type="application/json")


def shape(complaint: Complaint, style: str, status: int, request_id: str) -> dict[str, Any]:
    kind = complaint.kind
    message = complaint.message.encode("utf-8", "backslashreplace").decode()  # it may quote what was asked
    match style:
        case "openai":
            whose = "server_error" if status >= 500 else "invalid_request_error"
            type_ = "rate_limit_error" if kind == "overloaded" else whose
            code = OPENAI_CODES.get(kind)
            return {"error": {"message": message, "type": type_, "param": complaint.param, "code": code}}
        case "tei":
            return {"error": message, "error_type": TEI_TYPES.get(kind, "Validation")}
        case "huggingface":
            return {"error": message}
        case "cohere":
            return {"id": request_id, "message": message}
        case _:
            return {"error": {"kind": kind, "message": message, "field": complaint.param, "request_id": request_id}}
