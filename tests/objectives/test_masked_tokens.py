"""What is hidden on the device follows the rules of the papers, and nothing but chance decides it."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.asking import (
    BEGINS,
    MASK,
    ORDINARY,
    SIZE,
    SPECIALS,
    VOCABULARY,
    ask,
    count_ordinary,
    make_batch,
    make_rows,
    seeds,
)
from objectives.asking import rows as some_rows
from oracle import load_saved, make_reference

from bertsmith.errors import BertsmithError
from bertsmith.objectives.chance import Fixed, Fresh
from bertsmith.objectives.choosing import choose
from bertsmith.objectives.masked_tokens import MaskedTokens, at_share
from bertsmith.objectives.next_token import NextToken
from bertsmith.objectives.objective import Vocabulary
from bertsmith.objectives.units import Phrases, draw_lengths
from bertsmith.training.recorded import Recording, Room
from bertsmith.training.study import Work

KINDS = st.sampled_from([{}, {"whole_words": True}, {"spans": True}, {"whole_words": True, "spans": True},
                         {"phrases": [[5, 7], [8, 9, 10]]}])  # fmt: skip
rates = st.sampled_from([0.05, 0.15, 0.4, 0.9, 1.0])


def flat(rows):
    return torch.tensor([id for row in rows for id in row])


def hidden_places(asked):
    return set(asked.given["at"][asked.given["gold"] >= 0].tolist())


def words_of(rows):
    """Sets of places, each a word: it begins with a piece that does, behind a special token, or with its row."""
    words, place = [], 0
    for row in rows:
        for i, id in enumerate(row):
            if id in SPECIALS or i == 0 or row[i - 1] in SPECIALS or BEGINS[id]:
                words.append(set())
            words[-1].add(place)
            place += 1
    return words


@given(some_rows, seeds, rates, KINDS, st.booleans())
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


@given(some_rows, seeds, rates, KINDS, st.booleans())
def test_special_tokens_are_never_chosen_nor_put_in(rows, seed, rate, kind, static):
    asked = ask(MaskedTokens(VOCABULARY, rate, 0.2, 0.7, static=static, **kind), rows, seed)
    gold = asked.given["gold"]
    assert not set(SPECIALS) & set(gold.tolist())
    put = asked.batch.ids[asked.given["at"]][gold >= 0]
    assert set(SPECIALS) & set(put.tolist()) <= {MASK}
    assert ((asked.batch.ids >= 0) & (asked.batch.ids < SIZE)).all()


@given(some_rows, seeds, rates, st.booleans())
def test_words_are_hidden_whole_and_at_most_the_share(rows, seed, rate, static):
    tokens = count_ordinary(rows)
    hidden = hidden_places(ask(MaskedTokens(VOCABULARY, rate, whole_words=True, static=static), rows, seed))
    for word in words_of(rows):
        assert word <= hidden or not word & hidden
    assert len(hidden) <= (rate * tokens + len(rows) if static else max(1, round(rate * tokens)))


@given(some_rows, seeds, KINDS, st.booleans())
def test_a_unit_lies_in_one_row_and_a_special_token_is_one_of_its_own(rows, seed, kind, static):
    batch = make_batch(rows)
    torch.manual_seed(seed)
    units = MaskedTokens(VOCABULARY, **kind)._units(batch, Fixed(batch, seed) if static else Fresh(batch))
    assert torch.equal(batch.owners[units], batch.owners)
    special = torch.isin(batch.ids, torch.tensor(SPECIALS))
    assert torch.equal(units[special], special.nonzero()[:, 0]) and not special[units[~special]].any()


@given(st.lists(st.integers(1, 5), min_size=2, max_size=300), seeds)
def test_units_with_the_same_number_are_not_mixed(lengths, seed):
    """Among ten thousand numbers of 24 bits some are equal; here nearly all of them are."""
    firsts = torch.tensor([0, *lengths]).cumsum(0)[:-1]
    units = firsts.repeat_interleave(torch.tensor(lengths))
    scores = torch.randint(3, (len(units),), generator=torch.Generator().manual_seed(seed))[units] / 3
    count = len(units) // 2
    at, chosen = choose(units, scores, torch.ones(len(units), dtype=torch.bool), count)
    hidden = torch.bincount(units[at[chosen]], minlength=len(units))[firsts]
    assert ((hidden == 0) | (hidden == torch.tensor(lengths))).all()
    assert count - 5 < len(at[chosen]) <= count


def test_few_places_are_left_unfilled():
    """At most the one word is left out that would have exceeded the count."""
    rows = make_rows(lengths=(60,) * 50)
    longest = max(map(len, words_of(rows)))
    for seed in range(20):
        asked = ask(MaskedTokens(VOCABULARY, whole_words=True), rows, seed)
        assert len(asked.given["at"]) - len(hidden_places(asked)) < longest


@given(some_rows, seeds, st.booleans(), st.booleans())
def test_spans_are_contiguous_at_most_ten_units_and_hidden_whole(rows, seed, whole_words, static):
    objective = MaskedTokens(VOCABULARY, 0.3, spans=True, whole_words=whole_words, static=static)
    hidden = hidden_places(ask(objective, rows, seed))
    batch = make_batch(rows)
    torch.manual_seed(seed)
    units = objective._units(batch, Fixed(batch, 0) if static else Fresh(batch))  # the first draws of the same chance
    words = words_of(rows) if whole_words else [{place} for place in range(len(units))]
    for first in set(units.tolist()):
        span = {place for place, unit in enumerate(units.tolist()) if unit == first}
        assert span == set(range(first, first + len(span)))
        assert len(set(batch.owners[sorted(span)].tolist())) == 1
        assert sum(bool(word & span) for word in words) <= 10 and all(w <= span or not w & span for w in words)
        assert span <= hidden or not span & hidden
        assert len(span) == 1 or not set(batch.ids[sorted(span)].tolist()) & set(SPECIALS)


def test_spans_have_the_lengths_of_spanbert():
    """Geometric with 0.2, at most ten, so 3.8 in the mean (arXiv 1907.10529, section 3.1)."""
    torch.manual_seed(0)
    lengths = draw_lengths(torch.rand(200_000))
    shares = [0.2 * 0.8 ** (n - 1) for n in range(1, 11)]
    wanted = torch.tensor(shares) / sum(shares)
    found = torch.bincount(lengths, minlength=11)[1:] / len(lengths)
    assert lengths.min() == 1 and lengths.max() == 10
    assert (found - wanted).abs().max() < 4 * (0.25 / len(lengths)) ** 0.5
    assert abs(lengths.float().mean().item() - 3.8) < 0.05
    rows = [[5 + i % 90 for i in range(500)] for _ in range(20)]
    places = sorted(hidden_places(ask(MaskedTokens(VOCABULARY, 0.01, spans=True), rows)))
    runs = 1 + sum(b - a > 1 for a, b in pairwise(places))
    assert 3.0 < len(places) / runs < 4.8  # at 1 % two spans rarely touch
    fates = ask(MaskedTokens(VOCABULARY, 0.01, 0.5, 0.0, spans=True), rows)
    masked = fates.batch.ids[torch.tensor(places)] == MASK
    changes = sum(bool(masked[i] != masked[i - 1]) for i in range(1, len(places)) if places[i] - places[i - 1] == 1)
    assert masked.any() and not masked.all() and changes <= runs * 0.05  # a span has one fate


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


@given(some_rows, seeds, KINDS)
def test_the_same_seed_hides_the_same_and_another_something_else(rows, seed, kind):
    objective = MaskedTokens(VOCABULARY, 0.3, **kind)
    one, same = (ask(objective, rows, seed) for _ in range(2))
    assert torch.equal(one.batch.ids, same.batch.ids) and torch.equal(one.given["at"], same.given["at"])
    if count_ordinary(rows) > 60 and not kind:
        assert not torch.equal(one.batch.ids, ask(objective, rows, seed + 1).batch.ids)


@given(some_rows, seeds, KINDS)
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


@given(st.lists(st.sampled_from([5, 6, 7, 8, 9]), min_size=2, max_size=60), seeds)
def test_phrases_are_hidden_whole(body, seed):
    phrases = [[5, 7], [8, 8, 9], [6]]
    rows = [body, body[::-1]]
    hidden = hidden_places(ask(MaskedTokens(VOCABULARY, 0.5, phrases=phrases), rows, seed))
    for start, row in ((0, rows[0]), (len(body), rows[1])):
        for phrase in phrases:
            for i in range(len(row) - len(phrase) + 1):
                if row[i : i + len(phrase)] == phrase:
                    places = set(range(start + i, start + i + len(phrase)))
                    assert places <= hidden or not places & hidden


def test_a_phrase_does_not_go_over_the_end_of_a_row():
    found = Phrases([[5, 6], [5, 6, 7], [9]]).find_inner(make_batch([[5, 6, 8, 5], [6, 7, 5, 6, 7], [9, 5]]))
    assert found.long().tolist() == [0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0]


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
    network = load_saved(make_reference("bert", "mask"), tmp_path).network
    plain, more = MaskedTokens(VOCABULARY), MaskedTokens(VOCABULARY, z_loss=1e-4)
    asked = ask(plain, make_rows())
    hidden = network(asked.batch)
    both = [each.losses(network, hidden, asked.batch, asked.given)["masked"] for each in (plain, more)]
    (without, count), (with_it, _) = both
    scores = network.score(hidden, asked.batch, "mask")[asked.given["at"]]
    assert (with_it - without).item() == pytest.approx(1e-4 * (scores.logsumexp(-1) ** 2).sum().item(), rel=1e-2)
    assert count.item() == len(asked.given["at"])


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
