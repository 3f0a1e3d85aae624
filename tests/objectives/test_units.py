"""What is hidden together: words, phrases and spans are hidden whole or not at all."""

from itertools import pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.asking import (
    MASK,
    SPECIALS,
    VOCABULARY,
    ask,
    count_ordinary,
    hidden_places,
    kinds,
    make_batch,
    make_rows,
    rates,
    seeds,
    words_of,
)
from objectives.asking import rows as some_rows

from bertsmith.objectives.chance import Fixed, Fresh
from bertsmith.objectives.choosing import choose
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.units import Phrases, draw_lengths


@given(some_rows, seeds, rates, st.booleans())
def test_words_are_hidden_whole_and_at_most_the_share(rows, seed, rate, static):
    tokens = count_ordinary(rows)
    hidden = hidden_places(ask(MaskedTokens(VOCABULARY, rate, whole_words=True, static=static), rows, seed))
    for word in words_of(rows):
        assert word <= hidden or not word & hidden
    assert len(hidden) <= (rate * tokens + len(rows) if static else max(1, round(rate * tokens)))


@given(some_rows, seeds, kinds, st.booleans())
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
