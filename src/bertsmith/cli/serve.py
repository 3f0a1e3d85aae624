"""`bertsmith serve`: models that others ask over HTTP."""

from importlib.util import find_spec
from typing import Any

from bertsmith.cli.options import Json
from bertsmith.cli.output import wants_json, write_json, write_text
from bertsmith.cli.serve_options import (
    Access,
    Limits,
    Listening,
    Running,
    ServedModels,
    Treatment,
    make_plan,
    make_settings,
)
from bertsmith.errors import BertsmithError

NEEDED = ("fastapi", "uvicorn", "httptools", "orjson", "prometheus_client")


def serve(
    *,
    served: ServedModels,
    listening: Listening,
    running: Running,
    limits: Limits,
    access: Access,
    treatment: Treatment,
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
    limits.check()
    as_json = wants_json(as_json)
    settings = make_settings(served, listening, limits, access, treatment)
    plan = make_plan(served, running)
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
