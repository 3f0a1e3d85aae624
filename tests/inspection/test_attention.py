"""Attention is the model's own: the same weights as the reference's, and what is worked out from them."""

import numpy as np
import pytest
from inspection.subjects import PAIR, TEXT, make_model, make_subject

from bertsmith.errors import BertsmithError
from bertsmith.inspection.attention import attention, roll_out
from bertsmith.inspection.habits import study
from bertsmith.inspection.packing import unpack
from bertsmith.inspection.watching import watch

CLOSE = 1e-5
FAMILIES = ["bert", "roberta", "albert-groups", "distilbert", "electra", "modernbert", "mpnet"]
FAMILIES += ["deberta-v3", "deberta-v2"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return make_subject(tmp_path_factory.mktemp("bert"), "bert")


def compare(subject, text, pair=None, causal=False):
    found = attention(subject, text, pair, causal=causal)
    reading = watch(subject, text, pair).reading
    theirs = subject.ask(reading.ids, reading.segments)
    assert len(theirs.attentions) == found.layers
    for layer, weights in enumerate(theirs.attentions):
        assert np.abs(found.weights[layer] - weights[0].numpy()).max() < CLOSE
    assert found.weights.dtype == np.float32
    assert np.abs(found.weights.sum(axis=-1) - 1).max() < CLOSE
    return found


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_those_of_the_reference(family, packed, tmp_path):
    subject = make_subject(tmp_path, family, packed)
    compare(subject, TEXT)
    found = compare(subject, TEXT, PAIR)
    if family == "modernbert":
        assert found.windows == (0, 4, 4)
        assert (found.weights[1][:, 0, 5:] == 0).all() and (found.weights[0][:, 0, 5:] > 0).any()
    else:
        assert found.windows == (0, 0, 0)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_causal_weights_are_those_of_a_decoder(family, tmp_path):
    subject = make_subject(tmp_path, family)
    subject.reference = make_model(family, is_decoder=True)  # with the same random weights
    found = compare(subject, TEXT, PAIR, causal=True)
    assert (np.triu(found.weights, 1) == 0).all() and found.causal


def test_causal_with_windows_and_turns_reads_a_beginning_as_if_it_were_all(tmp_path):
    subject = make_subject(tmp_path, "modernbert")
    whole = watch(subject, TEXT, causal=True)
    short = watch(subject, "The fishing was on", causal=True)
    shared = len(short.reading) - 1  # all but its separator
    assert whole.reading.ids[:shared] == short.reading.ids[:shared]
    ours = attention(subject, TEXT, causal=True).weights[..., :shared, :shared]
    again = attention(subject, "The fishing was on", causal=True).weights[..., :shared, :shared]
    assert np.abs(ours - again).max() < CLOSE
    assert np.abs(whole.hidden[:, :shared] - short.hidden[:, :shared]).max() < 1e-4


def test_hidden_states_come_along(bert):
    seen = watch(bert, TEXT, PAIR)
    theirs = bert.ask(seen.reading.ids, seen.reading.segments)
    for ours, state in zip(seen.hidden, theirs.hidden_states, strict=True):
        assert np.abs(ours - state[0].numpy()).max() < 1e-4
    assert not seen.is_turned


def test_what_is_known_of_the_pieces(bert):
    found = attention(bert, TEXT, PAIR)
    assert found.pieces[:4] == ("[CLS]", "the", "fish", "##ing") and found.words[:4] == (None, 0, 1, 1)
    assert found.names[:3] == ("The", "fishing", "was") and "," in found.names
    middle = found.pieces.index("[SEP]")
    assert found.segments == (0,) * (middle + 1) + (1,) * (len(found.pieces) - middle - 1)
    assert [p for p, s in zip(found.pieces, found.special, strict=True) if s] == ["[CLS]", "[SEP]", "[SEP]"]


def test_two_texts_are_told_apart_where_the_model_knows_no_segments(tmp_path):
    subject = make_subject(tmp_path, "distilbert")
    found = attention(subject, TEXT, PAIR)
    assert set(found.segments) == {0, 1}
    first, second = found.places(0), found.places(1)
    assert np.array_equal(found.between(0, 1), found.weights[:, :, : len(first), len(first) :])
    assert np.abs(found.between(1, 1, renormalize=True).sum(axis=-1) - 1).max() < CLOSE
    assert first + second == list(range(len(found.pieces)))
    with pytest.raises(BertsmithError, match="give a pair"):
        attention(subject, TEXT).between(0, 1)


def test_words_and_hidden_special_tokens(bert):
    found = attention(bert, TEXT, PAIR)
    words = found.by_words()
    assert words.pieces[:4] == ("[CLS]", "The", "fishing", "was")
    assert np.abs(words.weights.sum(axis=-1) - 1).max() < CLOSE
    two = found.weights[0, 0][2:4]  # fish ##ing: the mean of the queries, the sum of the keys
    assert np.isclose(words.weights[0, 0, 2, 2], two[:, 2:4].sum() / 2)
    assert np.isclose(words.weights[0, 0, 2, 1], two[:, 1].mean())
    plain = words.without_specials()
    assert not any(plain.special) and plain.pieces == found.names
    assert plain.weights.sum(axis=-1).max() < 1
    assert np.abs(words.without_specials(renormalize=True).weights.sum(axis=-1) - 1).max() < CLOSE
    both = found.without_specials().by_words()
    assert np.abs(both.weights - plain.weights).max() < CLOSE
    assert np.abs(both.rollout - plain.rollout).max() < CLOSE


def test_rollout_is_the_product_of_mixed_layers(bert):
    found = attention(bert, TEXT)
    by_hand = np.eye(len(found.pieces))
    for layer in found.weights.astype(np.float64):
        mixed = layer.mean(axis=0) + np.eye(len(by_hand))
        by_hand = (mixed / mixed.sum(axis=-1, keepdims=True)) @ by_hand
    assert np.abs(found.rollout - by_hand).max() < CLOSE
    assert np.abs(found.rollout.sum(axis=-1) - 1).max() < CLOSE
    alone = np.broadcast_to(np.eye(3, dtype=np.float32), (2, 4, 3, 3))
    assert np.array_equal(roll_out(alone), np.eye(3))


def make_head(rows: dict[int, dict[int, float]], count: int) -> np.ndarray:
    weights = np.zeros((1, 1, count, count), np.float32)
    for query, keys in rows.items():
        for key, weight in keys.items():
            weights[0, 0, query, key] = weight
    return weights


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("itself", lambda i: i),
        ("previous", lambda i: max(i - 1, 0)),
        ("next", lambda i: min(i + 1, 5)),
        ("first token", lambda i: 0),
        ("separator", lambda i: 5),
        ("same word", lambda i: {2: 3, 3: 2}.get(i, (i + 3) % 6)),
    ],
)
def test_a_head_is_called_by_what_it_does(name, look):
    weights = make_head({i: {look(i): 1.0} for i in range(6)}, 6)
    visible = np.ones((1, 6, 6), bool)
    habits = study(weights, visible, (None, 0, 1, 1, 2, None), (5,))
    assert habits.names == ((name,),) and habits.named[0, 0] == pytest.approx(1.0)
    assert habits.entropy[0, 0] == 0
    assert habits.distance[0, 0] == pytest.approx(np.mean([abs(i - look(i)) for i in range(6)]))


