"""Codes of a corpus without text, guessed one at a time, against a plain loop over the reference."""

import json
import math

import numpy as np
import pytest
import torch
import transformers

import bertsmith
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError

CODES = 24


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A corpus of codes that count up by one or two, and an encoder that has read a little of it."""
    folder = tmp_path_factory.mktemp("codes")
    draw = np.random.default_rng(3)
    rows = [(draw.integers(CODES) + draw.integers(1, 3) * np.arange(draw.integers(6, 30))) % CODES for _ in range(120)]
    (folder / "codes.jsonl").write_text("".join(json.dumps({"text": row.tolist()}) + "\n" for row in rows))
    bertsmith.build_corpus(folder / "codes.jsonl", out=folder / "corpus", codes=True, vocabulary=CODES, held_out=0.2,
                           duplicates=False)  # fmt: skip
    bertsmith.pretrain(folder / "corpus", folder / "model", "smith", depth=2, width=32, heads=2, tokens=512,
                       lengths="32", max_steps=30)  # fmt: skip
    return folder


def ask_reference(folder, length: int) -> tuple[np.ndarray, np.ndarray]:
    """For each held-out code whether it is guessed and its log-probability, in rows of at most `length` ids."""
    corpus = Corpus.open(folder / "corpus", "held-out")
    reference = transformers.AutoModelForMaskedLM.from_pretrained(folder / "model").eval()
    room, right, chances = length - 2, [], []
    for number in range(len(corpus)):
        row = corpus.document(number).tolist()
        for at, code in enumerate(row):
            start = min(max(at - room // 2, 0), max(len(row) - room, 0))
            hidden = [*row[:at], corpus.specials["mask"], *row[at + 1 :]]
            ids = [corpus.specials["cls"], *hidden[start : start + room], corpus.specials["sep"]]
            with torch.no_grad():
                scores = reference(torch.tensor([ids])).logits[0, 1 + at - start].double().log_softmax(-1)
            right.append(scores.argmax().item() == code)
            chances.append(scores[code].item())
    return np.array(right), np.array(chances)


@pytest.mark.parametrize("length", [None, 12])
def test_it_is_that_of_a_loop_over_the_reference(made, length):
    right, chances = ask_reference(made, length or 512)
    found = bertsmith.evaluate_masked(made / "corpus", made / "model", length=length, samples=10**6)
    assert found["is_whole"] and found["codes"] == found["samples"] == len(right)
    assert found["log_likelihood"] == pytest.approx(chances.sum(), rel=1e-5)
    assert found["perplexity"]["token"]["value"] == pytest.approx(math.exp(-chances.mean()), rel=1e-5)
    assert found["accuracy"]["all"]["value"] == pytest.approx(right.mean(), abs=1e-9)
    assert sum(band["n"] for band in found["bands"]) == len(right)
    again = bertsmith.evaluate_perplexity(made / "corpus", made / "model", length=length, samples=10**6)
    assert again["perplexity"] == found["perplexity"]


def test_a_sample_is_the_same_each_time_and_its_results_are_kept(made, tmp_path):
    found = bertsmith.evaluate_masked(made / "corpus", made / "model", samples=20, out=tmp_path)
    again = bertsmith.evaluate_masked(made / "corpus", made / "model", samples=20)
    assert found["perplexity"] == again["perplexity"] and found["samples"] == 20 and not found["is_whole"]
    kept = json.loads((tmp_path / "results.json").read_text())
    assert kept == json.loads(json.dumps(found))
    told = (tmp_path / "results.md").read_text()
    assert "all codes" in told and "20 (drawn by seed 1) of the" in told


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"counts": "texts.txt"}, "leave counts out"),
        ({"length": 2}, "2 special tokens alone fill such a row"),
        ({"length": 9999}, "reads at most"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(made, given, message):
    with pytest.raises(BertsmithError, match=message):
        bertsmith.evaluate_masked(made / "corpus", made / "model", **given)


def test_codes_and_text_are_not_mixed_up(made, folder, tmp_path):
    with pytest.raises(BertsmithError, match="is no model of these; give one that was pretrained on such a corpus"):
        bertsmith.evaluate_perplexity(made / "corpus", folder)
    bertsmith.build_corpus(made / "codes.jsonl", out=tmp_path / "all", codes=True, vocabulary=CODES, held_out=0,
                           duplicates=False)  # fmt: skip
    with pytest.raises(BertsmithError, match="holds no codes apart; build it anew"):
        bertsmith.evaluate_masked(tmp_path / "all", made / "model")
    (tmp_path / "text.txt").write_text("Some words.")
    with pytest.raises(BertsmithError, match="holds no tokenizer"):
        bertsmith.evaluate_perplexity(tmp_path / "text.txt", made / "model")
