"""`bertsmith serve` before it serves: flags, keys, and mistakes in one sentence."""

import json
import os
import re
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest
from typer.testing import CliRunner

from bertsmith.cli import serve as verb
from bertsmith.cli.app import app
from bertsmith.cli.serve_options import KEYS
from bertsmith.errors import BertsmithError


@pytest.fixture
def run(monkeypatch):
    """Runs the verb up to where it would serve: the plan and the settings."""
    monkeypatch.delenv(KEYS, raising=False)
    found = []
    run = "bertsmith.serving.processes.supervisor.run"
    monkeypatch.setattr(run, lambda plan, settings, tell: found.append((plan, settings)))

    def invoke(*words):
        ran = CliRunner().invoke(app, ["serve", *words])
        if isinstance(ran.exception, BertsmithError):
            raise ran.exception
        assert ran.exit_code == 0, ran.output
        return found.pop()

    return invoke


def test_the_defaults_are_those_of_the_settings(run):
    from bertsmith.serving.processes.plan import Plan
    from bertsmith.serving.settings import Settings

    assert run() == (Plan(), Settings(hosts=("localhost", "127.0.0.1", "::1")))


def test_every_flag_arrives(run, tmp_path):
    (tmp_path / "keys").write_text("# ours\nfrom-a-file\n\n")
    plan, settings = run(
        *("--model", "a=one", "--model", "two", "--default", "a", "--adapter", "x=there", "--host", "::1"),
        *("--port", "0", "--workers", "3", "--device", "cuda:0", "--device", "cuda:1", "--dtype", "bfloat16"),
        *("--threads", "2", "--batch-tokens", "99", "--queue", "7", "--max-wait", "0.5", "--max-inputs", "5"),
        *("--max-body", "0.5", "--timeout", "3", "--drain", "4", "--api-key", "k", "--cors", "https://a.example"),
        *("--truncate", "tail", "--log-texts", "--index", "texts", "--api-keys-file", str(tmp_path / "keys")),
        *("--download", "--no-page"),
    )
    assert plan.models == ("a=one", "two") and plan.adapters == ("x=there",) and plan.devices == ("cuda:0", "cuda:1")
    assert (plan.dtype, plan.threads, plan.batch_tokens, plan.download, plan.index) == (
        "bfloat16", 2, 99, True, "texts")  # fmt: skip
    assert (settings.host, settings.port, settings.workers, settings.default) == ("::1", 0, 3, "a")
    assert (settings.requests, settings.wait, settings.inputs, settings.body_bytes) == (7, 0.5, 5, 2**19)
    assert (settings.timeout, settings.drain, settings.keys) == (3.0, 4.0, ("k", "from-a-file"))
    assert (settings.cors, settings.truncate, settings.log_texts) == (("https://a.example",), "tail", True)
    assert settings.page is False


def test_the_examples_of_the_help_are_commands(run):
    page = CliRunner().invoke(app, ["serve", "--help"]).output
    lines = re.findall(r"^\s+bertsmith serve(.*)$", page, re.MULTILINE)
    assert len(lines) >= 2
    plans = [run(*line.split())[0] for line in lines]
    assert plans[-1].models == ("reviews=my-classifier", "my-bert")


def test_plan_and_settings_survive_json(run):
    from bertsmith.serving.processes.plan import read_plan, read_settings, to_json

    plan, settings = run("--model", "a=b", "--api-key", "k", "--max-wait", "2", "--device", "cpu")
    assert read_plan(json.loads(json.dumps(to_json(plan)))) == plan
    assert read_settings(json.loads(json.dumps(to_json(settings)))) == settings


def test_keys_of_the_environment(run, monkeypatch):
    monkeypatch.setenv(KEYS, "a, b,,a")
    assert run("--api-key", "c")[1].keys == ("c", "a", "b")


