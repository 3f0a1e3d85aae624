"""The page on serving is true: its curl and Python run against a live server, its tables are those of the code."""

import json
import re
import subprocess
from pathlib import Path

import httpx
import huggingface_hub
import pytest
from prometheus_client.parser import text_string_to_metric_families
from serving.served import serving_models
from typer.testing import CliRunner
from whole.tiny import make_encoder

import bertsmith
from bertsmith.cli.app import app
from bertsmith.serving.routes.huggingface_tasks import TASKS
from bertsmith.serving.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
HERE = "http://127.0.0.1:8000"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
CURLS = [
    pytest.param(code, BLOCKS[number + 1], id=code.split()[1].removeprefix(HERE))
    for number, (kind, code) in enumerate(BLOCKS)
    if kind == "sh" and code.startswith("curl")
]


@pytest.fixture(scope="module")
def address(demo_model, heads, adapters, tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    reviews = make_encoder(place / "reviews", "ForSequenceClassification", num_labels=2, id2label={0: "bad", 1: "good"})
    folders = {"reviews": reviews, "names": heads["tag"], "reader": heads["answer"], "masks": heads["fill"],
               "nli": heads["classify"], "ranker": heads["score"]}  # fmt: skip
    models = {"all-MiniLM-L6-v2": bertsmith.load(demo_model, device="cpu")}
    models |= {name: bertsmith.load(folder, device="cpu") for name, folder in folders.items()}
    with serving_models(models) as found:
        yield found


def alike(told, found):
    """Whether an answer has the shape of the one on the page: the same keys, lists and kinds of values."""
    if isinstance(told, dict):
        assert isinstance(found, dict) and list(told) == list(found)
        for key in told:
            alike(told[key], found[key])
    elif isinstance(told, list):
        assert isinstance(found, list) and bool(found) >= bool(told)
        if told:
            alike(told[0], found[0])
    elif isinstance(told, int | float) and not isinstance(told, bool):
        assert isinstance(found, int | float) and not isinstance(found, bool)
    else:
        assert type(told) is type(found)


@pytest.mark.parametrize(("command", "answer"), CURLS)
def test_curl_says_what_the_page_says(address, command, answer):
    kind, told = answer
    assert kind == "json", "an answer stands behind each curl"
    run = subprocess.run(["bash", "-c", command.replace("curl ", "curl -sS --noproxy '*' ", 1).replace(HERE, address)],
                         capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    alike(json.loads(told), json.loads(run.stdout))


def test_every_kind_of_route_is_on_the_page():
    asked = {param.id for param in CURLS}
    assert {"/v1/embeddings", "/embed", "/v1/rerank", "/rerank", "/v1/jobs/classify", "/models/reader"} <= asked
    assert all(f"`{task}`" in PAGE for task in TASKS)


@pytest.mark.parametrize("code", [code for kind, code in BLOCKS if kind == "python"], ids=["openai", "huggingface"])
def test_the_python_runs(address, code, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    made = {}
    exec(compile(code.replace(HERE, address), "docs/serving.md", "exec"), made)
    if "vectors" in made:
        assert len(made["vectors"]) == 2 and len(made["vectors"][0]) == 384
        made["client"].close()
    huggingface_hub.close_session()


def test_the_limits_are_the_defaults():
    rows = re.findall(r"^\| [^|]+ \| `(--[a-z-]+)` \| (\d+)", PAGE, re.MULTILINE)
    settings = Settings()
    known = {"--queue": settings.requests, "--max-inputs": settings.inputs, "--max-body": settings.body_bytes / 2**20,
             "--timeout": settings.timeout, "--drain": settings.drain}  # fmt: skip
    assert {flag: float(value) for flag, value in rows} == known
    assert f"| seconds that a client has to send its request | | {settings.read_timeout:.0f} |" in PAGE


def test_the_flags_are_there():
    wide = {"COLUMNS": "200", "NO_COLOR": "1", "TERMINAL_WIDTH": "200"}
    shown = CliRunner().invoke(app, ["serve", "--help"], env=wide).output
    for flag in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)):
        assert flag in shown, flag


def test_the_metrics_are_those_of_the_server(address):
    httpx.post(f"{address}/embed", json={"inputs": "a"})
    told = httpx.get(f"{address}/metrics").text
    served = {f"{family.name}{'_total' * (family.type == 'counter')}"
              for family in text_string_to_metric_families(told) if family.name.startswith("bertsmith_")}  # fmt: skip
    assert set(re.findall(r"^\| `(bertsmith_\w+)` \|", PAGE, re.MULTILINE)) == {
        name for name in served if not name.endswith("_created")
    }
