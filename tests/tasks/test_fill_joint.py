"""Several masks together: the chain rule from left to right, tried out on a vocabulary of thirty pieces."""

import math
from itertools import product

import pytest
import torch
from tasks.made import CLOSE, Both

from bertsmith.tasks import fill
from bertsmith.tasks.fill import Fill, keep_wanted
from bertsmith.tasks.predicting import Predictor


def try_all(both: Both, text: str) -> dict[tuple[int, ...], float]:
    """The probability of every filling: p(m1 | x) p(m2 | x, m1) ... by the reference."""
    ids = both.tokenizer(text)["input_ids"]
    places = [i for i, id in enumerate(ids) if id == both.tokenizer.mask_token_id]
    found = {(): 0.0}
    for place in places:
        rows = []
        for filled in found:
            given = dict(zip(places, filled, strict=False))
            rows.append([given.get(i, id) for i, id in enumerate(ids)])
        chances = both.log_chances(rows)[:, place].tolist()
        steps = zip(found.items(), chances, strict=True)
        found = {(*filled, id): log + more for (filled, log), row in steps for id, more in enumerate(row)}
    return {filled: math.exp(log) for filled, log in found.items()}


@pytest.mark.parametrize("text", ["the [MASK] is [MASK].", "[MASK][MASK]", "the [MASK] [MASK] is [MASK]"])
def test_wide_beam_finds_the_best(bert_30, text):
    """A beam that can hold every filling but the last step's misses none."""
    size = len(bert_30.tokenizer)
    width = size ** (text.count("[MASK]") - 1)
    every = try_all(bert_30, text)
    best = sorted(every.items(), key=lambda item: -item[1])[:width]
    joint = bert_30.ours.fill(text, top_k=width).joint
    assert [tuple(a["tokens"]) for a in joint[:20]] == [filled for filled, _ in best[:20]]
    assert [a["score"] for a in joint] == pytest.approx([chance for _, chance in best], abs=CLOSE)


@pytest.mark.parametrize("text", ["the [MASK] is [MASK].", "the [MASK] [MASK] is [MASK]"])
def test_default_beam_gives_true_probabilities(bert_30, text):
    every = try_all(bert_30, text)
    result = bert_30.ours.fill(text)
    assert len(result.joint) == 5
    for answer in result.joint:
        assert answer["score"] == pytest.approx(every[tuple(answer["tokens"])], abs=CLOSE)
        assert answer["token_strs"] == [bert_30.tokenizer.decode([id]) for id in answer["tokens"]]
    scores = [answer["score"] for answer in result.joint]
    assert scores == sorted(scores, reverse=True)


def test_one_answer_is_searched_as_widely(bert_30):
    """The likeliest first word (dog) leads to a less likely pair than the second (cat), and is not kept for that."""
    tokenizer = bert_30.ours.tokenizer
    cat, dog, ing = (tokenizer.id(piece) for piece in ("cat", "dog", "##ing"))
    flat = torch.zeros(1, tokenizer.size)
    first, sure = flat.clone(), flat.clone()
    first[0, cat], first[0, dog], sure[0, ing] = 8.0, 8.1, 20.0
    talk = Fill(tokenizer, 64, "windows", top_k=1).talk("[MASK] [MASK]", [])

    def keep(scores, rows):
        return keep_wanted(torch.cat(scores).log_softmax(dim=-1), [ask for row in rows for ask in row.asks])

    (row,) = next(talk)
    rows = talk.send([torch.cat(keep([first, flat], [row]), dim=1)])
    assert len(rows) == 10
    with pytest.raises(StopIteration) as done:
        talk.send(keep([sure if cat in row.ids else flat for row in rows], rows))
    assert [answer["tokens"] for answer in done.value.value.joint] == [[cat, ing]]


def test_all_probabilities_sum_to_one(bert_30):
    size = len(bert_30.tokenizer)
    joint = bert_30.ours.fill("the [MASK] is [MASK].", top_k=size**2).joint
    assert len({tuple(a["tokens"]) for a in joint}) == len(list(product(range(size), repeat=2)))
    assert sum(a["score"] for a in joint) == pytest.approx(1, abs=1e-4)


def test_sequence_joins_pieces(bert_30):
    joint = bert_30.ours.fill("The [MASK] [MASK], OK", top_k=len(bert_30.tokenizer) ** 2).joint
    sequences = {tuple(a["token_strs"]): a["sequence"] for a in joint}
    assert sequences["play", "##ing"] == "The playing, OK"
    assert sequences["dog", "cat"] == "The dog cat, OK"
    assert sequences["##s", "."] == "Thes., OK"


def test_one_mask_has_no_joint(bert_30):
    result = bert_30.ours.fill("the [MASK]")
    assert result.joint is None
    assert "joint" not in result.as_dict()


@pytest.mark.parametrize("targets", [None, ["the", "playing"]])
def test_no_row_keeps_its_vocabulary(bert_released, monkeypatch, targets):
    """4,096 lines with two masks had 8 GB of probabilities in memory."""
    run, sizes = Predictor.run, []

    def weigh(self, task, rows):
        found = run(self, task, rows)
        masks = sum(len(row.at) for row in rows)
        sizes.extend(score.untyped_storage().nbytes() / 8 / masks for score in found)
        return found

    monkeypatch.setattr(Predictor, "run", weigh)
    bert_released.ours.fill(["[MASK] is [MASK].", "the [MASK]"], top_k=3, targets=targets)
    assert 0 < max(sizes) <= 2 * 10  # chance and id of ten beams


def test_a_wide_search_asks_in_blocks(bert_30, monkeypatch):
    """What is in memory is bounded for any `top_k`, and the answers are the same."""
    text, width = "the [MASK] [MASK] is [MASK]", 50
    whole = bert_30.ours.fill(text, top_k=width).joint
    run, counts = Predictor.run, []

    def count(self, task, rows):
        counts.append(len(rows))
        return run(self, task, rows)

    monkeypatch.setattr(Predictor, "run", count)
    monkeypatch.setattr(fill, "KEPT", 7 * width)
    blocks = bert_30.ours.fill(text, top_k=width).joint
    assert max(counts) == 7 and len(counts) > 10
    assert [answer["tokens"] for answer in blocks] == [answer["tokens"] for answer in whole]
    assert [answer["score"] for answer in blocks] == pytest.approx([answer["score"] for answer in whole], rel=1e-5)
