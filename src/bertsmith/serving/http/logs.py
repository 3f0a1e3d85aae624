"""One line of JSON for each request, and for whatever else the server has to say.

In: a `Record` when its request ends. Out: a line without texts, keys or query strings, unless texts are asked for.
"""

import logging
import sys
import time
from typing import Any, TextIO

import orjson

from bertsmith.serving.http.records import Record

NAME = "bertsmith.serving"
log = logging.getLogger(NAME)
requests = logging.getLogger(f"{NAME}.requests")


def configure_logs(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Every line that the server and uvicorn write becomes JSON; called once by a process that serves."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("bertsmith", NAME, "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(level)
    logging.getLogger("bertsmith.cuts").disabled = True  # a request's line says what was cut of it
    # What uvicorn says of a request is in our line, and whoever sends it broken HTTP shall not fill the log.
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").setLevel(max(level, logging.ERROR))


class JsonLines(logging.Formatter):
    def format(self, line: logging.LogRecord) -> str:
        said: dict[str, Any] = {"time": _tell_time(line.created), "level": line.levelname.lower()}
        fields = getattr(line, "fields", None)
        said |= fields if fields is not None else {"message": line.getMessage()}
        if line.exc_info:
            said["error"] = self.formatException(line.exc_info)
        return orjson.dumps(said, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _tell_time(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def tell_request(record: Record, status: int, seconds: float, client: str) -> None:
    if not requests.isEnabledFor(logging.INFO):
        return
    said: dict[str, Any] = {
        "id": record.id,
        "client": client,
        "method": record.method,
        "route": record.route,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "bytes": record.read,
    }
    if record.job:
        said |= {"job": record.job, "inputs": record.inputs}
    if record.replies:
        said |= {
            "model": record.replies[0].model,
            "tokens": int(record.total("tokens")),
            "truncated": record.truncated(),
            "queue_ms": round(record.total("queued") * 1000, 2),
            "inference_ms": round(record.total("worked") * 1000, 2),
        }
    if record.complaint:
        said["complaint"] = record.complaint
    if record.texts is not None:
        said["asked"] = record.texts
    requests.info("request", extra={"fields": said})


def tell_failure(record: Record) -> None:
    """With the traceback, which nobody but the log gets to see."""
    fields = {"id": record.id, "route": record.route, "message": "a request failed by a fault of the server"}
    log.error("failure", exc_info=True, extra={"fields": fields})
