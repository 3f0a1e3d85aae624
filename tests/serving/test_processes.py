"""`bertsmith serve --workers 2` as a person runs it: right answers under load, and what each death costs."""

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import bertsmith

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
DEADLINE = 60.0
WORDS = ["the", "film", "plot", "cast", "song", "book", "river", "town", "was", "good", "bad", "fine", "dull", "and"]


def wait_for(condition, what):
    end = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.02)
    return found


class Served:
    """A running `bertsmith serve`."""

    def __init__(self, folder, model, *words):
        self.folder = folder  # where it may keep temporary files
        self.log = folder.parent / f"{folder.name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bertsmith", "serve", "--model", f"tiny={model}", "--port", "0", *words],
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(folder)},
            )
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.facts = json.loads(line)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.facts["port"], timeout=DEADLINE)
        try:
            connection.request(
                method, path, None if body is None else json.dumps(body), {"content-type": "application/json"}
            )
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def embed(self, texts):
        """The status and the vectors."""
        status, said, _ = self.ask(
            "POST", "/v1/embeddings", {"input": texts, "model": "tiny", "encoding_format": "base64"}
        )
        if status != 200:
            return status, None
        rows = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in json.loads(said)["data"]]
        return status, np.stack(rows)

    def children(self, role):
        """The ids of its processes of a role that run."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
                state, parent = (place / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if int(parent) == self.process.pid and state != "Z" and role.encode() in words:
                found.append(int(place.name))
        return found

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def start(tmp_path_factory, heads):
    made = []

    def make(*words):
        made.append(Served(tmp_path_factory.mktemp("run"), heads["bare"], *words))
        return made[-1]

    yield make
    for served in made:
        served.end()


@pytest.fixture(scope="module")
def served(start):
    """How long an answer would take on a crowded machine, by which requests are turned away, is tested elsewhere."""
    return start("--workers", "2", "--max-wait", "600")


@pytest.fixture(scope="module")
def model(heads):
    """What the library says, in the shape that OpenAI's clients know: of length 1."""
    found = bertsmith.load(heads["bare"], device="cpu")
    return lambda texts: np.asarray(found.embed(texts, normalize=True))


def make_texts(number, count=1):
    chance = np.random.default_rng(number)
    return [" ".join(chance.choice(WORDS, chance.integers(3, 40))) for _ in range(count)]


def test_no_request_gets_the_answer_of_another(served, model):
    assert served.facts["models"] == ["tiny"] and served.facts["workers"] == 2
    asked = [make_texts(number, 1 + number % 3) for number in range(240)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(served.embed, asked))
    assert {status for status, _ in answers} == {200}
    expected = [model(texts) for texts in asked]
    for (_, found), rows in zip(answers, expected, strict=True):
        np.testing.assert_allclose(found, rows, atol=1e-5)
    flat = np.concatenate(expected)  # or it would not tell one answer from another
    distances = np.abs(flat[:, None] - flat[None]).max(-1) + np.eye(len(flat))
    assert distances.min() > 1e-3


def count(served, name, label=""):
    lines = served.ask("GET", "/metrics")[1].decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name) and label in line)


def test_counts_are_those_of_all_processes(served):
    wanted = served, "bertsmith_requests_total{", 'route="/v1/embeddings"'
    before = count(*wanted)
    for number in range(12):
        assert served.embed(make_texts(number))[0] == 200
    assert {count(*wanted) for _ in range(8)} == {before + 12}


def test_a_killed_http_process_costs_its_requests_and_is_replaced(served, model):
    before = served.children("http")
    assert len(before) == 2 and len(served.children("inference")) == 1
    asked = [make_texts(number, 3) for number in range(240)]

    def embed(texts):
        try:
            return served.embed(texts)
        except (http.client.HTTPException, OSError):
            return None, None

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(embed, texts) for texts in asked]
        wait_for(lambda: sum(answer.done() for answer in answers) > 40, "requests go through")
        os.kill(before[0], signal.SIGKILL)
        answers = [answer.result() for answer in answers]
    lost = [status for status, _ in answers if status != 200]
    assert set(lost) <= {None} and len(lost) <= 8  # no more than were in flight
    for (_, found), texts in zip(answers, asked, strict=True):
        if found is not None:
            np.testing.assert_allclose(found, model(texts), atol=1e-5)
    wait_for(lambda: len({*served.children("http")} - {*before}) == 1, "another takes its place")
    wait_for(lambda: "HTTP process" in served.log.read_text(), "the log says so")


def test_a_killed_inference_process_is_replaced(served, model):
    (before,) = served.children("inference")
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(served.embed, make_texts(number, 2000)) for number in range(4)]
        wait_for(lambda: count(served, "bertsmith_queue_requests ") >= 1, "they are at work")
        os.kill(before, signal.SIGKILL)
        assert {one.result()[0] for one in asked} <= {200, 503}
    status, _, headers = served.ask("POST", "/v1/embeddings", {"input": "a", "model": "tiny"})
    assert status == 503 and headers["retry-after"] == "1"
    assert served.ask("GET", "/healthz/ready")[0] == 503 and served.ask("GET", "/healthz/live")[0] == 200
    texts = make_texts(7)
    wait_for(lambda: served.embed(texts)[0] == 200, "another takes its place")
    (after,) = served.children("inference")
    assert after != before
    wait_for(lambda: {served.ask("GET", "/healthz/ready")[0] for _ in range(8)} == {200}, "all know of it")
    np.testing.assert_allclose(served.embed(texts)[1], model(texts), atol=1e-5)


def test_sigterm_finishes_what_was_accepted(served, model):
    asked = [make_texts(number, 1500) for number in range(6)]
    with ThreadPoolExecutor(len(asked)) as pool:
        answers = [pool.submit(served.embed, texts) for texts in asked]
        # More, for there is the one who counts.
        wait_for(lambda: count(served, "bertsmith_requests_in_flight ") > len(asked), "all are accepted")
        early = sum(answer.done() for answer in answers)
        served.process.send_signal(signal.SIGTERM)
        answers = [answer.result(DEADLINE) for answer in answers]
    assert early < len(asked)
    assert [status for status, _ in answers] == [200] * len(asked)
    for (_, found), texts in zip(answers, asked, strict=True):
        np.testing.assert_allclose(found[:50], model(texts[:50]), atol=1e-5)
    assert served.process.wait(DEADLINE) == 0
    assert not served.children("http") and not served.children("inference")
    assert not list(served.folder.iterdir())
    assert "Traceback" not in served.log.read_text()


def test_nobody_stays_behind_a_killed_supervisor(start):
    served = start("--workers", "1", "--device", "cpu", "--device", "cpu")
    children = [*served.children("http"), *served.children("inference")]
    assert len(children) == 3 and served.embed(["a"])[0] == 200
    served.process.kill()
    served.process.wait(DEADLINE)
    wait_for(lambda: not any(is_running(child) for child in children), "the children end")
    wait_for(lambda: not list(served.folder.iterdir()), "the folder goes with them")


def is_running(child):
    try:
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_alone_ctrl_c_ends_it_without_a_traceback(start, model):
    served = start()
    assert not served.children("http")
    texts = make_texts(3, 2)
    np.testing.assert_allclose(served.embed(texts)[1], model(texts), atol=1e-5)
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(DEADLINE) == 0
    assert "Traceback" not in served.log.read_text()
