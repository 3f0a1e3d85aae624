"""What is hidden on the device follows the rules of the papers, and nothing but chance decides it."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.asking import (
    MASK,
    ORDINARY,
    SIZE,
    SPECIALS,
    VOCABULARY,
    ask,
    count_ordinary,
    flat,
    hidden_places,
    kinds,
    make_rows,
    rates,
    seeds,
)
from objectives.asking import rows as some_rows
from oracle import load_saved, make_reference
from torch.nn import functional as F

from bertsmith.errors import BertsmithError
from bertsmith.objectives.masked_tokens import MaskedTokens, at_share
from bertsmith.objectives.next_token import NextToken
from bertsmith.objectives.objective import Vocabulary
from bertsmith.training.recorded import Recording, Room
from bertsmith.training.study import Work


@given(some_rows, seeds, rates, kinds, st.booleans())
def test_gold_is_what_stood_there_and_the_rest_is_untouched(rows, seed, rate, kind, static):
    before, asked = flat(rows), ask(MaskedTokens(VOCABULARY, rate, static=static, **kind), rows, seed)
    at, gold = asked.given["at"], asked.given["gold"]
    assert len(set(at.tolist())) == len(at) and (at.diff() > 0).all()
    chosen = gold >= 0
    assert (before[at[chosen]] == gold[chosen]).all() and (gold[~chosen] == -100).all()
    rest = torch.ones(len(before), dtype=torch.bool).scatter(0, at[chosen], False)
    assert (asked.batch.ids[rest] == before[rest]).all()
    assert asked.batch.lengths == tuple(map(len, rows))


@given(some_rows, seeds, rates)
def test_exactly_the_share_of_the_ordinary_tokens(rows, seed, rate):
    objective, tokens = MaskedTokens(VOCABULARY, rate), count_ordinary(rows)
    asked = ask(objective, rows, seed)
    wanted = max(1, round(rate * tokens))
    assert len(hidden_places(asked)) == len(asked.given["at"]) == wanted
    assert objective.expect(tokens, len(rows), 0.0) == {"masked": wanted}


@given(some_rows, seeds, rates, kinds, st.booleans())
def test_special_tokens_are_never_chosen_nor_put_in(rows, seed, rate, kind, static):
    asked = ask(MaskedTokens(VOCABULARY, rate, 0.2, 0.7, static=static, **kind), rows, seed)
    gold = asked.given["gold"]
    assert not set(SPECIALS) & set(gold.tolist())
    put = asked.batch.ids[asked.given["at"]][gold >= 0]
    assert set(SPECIALS) & set(put.tolist()) <= {MASK}
    assert ((asked.batch.ids >= 0) & (asked.batch.ids < SIZE)).all()


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("masked, random", [(0.8, 0.1), (0.5, 0.25), (1.0, 0.0), (0.0, 0.0)])
def test_of_the_chosen_the_shares_are_within_sampling_error(masked, random, static):
    rows = make_rows(3, lengths=(400,) * 250)
    asked = ask(MaskedTokens(VOCABULARY, 0.15, masked, random, static=static), rows, 1)
    known = asked.given["gold"] >= 0
    put, gold = asked.batch.ids[asked.given["at"]][known], asked.given["gold"][known]
    n = len(gold)
    assert n == 15_000
    found = {"masked": (put == MASK).float().mean().item(), "kept": (put == gold).float().mean().item()}
    wanted = {"masked": masked, "kept": 1 - masked - random + random / len(ORDINARY)}
    for name, share in wanted.items():
        assert abs(found[name] - share) <= 4 * (share * (1 - share) / n) ** 0.5 + 1e-6, name
    swapped = put[(put != MASK) & (put != gold)]
    if random:  # every ordinary token is put in alike
        counts = torch.bincount(swapped, minlength=SIZE)[ORDINARY].float()
        mean = len(swapped) / len(ORDINARY)
        assert ((counts - mean) ** 2 / mean).sum() < len(ORDINARY) + 5 * (2 * len(ORDINARY)) ** 0.5


def test_every_token_is_hidden_alike():
    """First, middle or last in its row: over many draws each is hidden as often."""
    rows = make_rows(lengths=(10, 30, 4))
    for kind in ({}, {"static": True}):
        times = torch.zeros(len(flat(rows)))
        for seed in range(500):
            objective = MaskedTokens(VOCABULARY, 0.25, **kind, **({"seed": seed} if kind else {}))
            times[sorted(hidden_places(ask(objective, rows, seed)))] += 1
        ordinary = ~torch.isin(flat(rows), torch.tensor(SPECIALS))
        for start, length in ((0, 13), (13, 33), (46, 6)):  # a static mask rounds in each row
            shares = times[start : start + length][ordinary[start : start + length]] / 500
            assert (shares - shares.mean()).abs().max() < 4.5 * math.sqrt(0.25 * 0.75 / 500), kind
        assert (times[~ordinary] == 0).all()


@given(some_rows, seeds, kinds)
def test_the_same_seed_hides_the_same_and_another_something_else(rows, seed, kind):
    objective = MaskedTokens(VOCABULARY, 0.3, **kind)
    one, same = (ask(objective, rows, seed) for _ in range(2))
    assert torch.equal(one.batch.ids, same.batch.ids) and torch.equal(one.given["at"], same.given["at"])
    if count_ordinary(rows) > 60 and not kind:
        assert not torch.equal(one.batch.ids, ask(objective, rows, seed + 1).batch.ids)


@given(some_rows, seeds, kinds)
def test_a_static_mask_depends_on_the_row_alone(rows, seed, kind):
    objective = MaskedTokens(VOCABULARY, 0.3, static=True, **kind)
    together = ask(objective, rows, seed)
    read = together.batch.split(together.batch.ids)
    for row, found in zip(rows, read, strict=True):
        alone = ask(objective, [row], seed + 1)  # another step, another batch
        assert torch.equal(alone.batch.ids, found)
    backwards = ask(objective, rows[::-1], seed)
    assert torch.equal(torch.cat(read[::-1]), backwards.batch.ids)
    other = ask(MaskedTokens(VOCABULARY, 0.3, static=True, seed=1, **kind), rows, seed)
    if count_ordinary(rows) > 60 and not kind:
        assert not torch.equal(other.batch.ids, together.batch.ids)


@given(some_rows, seeds)
def test_a_static_mask_hides_its_share_of_each_row(rows, seed):
    asked = ask(MaskedTokens(VOCABULARY, 0.3, static=True), rows, seed)
    gold = torch.full_like(asked.batch.ids, -100).scatter(0, asked.given["at"], asked.given["gold"])
    for row, found in zip(rows, asked.batch.split(gold), strict=True):
        assert (found >= 0).sum() == max(1, round(0.3 * count_ordinary([row])))


@pytest.mark.parametrize("kind", [{}, {"whole_words": True}, {"spans": True}])
def test_what_fills_a_recorded_pass_is_never_asked_for(kind):
    """The tensors that a GPU replays have room behind the last token: a row of its own, whose ids are 0."""
    rows = make_rows()
    lengths = tuple(map(len, rows))
    work = Work(flat(rows).numpy(), flat(rows).numpy() * 0, lengths, {}, {})
    recording = Recording(Room.of(work), work, torch.device("cpu"))
    recording.lay(work, recording.flat.numpy())
    batch, tokens = recording.batch(), count_ordinary(rows)
    assert len(batch.ids) > sum(lengths)
    static = MaskedTokens(VOCABULARY, static=True, **kind)
    found, alone = static.ask(batch, {}, tokens, 0.0), ask(static, rows)
    assert torch.equal(found.batch.ids[: sum(lengths)], alone.batch.ids)
    for objective in (static, MaskedTokens(VOCABULARY, 0.9, **kind), NextToken(VOCABULARY)):
        asked = objective.ask(batch, {}, tokens, 0.0)
        assert asked.given["at"][asked.given["gold"] >= 0].max() < sum(lengths)
        assert (asked.batch.ids[sum(lengths) :] == 0).all() and asked.batch.longest == batch.longest


def test_the_rate_falls_with_the_run():
    objective = MaskedTokens(VOCABULARY, (0.3, 0.15))
    rows = make_rows(lengths=(100, 100))
    assert [len(ask(objective, rows, done=done).given["at"]) for done in (0.0, 0.5, 1.0)] == [60, 45, 30]
    assert at_share((0.3, 0.15), 2.0) == pytest.approx(0.15) and at_share(0.2, 0.7) == 0.2


def test_large_scores_cost_more_with_z_loss(tmp_path):
    network = load_saved(make_reference("bert", "mask"), tmp_path).network.train()
    plain, more = MaskedTokens(VOCABULARY), MaskedTokens(VOCABULARY, z_loss=1e-4)
    asked = ask(plain, make_rows())
    hidden = network(asked.batch)
    both = [each.losses(network, hidden, asked.batch, asked.given)["masked"] for each in (plain, more)]
    (without, count), (with_it, _) = both
    scores = network.score(hidden, asked.batch, "mask")[asked.given["at"]]
    assert (with_it - without).item() == pytest.approx(1e-4 * (scores.logsumexp(-1) ** 2).sum().item(), rel=1e-2)
    assert count.item() == len(asked.given["at"])
    scored = [each.losses(network.eval(), hidden, asked.batch, asked.given)["masked"][0] for each in (plain, more)]
    gold = asked.given["gold"]
    assert [one.item() for one in scored] == pytest.approx([F.cross_entropy(scores, gold, reduction="sum").item()] * 2)


@pytest.mark.parametrize("settings, says", [
    ({"rate": 0.0}, r"^rate is 0\.0; it must be above 0 to 1\.$"),
    ({"rate": (0.3, 1.5)}, r"^rate is 1\.5"),
    ({"masked": 1.2}, r"^masked is 1\.2"),
    ({"masked": 0.8, "random": 0.3}, r"^masked and random are 0\.8 and 0\.3; together at most 1\.$"),
    ({"phrases": [[]]}, "has no tokens"),
])  # fmt: skip
def test_settings_that_cannot_be_are_refused(settings, says):
    with pytest.raises(BertsmithError, match=says):
        MaskedTokens(VOCABULARY, **settings)


def test_vocabularies_that_cannot_be_are_refused():
    with pytest.raises(BertsmithError, match="outside a vocabulary of 10 ids"):
        MaskedTokens(Vocabulary(10, 3, (0, 12)))
    with pytest.raises(BertsmithError, match="every id of the vocabulary is special"):
        MaskedTokens(Vocabulary(3, 0, (1, 2)))
    with pytest.raises(BertsmithError, match="begins has 4 entries"):
        MaskedTokens(Vocabulary(10, 3, (0,), torch.ones(4, dtype=torch.bool)))
    with pytest.raises(BertsmithError, match="whole words cannot be hidden"):
        MaskedTokens(Vocabulary(10, 3, (0,)), whole_words=True)