def test_a_head_without_a_habit_is_broad_or_mixed():
    visible, words = np.ones((1, 8, 8), bool), (None, 0, 1, 2, 3, 4, 5, None)
    even = study(np.full((1, 1, 8, 8), 1 / 8, np.float32), visible, words, (7,))
    assert even.names == (("broad",),) and even.entropy[0, 0] == pytest.approx(3.0) and even.named[0, 0] == 0
    assert np.isnan(even.shares["same word"]).all()
    split = make_head({i: {(i + 2) % 8: 0.5, (i + 4) % 8: 0.5} for i in range(8)}, 8)
    mixed = study(split, visible, words, (7,))
    assert mixed.names == (("mixed",),) and mixed.entropy[0, 0] == pytest.approx(1.0)


def test_a_query_without_a_choice_says_nothing_of_a_head():
    """Read onward, the first token can only look at itself."""
    visible = np.tril(np.ones((1, 4, 4), bool))
    weights = make_head({0: {0: 1.0}, 1: {0: 1.0}, 2: {1: 1.0}, 3: {2: 1.0}}, 4)
    habits = study(weights, visible, (None, 0, 1, 2), ())
    assert habits.names == (("previous",),) and habits.shares["itself"][0, 0] == 0


def test_the_table_of_heads_and_the_data_agree(bert):
    found = attention(bert, TEXT, PAIR, neurons=True)
    table, data = found.heads(), found.data()
    assert [(row["layer"], row["head"]) for row in table] == [(i, j) for i in range(3) for j in range(4)]
    for row in table:
        habit = data["habits"][row["layer"]][row["head"]]
        assert habit["name"] == row["habit"] and habit["share"] == pytest.approx(row["share"] or 0, abs=1e-4)
        assert data["entropy"][row["layer"]][row["head"]] == pytest.approx(row["entropy"], abs=1e-4)
    count = len(found.pieces)
    assert data["weights"]["shape"] == [3, 4, count, count] and data["rollout"]["shape"] == [1, count, count]
    assert np.abs(unpack(data["weights"]) - found.weights).max() < 0.005
    scores = unpack(data["queries"]) @ unpack(data["keys"]).swapaxes(-1, -2) / np.sqrt(12)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    assert np.abs(shares / shares.sum(axis=-1, keepdims=True) - found.weights).max() < 0.02
    assert attention(bert, TEXT).data()["queries"] is None


def test_a_long_text_is_cut_and_says_so(bert):
    found = attention(bert, "the river " * 60)
    assert len(found.pieces) == bert.limit == 64 and found.truncated == 120 + 2 - 64
    assert found.data()["truncated"] == 58
    assert "58 tokens did not fit" in found.svg()


def test_ids_are_read_as_their_text(bert):
    reading = watch(bert, TEXT).reading
    again = watch(bert, reading.ids).reading
    assert again.ids == reading.ids and again.words.of == reading.words.of
    odd = watch(bert, [bert.tokenizer.id("##ing"), bert.tokenizer.id("river")]).reading
    assert odd.pieces == ["[CLS]", "##ing", "river", "[SEP]"] and odd.words.of == (None, 0, 1, None)


@pytest.mark.parametrize(
    ("text", "pair", "says"),
    [("", None, "the text is empty"), (" \n", None, "the text is empty"), ("a", "", "the pair is empty"),
     (None, None, "not NoneType"), ([], None, "no token ids"), ([5, 10**6], None, "vocabulary"),
     ([5], "a", "stand alone"), ("\u200b", None, "nothing that the tokenizer reads")],
)  # fmt: skip
def test_what_cannot_be_looked_at_is_refused(bert, text, pair, says):
    with pytest.raises(BertsmithError, match=says):
        attention(bert, text, pair)
