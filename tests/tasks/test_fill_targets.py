"""Words to choose from: one piece as the reference's pipeline scores it, several pieces as a chain."""

import math

import numpy as np
import pytest
import transformers
from tasks.made import CLOSE, Both

from bertsmith.errors import BertsmithError
from bertsmith.tasks.predicting import Predictor


def chain(both: Both, before: list[int], pieces: list[int], after: list[int]) -> list[float]:
    """The log-probability of each piece, as many masks as pieces, those before it filled in."""
    found = []
    for known in range(len(pieces)):
        word = pieces[:known] + [both.tokenizer.mask_token_id] * (len(pieces) - known)
        found.append(both.log_chances(before + word + after)[len(before) + known, pieces[known]].item())
    return found


def pieces_of(both: Both, *pieces: str) -> list[int]:
    return both.tokenizer.convert_tokens_to_ids(list(pieces))


def test_single_pieces_as_the_pipeline(filler):
    text = f"Paris is the {filler.mask} of France."
    lead = {"[MASK]": "", "<mask>": "Ġ"}[filler.mask]
    words = ["capital", "dog", "the", "lazy"]
    if filler.tokenizer.convert_tokens_to_ids("▁the") not in (None, filler.tokenizer.unk_token_id):
        words, lead = ["the", "is"], "▁"
    pipeline = transformers.pipeline("fill-mask", model=filler.reference, tokenizer=filler.tokenizer, device="cpu")
    theirs = pipeline(text, targets=[lead + word for word in words])
    ours = filler.ours.fill(text, targets=words)
    assert [a["token"] for a in ours] == [a["token"] for a in theirs]
    assert [a["score"] for a in ours] == pytest.approx([a["score"] for a in theirs], abs=CLOSE)
    assert [a["score"] for a in ours] == [a["score_per_piece"] for a in ours]


def test_several_pieces_are_a_chain(bert):
    ids = bert.tokenizer("he is [MASK] it.")["input_ids"]
    place = ids.index(bert.tokenizer.mask_token_id)
    pieces = pieces_of(bert, "play", "##ing")
    logs = chain(bert, ids[:place], pieces, ids[place + 1 :])
    (answer,) = bert.ours.fill("he is [MASK] it.", targets=["Playing"])
    assert answer["token"] == pieces
    assert answer["token_str"] == "playing"
    assert answer["sequence"] == "he is Playing it."
    assert answer["score"] == pytest.approx(math.exp(sum(logs)), rel=1e-4)
    assert answer["score_per_piece"] == pytest.approx(math.exp(sum(logs) / 2), rel=1e-4)


def test_words_with_one_first_piece_differ(bert):
    found = bert.ours.fill("he is [MASK] it.", targets=["play", "played", "playing", "playly"])
    assert len({a["score"] for a in found}) == 4


def test_words_that_begin_alike_are_read_together(bert, monkeypatch):
    """A row for each beginning, of however many words; the chances are those of the words one by one."""
    run, counts = Predictor.run, []

    def count(self, task, rows):
        counts.append(len(rows))
        return run(self, task, rows)

    monkeypatch.setattr(Predictor, "run", count)
    ids = bert.tokenizer("he is [MASK] it.")["input_ids"]
    place = ids.index(bert.tokenizer.mask_token_id)
    words = ["dog", "cat", "playing", "played", "walked", "playedly"]
    found = {a["token_str"]: a for a in bert.ours.fill("he is [MASK] it.", targets=words)}
    # [M]; [M][M], play[M], walk[M]; [M][M][M], play[M][M], play##ed[M]
    assert counts == [1 + 3 + 3]
    for word in words[2:]:
        logs = chain(bert, ids[:place], found[word]["token"], ids[place + 1 :])
        assert found[word]["score"] == pytest.approx(math.exp(sum(logs)), rel=1e-4)


def test_two_masks_score_each_with_the_other_masked(bert):
    ids = bert.tokenizer("[MASK] is [MASK].")["input_ids"]
    walked = pieces_of(bert, "walk", "##ed")
    first, second = bert.ours.fill("[MASK] is [MASK].", targets=["walked", "dog"])
    for place, answers in ((1, first), (3, second)):
        scores = {a["token_str"]: a["score"] for a in answers}
        logs = chain(bert, ids[:place], walked, ids[place + 1 :])
        assert scores["walked"] == pytest.approx(math.exp(sum(logs)), rel=1e-4)
        dog = bert.log_chances(ids)[place, pieces_of(bert, "dog")].exp().item()
        assert scores["dog"] == pytest.approx(dog, abs=CLOSE)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("it is <mask>.", ["Ġ", "Paris"]),
        ("<mask> is", ["Paris"]),
        ("it is (<mask>)", ["Paris"]),
        ("he was\n<mask>", ["Paris"]),
        ("it is <mask>ians", ["Ġ", "Paris"]),
    ],
)
def test_bytes_get_their_space_from_the_context(roberta, text, pieces):
    (answer,) = roberta.ours.fill(text, targets=["Paris"])
    token = answer["token"]
    assert [roberta.ours.tokenizer.piece(id) for id in (token if isinstance(token, list) else [token])] == pieces
    assert answer["sequence"] == text.replace("<mask>", "Paris")


