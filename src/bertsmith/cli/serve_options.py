"""The flags of `bertsmith serve`, a group for each thing they settle, and what they become.

In: what was typed. Out: the `Plan` and the `Settings` of a server.
"""

import os
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.options import Dtype, Policy
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.serving.processes.plan import Plan
    from bertsmith.serving.settings import Settings

KEYS = "BERTSMITH_API_KEYS"
MEGA = 2**20


@dataclass(frozen=True)
class ServedModels:
    """Which models answer."""

    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FOLDER|ID=FOLDER",
            help="A model to serve, by its folder's name or ID; may be given several times; else the package's own.",
        ),
    ] = None
    default: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The model that answers where a request names none; else the first one."),
    ] = None
    adapter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="An adapter for the first model; those in a model's own folder are found. May be given several times.",
        ),
    ] = None
    index: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder of texts that the first model searches.")
    ] = None


@dataclass(frozen=True)
class Listening:
    """Where requests come in."""

    host: Annotated[str, typer.Option(metavar="NAME", help="Where to listen; 0.0.0.0 is every address.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 is any free one.")] = 8000
    workers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Processes that speak HTTP; from 2 on the models have a process of their own."
        ),
    ] = 1


@dataclass(frozen=True)
class Running:
    """How the models run."""

    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="auto, cpu, mps, cuda or cuda:N; each one given gets a process and all the models."
        ),
    ] = None
    dtype: Annotated[Dtype, typer.Option(help="The precision the models run in.")] = "float32"
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads.")] = None
    batch_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, help="Most tokens in one batch.")] = None
    download: Annotated[bool, typer.Option("--download", help="Fetch models that are not here yet.")] = False


@dataclass(frozen=True)
class Limits:
    """What is taken at a time, and how long it may last."""

    queue: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests at work or waiting; those beyond are answered 429.")
    ] = 512
    max_wait: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.001, help="Answer 429 where an answer would take longer."),
    ] = None
    max_inputs: Annotated[int, typer.Option(metavar="N", min=1, help="Texts in a request.")] = 2048
    max_body: Annotated[float, typer.Option(metavar="MIB", min=0.001, help="The largest request, in MiB.")] = 10.0
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.001, help="How long a request may take.")] = 60.0
    drain: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.001, help="How long accepted requests have to end at a stop."),
    ] = 30.0

    def check(self) -> None:
        """Typer takes "nan" and "inf" for numbers within any bounds."""
        given = {
            "--max-wait": self.max_wait,
            "--max-body": self.max_body,
            "--timeout": self.timeout,
            "--drain": self.drain,
        }
        for name, value in given.items():
            if value is not None and not isfinite(value):
                raise typer.BadParameter(f"{name} must be a number.")


@dataclass(frozen=True)
class Access:
    """Who may ask."""

    api_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help=f"Answer only who sends this key; may be given several times. Others can see it in the list of "
            f"processes: better set {KEYS} (separated by commas) or use --api-keys-file.",
        ),
    ] = None
    api_keys_file: Annotated[Path | None, typer.Option(metavar="FILE", help="A file of keys, one a line.")] = None
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this origin ask; * is all. May be given several times."),
    ] = None
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Take requests that were sent to this name. On loopback those sent to localhost or its addresses are "
            "taken, and no others; elsewhere all are, unless this is given. May be given several times.",
        ),
    ] = None


@dataclass(frozen=True)
class Treatment:
    """What becomes of a request beside its answer."""

    truncate: Annotated[
        Policy | None, typer.Option(help="What to do with long inputs where a request does not say it.")
    ] = None
    log_texts: Annotated[bool, typer.Option("--log-texts", help="Write what is asked into the log, too.")] = False
    no_page: Annotated[bool, typer.Option("--no-page", help="Show browsers no page to play with at /.")] = False


def make_plan(served: ServedModels, running: Running) -> "Plan":
    from bertsmith.serving.processes.plan import Plan

    return Plan(
        models=tuple(served.model or ()),
        adapters=tuple(served.adapter or ()),
        devices=tuple(running.device or ("auto",)),
        dtype=running.dtype,
        threads=running.threads,
        batch_tokens=running.batch_tokens,
        download=running.download,
        index=None if served.index is None else str(served.index),
    )


def make_settings(
    served: ServedModels, listening: Listening, limits: Limits, access: Access, treatment: Treatment
) -> "Settings":
    from bertsmith.serving.http.hosts import list_hosts
    from bertsmith.serving.settings import Settings

    return Settings(
        host=listening.host,
        port=listening.port,
        workers=listening.workers,
        default=served.default,
        requests=limits.queue,
        wait=limits.max_wait,
        inputs=limits.max_inputs,
        body_bytes=round(limits.max_body * MEGA),
        timeout=limits.timeout,
        drain=limits.drain,
        keys=gather_keys(access.api_key or (), access.api_keys_file),
        cors=tuple(access.cors or ()),
        hosts=list_hosts(listening.host, access.allowed_host or ()),
        truncate=treatment.truncate,
        log_texts=treatment.log_texts,
        page=not treatment.no_page,
    )


def gather_keys(given: Any, file: Path | None) -> tuple[str, ...]:
    """From flags, the environment and a file; lines that are empty or begin with # are none."""
    keys = [*given, *(part.strip() for part in os.environ.get(KEYS, "").split(",") if part.strip())]
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise BertsmithError(f"--api-keys-file {file} cannot be read: {why}.") from None
        found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        if not found:
            raise BertsmithError(f"--api-keys-file {file} holds no key, and without one everybody could ask.")
        keys += found
    return tuple(dict.fromkeys(keys))