@pytest.mark.parametrize(
    "content, said",
    [(None, "cannot be read: No such file"), (b"\n# none\n", "holds no key"), (b"\xff", "it is not UTF-8"),
     (b"with space in\n", "printable ASCII")],
)  # fmt: skip
def test_a_file_of_keys_that_has_none_is_refused(run, tmp_path, content, said):
    if content is not None:
        (tmp_path / "keys").write_bytes(content)
    with pytest.raises(BertsmithError, match=said):
        run("--api-keys-file", str(tmp_path / "keys"))


@pytest.mark.parametrize(
    "words", [["--port", "70000"], ["--workers", "0"], ["--timeout", "nan"], ["--max-body", "inf"], ["--drain", "0"]]
)
def test_a_number_out_of_range_is_a_mistake_in_the_command(words):
    ran = CliRunner().invoke(app, ["serve", *words])
    assert ran.exit_code == 2 and words[0] in ran.output


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(verb, "NEEDED", ("orjson", "no_such_module"))
    with pytest.raises(BertsmithError, match=r"^serving needs no_such_module: pip install 'bertsmith\[serve\]'\.$"):
        verb.check_installed()


@pytest.mark.parametrize(
    "words, said",
    [
        (["--host", "no.such.host.invalid"], "is not the name or the address of a machine"),
        (["--host", "192.0.2.1", "--port", "0"], "is not an address of this machine"),
    ],
)
def test_a_place_that_cannot_be_listened_on_is_one_sentence(words, said):
    ran = CliRunner().invoke(app, ["serve", *words])
    assert isinstance(ran.exception, BertsmithError) and said in str(ran.exception)


def test_a_port_that_is_taken_is_known_before_anything_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = CliRunner().invoke(app, ["serve", "--port", str(port), "--model", "missing"])
    assert str(ran.exception) == (
        f"port {port} of 127.0.0.1 is taken by another program; give another --port, or 0 for any free one."
    )


def test_a_model_that_another_process_cannot_load_is_one_sentence(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "bertsmith", "serve", "--port", "0", "--model", "missing", "--workers", "2"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
        timeout=120,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith('error: no folder "missing" here') and ran.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words, said",
    [
        (["--model", "../"], "cannot be the id of a model"),
        (["--adapter", "there"], "--adapter 'there' must be NAME=FOLDER"),
        (["--device", "abacus"], "device='abacus' is not a choice"),
        (["--default", "other"], "--default 'other' is not served; the models are bare"),
    ],
)
def test_a_model_that_cannot_be_served_is_one_sentence(heads, monkeypatch, words, said):
    monkeypatch.chdir(heads["bare"].parent)
    ran = CliRunner().invoke(app, ["serve", "--port", "0", "--model", "bare", *words])
    assert isinstance(ran.exception, BertsmithError) and said in str(ran.exception)


def test_a_plan_becomes_models_with_adapters_and_an_index(heads, adapters, tmp_path):
    from bertsmith.serving.processes.plan import Plan
    from bertsmith.serving.settings import Settings

    (tmp_path / "a.txt").write_text("the film was good\n")
    plan = Plan(
        models=(f"a={heads['bare']}", str(heads["tag"])),
        adapters=(f"liked={adapters['liked']}",),
        batch_tokens=77,
        index=str(tmp_path),
    )
    cards = plan.load(Settings(default="tag"), "cpu").list_cards()
    assert [card.id for card in cards] == ["tag", "a", "a:liked"] and {card.batch_tokens for card in cards} == {77}
    assert [card.id for card in cards if "search" in card.jobs] == ["a"]


def test_an_index_that_another_process_writes_is_waited_for(heads, tmp_path, monkeypatch):
    from bertsmith.search.updating import taken
    from bertsmith.serving.processes import plan
    from bertsmith.serving.settings import Settings

    (tmp_path / "a.txt").write_text("the film was good\n")
    with ExitStack() as other:
        other.enter_context(taken(tmp_path / ".bertsmith-index"))
        monkeypatch.setattr(plan, "sleep", lambda _: other.close())
        (card,) = plan.Plan((str(heads["bare"]),), index=str(tmp_path)).load(Settings(), "cpu").list_cards()
    assert "search" in card.jobs