def test_a_word_that_melts_to_the_right_keeps_its_space(roberta):
    (answer,) = roberta.ours.fill("it is <mask>ce", targets=["Fran"])  # " France" is one piece
    assert roberta.ours.tokenizer.piece(answer["token"]) == "ĠFran"


def test_a_space_in_the_target_changes_nothing(roberta):
    assert roberta.ours.fill("it is <mask>.", targets=[" France "]).answers == (
        roberta.ours.fill("it is <mask>.", targets=["France"]).answers
    )


def test_bytes_chain(roberta):
    ids = roberta.tokenizer("it is <mask>.")["input_ids"]
    place = ids.index(roberta.tokenizer.mask_token_id)
    pieces = roberta.tokenizer(" Paris", add_special_tokens=False)["input_ids"]
    logs = chain(roberta, ids[:place], pieces, ids[place + 1 :])
    (answer,) = roberta.ours.fill("it is <mask>.", targets="Paris")
    assert answer["token"] == pieces
    assert answer["score"] == pytest.approx(math.exp(sum(logs)), rel=1e-4)


def test_sentencepiece_keeps_the_space_piece(albert):
    """A word that is cut into "▁" and letters is scored with both."""
    pieces = albert.tokenizer("zoo", add_special_tokens=False)["input_ids"]
    assert albert.tokenizer.convert_ids_to_tokens(pieces)[0] == "▁"
    (answer,) = albert.ours.fill("it is [MASK].", targets=["zoo"])
    assert answer["token"] == pieces


@pytest.mark.parametrize(
    ("text", "word", "pieces"),
    [
        ("he is [MASK]ly", "lazy", ["lazy"]),
        ("un[MASK]", "lazy", ["##l", "##a", "##z", "##y"]),
        ("p[MASK]", "aris", ["a", "##r", "##i", "##s"]),  # "paris" is one piece: the word melts into it
        ("[MASK]s", "pari", ["p", "##a", "##r", "##i"]),
        ("Paris-[MASK]-Berlin", "London", ["london"]),
    ],
)
def test_spelled_between_its_neighbours(bert, text, word, pieces):
    (answer,) = bert.ours.fill(text, targets=[word])
    found = answer["token"] if isinstance(answer["token"], list) else [answer["token"]]
    assert bert.tokenizer.convert_ids_to_tokens(found) == pieces


def test_punctuation_of_a_target_is_kept(bert):
    (answer,) = bert.ours.fill("it is [MASK] not", targets=["N.Y."])
    assert answer["sequence"] == "it is N.Y. not"
    assert len(answer["token"]) == 4


def test_all_targets_are_returned_sorted(bert):
    words = ["dog", "cat", "fox", "playing", "walked", "city", "good"]
    found = bert.ours.fill("it is [MASK]", top_k=2, targets=[*words, "dog"])
    assert sorted(a["token_str"] for a in found) == sorted(words)
    scores = [a["score"] for a in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("word", ["東", "[MASK]", "[UNK]", "", "  "])
def test_unknown_target(bert, word):
    with pytest.raises(BertsmithError, match="cannot be spelled") as error:
        bert.ours.fill("it is [MASK]", targets=["dog", word])
    assert repr(word) in str(error.value)


def test_target_longer_than_the_model_reads(bert):
    with pytest.raises(BertsmithError, match="has 70 pieces, but the model reads at most 62"):
        bert.ours.fill("it is [MASK]", targets=["x" * 70])


def test_long_target_in_a_full_row(bert):
    """The row makes room for the pieces."""
    text = "dog " * 61 + "[MASK]"
    (answer,) = bert.ours.fill(text, targets=["playing"])
    assert 0 < answer["score"] < 1


@pytest.mark.parametrize("targets", [[], [5], [None], 5, b"dog", [["dog"]], np.array("dog")])
def test_wrong_targets(bert, targets):
    with pytest.raises(BertsmithError, match="target"):
        bert.ours.fill("it is [MASK]", targets=targets)


def test_counts_may_come_from_numpy(bert):
    assert bert.ours.fill("it is [MASK]", top_k=np.int64(3)).answers == bert.ours.fill("it is [MASK]", top_k=3).answers


@pytest.mark.parametrize("top_k", [0, -1, 2.5, "3", None, True, np.int32(0), np.float32(2), [2]])
def test_wrong_top_k(bert, top_k):
    with pytest.raises(BertsmithError, match="top_k is"):
        bert.ours.fill("it is [MASK]", top_k=top_k)
