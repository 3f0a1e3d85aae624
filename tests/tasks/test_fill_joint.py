"""Several masks together: the chain rule from left to right, tried out on a vocabulary of thirty pieces."""

import math
import random
from itertools import product

import pytest
import torch
from tasks.made import CLOSE, Both

from bertsmith.tasks import fill_joint
from bertsmith.tasks.fill import Fill, keep_wanted
from bertsmith.tasks.predicting import Predictor

MANY = "the [MASK] is [MASK] and [MASK] [MASK] a [MASK], " * 4 + "cat"  # 20 masks


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
    monkeypatch.setattr(fill_joint, "KEPT", 7 * width)
    blocks = bert_30.ours.fill(text, top_k=width).joint
    assert max(counts) == 7 and len(counts) > 10
    assert [answer["tokens"] for answer in blocks] == [answer["tokens"] for answer in whole]
    assert [answer["score"] for answer in blocks] == pytest.approx([answer["score"] for answer in whole], rel=1e-5)


def fill_greedily(both: Both, text: str, count: int) -> tuple[list[int], float]:
    """The reference takes the likeliest piece of every `count`th mask at once, then those behind them, and so on."""
    ids = both.tokenizer(text)["input_ids"]
    places = [i for i, id in enumerate(ids) if id == both.tokenizer.mask_token_id]
    total = 0.0
    for first in range(count):
        chances = both.log_chances(ids)
        for place in places[first::count]:
            best = chances[place].max(dim=-1)
            ids[place] = int(best.indices)
            total += float(best.values)
    return [ids[place] for place in places], total


@pytest.mark.parametrize("readings, count", [(19, 20), (9, 10), (6, 7), (1, 2)])
def test_many_masks_are_filled_with_one_beam(bert_30, monkeypatch, readings, count):
    """A mask at a time as long as that many readings of the text are allowed, else several that are far apart."""
    monkeypatch.setattr(fill_joint, "READ", readings * len(bert_30.tokenizer(MANY)["input_ids"]))
    joint = bert_30.ours.fill(MANY).joint
    tokens, chance = fill_greedily(bert_30, MANY, count)
    assert joint[0]["tokens"] == tokens and len(joint) == 5
    assert math.log(joint[0]["score"]) == pytest.approx(chance, abs=1e-3)


@pytest.mark.parametrize("times, top_k", [(1, 5), (3, 5), (3, 1), (3, 20), (15, 5)])
def test_what_is_read_for_many_masks_is_bounded(bert_30, monkeypatch, times, top_k):
    """32 masks were 31 rounds of ten readings, and 33 none."""
    run, read = Predictor.run, []

    def count(self, task, rows):
        read.append(sum(len(row.ids) for row in rows))
        return run(self, task, rows)

    monkeypatch.setattr(Predictor, "run", count)
    monkeypatch.setattr(fill_joint, "READ", 512)
    words = random.Random(0).choices(["the", "cat", "dog", "is", "play", "[MASK]"], k=16 * times)  # no two rows alike
    result = bert_30.ours.fill(" ".join([*words, "[MASK] [MASK]"]), top_k=top_k)
    assert len(result) == words.count("[MASK]") + 2 and len(result.joint) == top_k
    assert sum(read[1:]) <= max(512, read[0]) * max(1, top_k / 10)


def test_fewer_beams_find_nearly_as_much(bert_30, monkeypatch):
    """The best of every filling of three masks by the reference, and what two beams find instead of ten."""
    text = "the [MASK] [MASK] is [MASK]"
    best = max(try_all(bert_30, text).values())
    monkeypatch.setattr(fill_joint, "READ", 4 * len(bert_30.tokenizer(text)["input_ids"]))
    found = bert_30.ours.fill(text).joint[0]["score"]
    assert found <= best + CLOSE and found == pytest.approx(best, rel=0.2)
