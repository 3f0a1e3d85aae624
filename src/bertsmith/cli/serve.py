"""`bertsmith serve`: models that others ask over HTTP."""

import os
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from bertsmith.cli.options import Dtype, Json, Policy
from bertsmith.cli.output import wants_json, write_json, write_text
from bertsmith.errors import BertsmithError

NEEDED = ("fastapi", "uvicorn", "httptools", "orjson", "prometheus_client")
KEYS = "BERTSMITH_API_KEYS"
MEGA = 2**20


def serve(
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FOLDER|ID=FOLDER",
            help="A model to serve, called by its folder's name or ID; may be given several times; else the demo's.",
        ),
    ] = None,
    default: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The model that answers where a request names none; else the first one."),
    ] = None,
    adapter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="An adapter for the first model; those in a model's own folder are found. May be given several times.",
        ),
    ] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder of texts that the first model searches.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="NAME", help="Where to listen; 0.0.0.0 is every address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 is any free one.")] = 8000,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Processes that speak HTTP; from 2 on the models have a process of their own."
        ),
    ] = 1,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="auto, cpu, mps, cuda or cuda:N; each one given gets a process and all the models."
        ),
    ] = None,
    dtype: Annotated[Dtype, typer.Option(help="The precision the models run in.")] = "float32",
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads.")] = None,
    batch_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, help="Most tokens in one batch.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch models that are not here yet.")] = False,
    queue: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests at work or waiting; those beyond are answered 429.")
    ] = 512,
    max_wait: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.001, help="Answer 429 where an answer would take longer."),
    ] = None,
    max_inputs: Annotated[int, typer.Option(metavar="N", min=1, help="Texts in a request.")] = 2048,
    max_body: Annotated[float, typer.Option(metavar="MIB", min=0.001, help="The largest request, in MiB.")] = 10.0,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.001, help="How long a request may take.")] = 60.0,
    drain: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.001, help="How long accepted requests have to end at a stop."),
    ] = 30.0,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help=f"Answer only who sends this key; may be given several times. Others can see it in the list of "
            f"processes: better set {KEYS} (separated by commas) or use --api-keys-file.",
        ),
    ] = None,
    api_keys_file: Annotated[Path | None, typer.Option(metavar="FILE", help="A file of keys, one a line.")] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this origin ask; * is all. May be given several times."),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Take requests that were sent to this name. On loopback those sent to localhost or its addresses are "
            "taken, and no others; elsewhere all are, unless this is given. May be given several times.",
        ),
    ] = None,
    truncate: Annotated[
        Policy | None, typer.Option(help="What to do with long inputs where a request does not say it.")
    ] = None,
    log_texts: Annotated[bool, typer.Option("--log-texts", help="Write what is asked into the log, too.")] = False,
    no_page: Annotated[bool, typer.Option("--no-page", help="Show browsers no page to play with at /.")] = False,
    as_json: Json = False,
) -> None:
    """Serve models over HTTP, to the clients that people already have.

    It speaks as OpenAI (/v1/embeddings), text-embeddings-inference, the inference API of Hugging Face and Cohere
    (/v1/rerank) do; http://127.0.0.1:8000/docs shows all of it. A browser that opens http://127.0.0.1:8000 gets a page
    to play with every job and to look inside the models. SIGTERM or Ctrl-C ends it when what it accepted is answered;
    a second one ends it at once.

    \b
    Examples:
      bertsmith serve
      bertsmith serve --model reviews=my-classifier --model my-bert --port 8080 --workers 2
    """
    check_installed()
    check_finite({"--max-wait": max_wait, "--max-body": max_body, "--timeout": timeout, "--drain": drain})
    as_json = wants_json(as_json)
    from bertsmith.serving.http.hosts import list_hosts
    from bertsmith.serving.processes.plan import Plan
    from bertsmith.serving.settings import Settings

    settings = Settings(
        host=host,
        port=port,
        workers=workers,
        default=default,
        requests=queue,
        wait=max_wait,
        inputs=max_inputs,
        body_bytes=round(max_body * MEGA),
        timeout=timeout,
        drain=drain,
        keys=gather_keys(api_key or (), api_keys_file),
        cors=tuple(cors or ()),
        hosts=list_hosts(host, allowed_host or ()),
        truncate=truncate,
        log_texts=log_texts,
        page=not no_page,
    )
    plan = Plan(
        models=tuple(model or ()),
        adapters=tuple(adapter or ()),
        devices=tuple(device or ("auto",)),
        dtype=dtype,
        threads=threads,
        batch_tokens=batch_tokens,
        download=download,
        index=None if index is None else str(index),
    )
    from bertsmith.serving.processes.supervisor import run

    run(plan, settings, write_json if as_json else tell)


def tell(facts: dict[str, Any]) -> None:
    """The one line of a terminal."""
    write_text([
        (facts["url"], "bold"), (" serves ", ""), (", ".join(facts["models"]), "bold"), ("; Ctrl-C ends it", ""),
    ])  # fmt: skip


def check_installed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise BertsmithError(f"serving needs {', '.join(missing)}: pip install 'bertsmith[serve]'.")


def check_finite(given: dict[str, float | None]) -> None:
    for name, value in given.items():
        if value is not None and not isfinite(value):
            raise typer.BadParameter(f"{name} must be a number.")


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
