"""What a person writes for what is asked: weights, schedules, shares of the run; mistakes; what is made of them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretraining_made import make_corpus

from bertsmith.data.batch import Batch
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.objectives.making import make_objective
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.wording import HEADS, Stage, Term, name_heads, read_asks
from bertsmith.training.recipes import RECIPES, Asking


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.open(make_corpus(tmp_path_factory.mktemp("corpus")))


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("masked", [Stage((Term("masked"),), 1.0)]),
        ("masked+order*0.5", [Stage((Term("masked"), Term("order", 0.5)), 1.0)]),
        (" masked + order * 1-0 ", [Stage((Term("masked"), Term("order", (1.0, 0.0))), 1.0)]),
        ("masked*2e-1-1e1", [Stage((Term("masked", (0.2, 10.0)),), 1.0)]),
        ("causal:1,masked:3", [Stage((Term("causal"),), 0.25), Stage((Term("masked"),), 0.75)]),
        ("causal,masked", [Stage((Term("causal"),), 0.5), Stage((Term("masked"),), 0.5)]),
        ("masked+next*.5:9,masked:1", [Stage((Term("masked"), Term("next", 0.5)), 0.9), Stage((Term("masked"),), 0.1)]),
        ("causal + masked", [Stage((Term("causal"),), 0.25), Stage((Term("masked"),), 0.75)]),
        ("causal+masked", [Stage((Term("causal"),), 0.25), Stage((Term("masked"),), 0.75)]),
    ],
)  # fmt: skip
def test_what_is_written_is_read(text, stages):
    assert read_asks(text) == stages


parts_of_a_run = st.tuples(st.sampled_from(["masked", "causal", "replaced"]), st.floats(0.01, 100))


@given(st.lists(parts_of_a_run, min_size=1, max_size=5))
def test_shares_become_parts_of_one(parts):
    found = read_asks(",".join(f"{name}:{share!r}" for name, share in parts))
    assert [stage.questions for stage in found] == [[name] for name, _ in parts]
    assert sum(stage.share for stage in found) == pytest.approx(1)
    whole = sum(share for _, share in parts)
    assert [stage.share * whole for stage in found] == pytest.approx([share for _, share in parts])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is no question; the questions are masked, next"),
        ("maskd", "did you mean masked"),
        ("masked+causal", "masked and causal each change what is read"),
        ("distilled+masked", "each change what is read"),
        ("masked+masked", "masked is asked twice at once"),
        ("masked+order*x", "'x' behind a star must be a weight"),
        ("masked*0", "must be a weight above 0"),
        ("order*1--1", "must be a weight"),
        ("masked:0,causal:1", "must be a share of the run above 0"),
        ("masked,causal:1", "give each stage its share of the run, or none"),
        ("masked+order:half", "a weight stands behind a star"),
        ("masked+order,masked+next", "next and order need other pairs"),
        ("causal+next", "next is answered at the first token"),
    ],
)
def test_mistakes_are_a_sentence(text, sentence):
    with pytest.raises(BertsmithError) as error:
        read_asks(text)
    assert sentence in str(error.value) and str(error.value).count(". ") == 0


def test_heads_follow_from_the_questions():
    assert name_heads(read_asks("masked+order:1,masked:1")) == ("mask", "follows")
    assert name_heads(read_asks("relations")) == ()
    assert all(head in ("mask", "follows", "replaced") for heads in HEADS.values() for head in heads)


def test_weights_and_stages_go_over_the_run(corpus):
    made = make_objective(Asking("masked+order*1-0:0.5,masked*2:0.5"), corpus, 0)
    assert made.rows == "order" and made.objective.names == ("masked", "sentence_order")
    assert made.objective.weights(0.0) == {"masked": 1.0, "sentence_order": 1.0}
    assert made.objective.weights(0.25) == {"masked": 1.0, "sentence_order": 0.75}
    assert made.objective.weights(0.75) == {"masked": 2.0}
    assert made.objective.expect(100, 4, 0.25) == {"masked": 15, "sentence_order": 4}
    assert made.objective.expect(100, 4, 0.75) == {"masked": 15}
    assert isinstance(make_objective(Asking(), corpus, 0).objective, MaskedTokens)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"asks": "distilled"}, "distilled needs a teacher"),
        ({"asks": "masked+relations"}, "relations needs a teacher"),
        ({"distil_weights": "5,2"}, "give three numbers"),
        ({"distil_weights": "0,0,0"}, "give three numbers"),
        ({"temperature": 0.0}, "temperature is 0.0; it must be above 0"),
        ({"generator_share": 1.5}, "generator_share is 1.5; it must be above 0 and at most 1"),
        ({"replaced_weight": -1.0}, "replaced_weight is -1.0"),
        ({"asks": "replaced", "stay_hidden": 1.0}, "stay_hidden is 1.0; it must be from 0 to below 1"),
        ({"mask_replace": -0.1}, "mask_replace is -0.1; it must be at least 0"),
        ({"random_replace": 0.3}, "mask_replace and random_replace are 0.8 and 0.3; together they must be at most 1"),
    ],
)
def test_settings_that_mean_nothing(settings, sentence):
    with pytest.raises(BertsmithError, match=sentence):
        Asking(**settings)


def test_what_becomes_of_hidden_tokens(corpus):
    """Told by the settings."""
    tokenizer = corpus.tokenizer()
    row = tokenizer.encode("the river bank was muddy").ids
    batch = Batch.of([row] * 50, [[0] * len(row)] * 50)
    for shares, is_mask in (((1.0, 0.0), True), ((0.0, 0.0), False)):
        asking = Asking(mask_rate="0.5", mask_replace=shares[0], random_replace=shares[1])
        objective = make_objective(asking, corpus, 0).objective
        asked = objective.ask(batch, {}, 50 * (len(row) - 2), 0.0)
        there = asked.batch.ids[asked.given["at"]]
        wanted = torch.full_like(there, tokenizer.mask_id) if is_mask else asked.given["gold"]
        assert len(there) > 50 and torch.equal(there, wanted)


def test_phrases_are_hidden_as_a_whole(corpus, tmp_path):
    text = (corpus.folder.parent / "texts.txt").read_text().split("\n")[0].rstrip(".").lower().split()
    phrases = [" ".join(text[:2]).capitalize(), " ".join(text[2:5])]
    (tmp_path / "phrases.txt").write_text("\n".join(phrases) + "\n\nxyz漢 unknown\n")
    made = make_objective(Asking(phrases=str(tmp_path / "phrases.txt"), mask_rate="0.4"), corpus, 0)
    tokenizer = corpus.tokenizer()
    rows = [tokenizer.encode(" ".join(text)).ids] * 40
    units = [[tokenizer.id(word) for word in phrase.lower().split()] for phrase in phrases]
    batch = Batch.of(rows, [[0] * len(row) for row in rows])
    tokens = sum(len(row) - 2 for row in rows)
    hidden = torch.zeros(len(batch.ids), dtype=torch.bool)
    asked = made.objective.ask(batch, {}, tokens, 0.0)
    hidden[asked.given["at"][asked.given["gold"] >= 0]] = True
    split = 0
    for row in range(40):
        place = row * len(rows[0]) + 1
        for unit in units:
            split += len(set(hidden[place : place + len(unit)].tolist())) > 1
            place += len(unit)
    assert hidden.any() and split <= 1  # the last one asked for may be cut, so that the count is exact


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "cannot be read: No such file"), (b"\xff\xfe\x00", "it is not UTF-8"), (b"\n\n", "holds no phrase"),
     (b"word " * 200, "line 1 of .* is a phrase of")],
)  # fmt: skip
def test_a_file_without_phrases(corpus, tmp_path, content, sentence):
    if content is not None:
        (tmp_path / "p").write_bytes(content)
    with pytest.raises(BertsmithError, match=sentence):
        make_objective(Asking(phrases=str(tmp_path / "p")), corpus, 0)


def test_recipes_have_the_numbers_of_their_papers():
    """Tokens in a step, rate, share of warm-up: what the papers print."""
    printed = {
        "bert": (256 * 512, 1e-4, 10_000 / 1_000_000), "roberta": (8192 * 512, 6e-4, 24_000 / 500_000),
        "albert": (4096 * 512, 0.00176, 3125 / 125_000), "electra": (128 * 128, 5e-4, 10_000 / 1_000_000),
        "modernbert": (4608 * 1024, 8e-4, 3 / 1719),
    }  # fmt: skip
    for name, (tokens, rate, warmup) in printed.items():
        training = RECIPES[name].training
        assert (training.tokens, training.rate) == (tokens, rate)
        assert training.warmup == pytest.approx(warmup, abs=1e-4)
    assert RECIPES["albert"].training.optimizer == "lamb" and RECIPES["electra"].asking.replaced_weight == 50
