"""One loaded model, sixteen threads, every job at once: no error, and the answers of one thread."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch
from tasks.made import CLOSE, bert_pieces, open_both, wordpiece_files

import bertsmith

THREADS, CALLS = 16, 150
TEXTS = ["it is [MASK].", "paris is [MASK] " * 2, "[MASK]", "the lazy fox " * 30 + "[MASK]"]


def fill(model, text, **more):
    result = model.fill(text, **more)
    answers = result.joint or (result[0] if isinstance(result[0], list) else result)
    return [answer["score"] for answer in answers]


JOBS = {
    "embed": lambda model, text: model.embed(text),
    "hidden": lambda model, text: model.hidden(text, layers=[1]),
    "tokenize": lambda model, text: model.tokenize(text).offsets,
    "fill": fill,
    "targets": lambda model, text: fill(model, text, targets=["playing", "dog"]),
}
ASKED = [(job, text) for text in TEXTS for job in JOBS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    open_both(folder, "bert", "mask", wordpiece_files(bert_pieces()), num_hidden_layers=1)
    return folder


@pytest.fixture(autouse=True)
def one_thread_each() -> Iterator[None]:
    """The threads under test are the caller's, not torch's own."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ask(model, number: int) -> np.ndarray:
    job, text = ASKED[number % len(ASKED)]
    return np.asarray(JOBS[job](model, text), dtype=np.float64)


def test_threads_share_a_model(folder):
    expected = [ask(bertsmith.load(folder, device="cpu"), number) for number in range(len(ASKED))]
    model = bertsmith.load(folder, device="cpu")  # fresh: its tokenizer too is first asked for by all threads at once
    start = Barrier(THREADS)

    def call_many(thread: int) -> float:
        start.wait()
        worst = 0.0
        for call in range(CALLS):
            number = (7 * thread + call) % len(ASKED)
            worst = max(worst, float(np.abs(ask(model, number) - expected[number]).max()))
        return worst

    with ThreadPoolExecutor(THREADS) as pool:
        assert max(pool.map(call_many, range(THREADS))) < CLOSE
