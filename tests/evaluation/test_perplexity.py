"""Pseudo-perplexity of a text and of a corpus against a plain loop over the reference, token by token."""

import json
import math

import pytest
import torch
import transformers
from corpus_texts import make_documents
from evaluation.unlabelled_text import DOCUMENTS

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.masked_accuracy import cut_units


def add_up(folder, documents) -> tuple[float, int]:
    """The pseudo-log-likelihood of all documents and how many tokens it is over, one masked row after the other."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    reference = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    total, count = 0.0, 0
    for document in documents:
        ids = torch.tensor(tokenizer(document)["input_ids"])
        assert len(ids) <= 64
        for place in range(1, len(ids) - 1):
            masked = ids.clone()
            masked[place] = tokenizer.mask_token_id
            with torch.no_grad():
                scores = reference(masked[None]).logits[0, place]
            total += scores.double().log_softmax(-1)[ids[place]].item()
            count += 1
    return total, count


def test_it_is_that_of_a_loop_over_the_reference(folder, model, file):
    total, count = add_up(folder, DOCUMENTS)
    words = sum(unit.is_word for document in DOCUMENTS for unit in cut_units(document))
    found = bertsmith.evaluate_perplexity(file, model)
    assert found["is_whole"] and found["documents"] == len(DOCUMENTS)
    assert found["log_likelihood"] == pytest.approx(total, rel=1e-5)
    token, word = found["perplexity"]["token"], found["perplexity"]["word"]
    assert (token["n"], word["n"]) == (count, words)
    assert token["value"] == pytest.approx(math.exp(-total / count), rel=1e-4)
    assert word["value"] == pytest.approx(math.exp(-total / words), rel=1e-4)
    assert token["low"] < token["value"] < token["high"]
    json.dumps(found, allow_nan=False)


def test_the_part_of_a_corpus_that_was_held_out_is_read(folder, model, tmp_path):
    texts = make_documents(60, seed=4)
    (tmp_path / "texts.txt").write_text("\n\n".join(texts))
    corpus = bertsmith.build_corpus(
        tmp_path / "texts.txt", folder, tmp_path / "corpus", held_out=0.2, filters=False, near_duplicates=False
    )
    held_out = type(corpus).open(tmp_path / "corpus", "held-out")
    found = bertsmith.evaluate_perplexity(tmp_path / "corpus", model, samples=10**6)
    assert 0 < found["documents"] == len(held_out) < 60
    assert found["perplexity"]["token"]["n"] == len(held_out.tokens)
    assert bertsmith.evaluate_masked(tmp_path / "corpus", model, samples=20)["documents"] == len(held_out)
    bertsmith.build_corpus(
        tmp_path / "texts.txt", folder, tmp_path / "whole", held_out=0, filters=False, near_duplicates=False
    )
    with pytest.raises(BertsmithError, match="holds no text apart; build it anew"):
        bertsmith.evaluate_perplexity(tmp_path / "whole", model)


def test_a_sample_is_settled_by_its_seed(model, file):
    one, same = (bertsmith.evaluate_perplexity(file, model, samples=9, seed=3, length=12) for _ in range(2))
    assert {**one, "seconds": 0} == {**same, "seconds": 0} and one["unit_samples"] == 9 and not one["is_whole"]


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        ("\n", {}, "holds no word; give a text"),
        ("fox", {"samples": 0}, "samples is 0"),
        ("fox", {"length": 65}, "reads at most 64"),
        ("fox", {"way": "x"}, "way='x' is not a choice"),
    ],
)
def test_mistakes(model, tmp_path, content, options, sentence):
    (tmp_path / "text.txt").write_text(content)
    with pytest.raises(BertsmithError, match=sentence):
        bertsmith.evaluate_perplexity(tmp_path / "text.txt", model, **options)
