"""Corpora from the command line: the same bytes from any number of processes and after any kill."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from corpus_texts import make_documents, make_tokenizer, read_all, write_sentence
from typer.testing import CliRunner

import bertsmith
from bertsmith.cli.app import app
from bertsmith.data.corpus import building, engines
from bertsmith.text import parts


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Several files with all that is dropped in them, and a tokenizer."""
    place = tmp_path_factory.mktemp("texts")
    draw = random.Random(0)
    for number in range(3):
        documents = make_documents(60, seed=number, paragraphs=3)
        documents = [f"share this\n{text}" if draw.random() < 0.5 else text for text in documents]
        documents += [*documents[:3], "short", write_sentence(draw, 200), " ".join(documents[5].split(" ")[:-1])]
        (place / "in").mkdir(exist_ok=True)
        (place / "in" / f"{number}.txt").write_text("\n\n".join(documents))
    (place / "bench.tsv").write_text(f"1\t{documents[10].splitlines()[-1]}\n")
    make_tokenizer(place / "tokenizer")
    return place


def build(texts, out, **given):
    return bertsmith.build_corpus(
        texts / "in", tokenizer=texts / "tokenizer", out=out, exclude=texts / "bench.tsv", held_out=0.1, **given
    )


@pytest.fixture(scope="module")
def wanted(texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "cut_parts", small_parts)
        build(texts, texts / "wanted")
    return read_all(texts / "wanted")


def small_parts(listed, unit=None):
    return parts.cut_parts(listed, unit=unit, size=4000)


def test_two_processes_write_the_bytes_of_one(texts, wanted, tmp_path, monkeypatch):
    monkeypatch.setattr(building, "cut_parts", small_parts)
    build(texts, tmp_path / "two", processes=2)
    assert read_all(tmp_path / "two") == wanted
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two"]
    reasons = set(wanted["report.json"]["dropped"])
    assert {"duplicate", "near duplicate", "too short", "boilerplate", "excluded"} <= reasons


def test_parts_of_any_size_hold_the_same_tokens(texts, wanted, tmp_path):
    build(texts, tmp_path / "whole")
    found = read_all(tmp_path / "whole")
    for name in wanted:
        if name.endswith(".bin") or name == "corpus.json":
            assert found[name] == wanted[name]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from whole import test_corpus as t
from bertsmith.data.corpus import building, staging, writing
place, left = sys.argv[1], int(sys.argv[2])
building.cut_parts = t.small_parts
def mortal(function):
    def counted(*given, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **more)
    return counted
staging.Staged.add = mortal(staging.Staged.add)
writing._put = mortal(writing._put)
writing.np.savez = mortal(writing.np.savez)
building.write_json = mortal(building.write_json)
t.build(Path(place), Path(sys.argv[3]))
"""


@pytest.mark.parametrize("steps", [3, 40, 160, 215, 225, 260, 330])
def test_killed_anywhere_it_goes_on_to_the_same_bytes(texts, wanted, tmp_path, monkeypatch, steps):
    tests = os.path.dirname(os.path.dirname(__file__))
    command = [sys.executable, "-c", KILLED, str(texts), str(steps), str(tmp_path / "out"), tests]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode in (-signal.SIGKILL, 0), done.stderr
    if done.returncode:
        assert not (tmp_path / "out").exists()
    monkeypatch.setattr(building, "cut_parts", small_parts)
    build(texts, tmp_path / "out")
    assert read_all(tmp_path / "out") == wanted
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_a_process_that_is_ended_is_a_sentence():
    with pytest.raises(bertsmith.BertsmithError, match=r"ended from outside.*the same command goes on"):
        list(engines.run(end_itself, [1, 2], 2))


def test_a_script_without_a_guard_is_told_of_it(texts, tmp_path):
    """Each process runs the script again up to the build, which is neither begun there nor taken for one that fell."""
    out, asked = tmp_path / "out", f"tokenizer={str(texts / 'tokenizer')!r}, held_out=0.1, processes=2"
    code = f"import bertsmith\nbertsmith.build_corpus({str(texts / 'in')!r}, out={str(out)!r}, {asked})\n"
    (tmp_path / "run.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, tmp_path / "run.py"], capture_output=True, text=True, env=environment)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.endswith('under `if __name__ == "__main__":`, or leave processes at 1.'), last
    assert done.stderr.count("Traceback") == 1 and "freeze_support" not in done.stderr


def test_processes_end_with_the_one_that_started_them(tmp_path):
    """Killed, a build left its processes waiting for work for ever."""
    tests = os.path.dirname(os.path.dirname(__file__))
    code = (
        "import sys\n"
        "from bertsmith.data.corpus import engines\n"
        "from whole.test_corpus import stay\n"
        "if __name__ == '__main__':\n"
        "    list(engines.run(stay, [sys.argv[1]] * 4, 2))\n"
    )
    (tmp_path / "run.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    with subprocess.Popen([sys.executable, str(tmp_path / "run.py"), str(tmp_path)], env=environment) as first:
        wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
        first.kill()
    others = [int(path.stem) for path in tmp_path.glob("*.pid")]
    wait_until(lambda: not any(map(is_alive, others)))


def wait_until(is_so):
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z")  # nobody asked how it ended


def stay(folder):
    Path(folder, f"{os.getpid()}.pid").touch()
    time.sleep(0.2 if len(list(Path(folder).glob("*.pid"))) == 2 else 1)


def end_itself(number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_command_line_builds_and_tells(texts, tmp_path):
    runner = CliRunner()
    command = ["corpus", "build", str(texts / "in"), "--tokenizer", str(texts / "tokenizer"), "--out"]
    more = ["--processes", "1", "--exclude", str(texts / "bench.tsv")]
    done = runner.invoke(app, [*command, str(tmp_path / "c"), *more])
    assert done.exit_code == 0, done.output
    built = json.loads(done.stdout.splitlines()[0])
    told = runner.invoke(app, ["corpus", "info", str(tmp_path / "c"), "--check"])
    assert json.loads(told.stdout.splitlines()[0]) == built
    assert built["splits"]["train"]["documents"] > 100 and built["exclude"][0]["paragraphs"] == 1
    assert runner.invoke(app, ["corpus", "build", str(texts / "in"), "--out", str(tmp_path / "d")]).exit_code == 2
    again = runner.invoke(app, [*command, str(tmp_path / "c"), "--no-filters"])
    assert "filters was True and is now False" in str(again.exception)


def test_ray_without_ray_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(bertsmith.BertsmithError, match=r"pip install 'bertsmith\[ray\]'"):
        list(engines.run(print, [1], 1, "ray"))


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray_writes_the_same_bytes(texts, wanted, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(building, "cut_parts", small_parts)
    tests = os.path.dirname(os.path.dirname(__file__))
    before = signal.getsignal(signal.SIGTERM)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": tests}})
    try:
        build(texts, tmp_path / "ray", engine="ray")
        assert read_all(tmp_path / "ray") == wanted
        (tmp_path / "bad.txt").write_bytes(b"good\n\nK\xf6ln")
        with pytest.raises(bertsmith.BertsmithError, match="is not UTF-8"):
            bertsmith.build_corpus(tmp_path / "bad.txt", texts / "tokenizer", tmp_path / "bad", engine="ray")
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)  # Ray leaves its own, which would end the process of all tests
