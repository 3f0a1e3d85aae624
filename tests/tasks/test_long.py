"""Texts longer than the model reads (64 tokens here): every policy of every job, and what is told about it."""

import logging

import numpy as np
import pytest
import torch
from tasks.made import CLOSE

from bertsmith.errors import BertsmithError
from bertsmith.tasks.predicting import Predictor

WORDS = ["the", "quick", "fox", "is", "lazy", "paris", "good", "of", "dog"]
LONG = " ".join(WORDS[i % 9] for i in range(100))  # 102 tokens
CUT = {"head": (62, 0), "tail": (0, 62), "head+tail": (31, 31)}  # words kept at the start and at the end


def shorten(words: list[str], head: int, tail: int) -> str:
    return " ".join(words[:head] + words[len(words) - tail :])


@pytest.mark.parametrize("policy", CUT)
def test_cut_is_the_kept_words(bert, policy):
    kept = shorten(LONG.split(), *CUT[policy])
    for job in (bert.ours.embed, bert.ours.hidden):
        cut, whole = job(LONG, truncate=policy), job(kept)
        assert np.abs(cut - whole).max() < CLOSE
        assert (cut.truncated, whole.truncated) == (38, 0)


@pytest.mark.parametrize("policy", CUT)
@pytest.mark.parametrize("place", [10, 50, 90])
def test_fill_sees_its_mask_or_says_so(bert, policy, place):
    words = LONG.split()
    words[place] = "[MASK]"
    head, tail = CUT[policy]
    if head <= place < 100 - tail:
        with pytest.raises(BertsmithError, match="mask 1 of 1 lies in the part of the text that truncate=") as error:
            bert.ours.fill(" ".join(words), truncate=policy)
        assert f"truncate='{policy}' cuts away" in str(error.value)
        return
    result = bert.ours.fill(" ".join(words), truncate=policy)
    alone = bert.ours.fill(shorten(words, head, tail))
    assert [a["token"] for a in result] == [a["token"] for a in alone]
    assert [a["score"] for a in result] == pytest.approx([a["score"] for a in alone], abs=CLOSE)
    assert result.truncated == 38
    assert len(result[0]["sequence"]) > len(alone[0]["sequence"])  # the whole text, not what was left of it


def test_follows_cuts_the_longer_text(bert_pairs):
    short = "it is good"
    result = bert_pairs.ours.follows(short, LONG)
    alone = bert_pairs.ours.follows(short, shorten(LONG.split(), 64 - 3 - 3, 0))
    assert result.truncated == 100 - 58
    assert {a["label"]: a["score"] for a in result} == pytest.approx({a["label"]: a["score"] for a in alone}, abs=CLOSE)


def test_error_is_one_sentence(bert, bert_pairs):
    """It names the text where there are several, and windows where the job has them."""
    asks = {
        "the input has 103": (lambda: bert.ours.fill(f"[MASK] {LONG}", truncate="error"), True),
        "text 2: the input has 103": (lambda: bert.ours.fill(["[MASK]", f"[MASK] {LONG}"], truncate="error"), True),
        "the input has 102": (lambda: bert.ours.embed(LONG, truncate="error"), True),
        "text 3: the input has 102": (lambda: bert.ours.embed(["", [7], LONG], truncate="error"), True),
        "text 2: the input has 102": (lambda: bert.ours.hidden(["it is", LONG], truncate="error"), False),
        "the input has 104": (lambda: bert_pairs.ours.follows(LONG, "dog", truncate="error"), False),
        "text 2: the input has 104": (
            lambda: bert_pairs.ours.follows(["dog", LONG, LONG], ["it", "dog", "dog"], truncate="error"), False,
        ),
    }  # fmt: skip
    for told, (ask, slides) in asks.items():
        with pytest.raises(BertsmithError) as error:
            ask()
        ways = "'head', 'tail', 'head+tail' or 'windows'" if slides else "'head', 'tail' or 'head+tail'"
        assert str(error.value) == f"{told} tokens but at most 64 fit; choose truncate={ways}, or a shorter text."


def test_windows_have_no_meaning_there(bert, bert_pairs):
    with pytest.raises(BertsmithError, match="hidden has no meaning for truncate='windows'"):
        bert.ours.hidden(LONG, truncate="windows")
    with pytest.raises(BertsmithError, match="follows has no meaning for truncate='windows'"):
        bert_pairs.ours.follows(LONG, "dog", truncate="windows")


@pytest.mark.parametrize("job", ["embed", "hidden", "fill"])
def test_unknown_policy(bert, job):
    with pytest.raises(BertsmithError, match="truncate='middle' is not a choice"):
        getattr(bert.ours, job)("[MASK]", truncate="middle")


def test_embed_windows_are_weighted_by_tokens(bert):
    windows = bert.ours.tokenizer.windows(LONG, length=64, overlap=0)
    assert [len(window) for window in windows] == [64, 40]
    vectors = []
    for window in windows:
        with torch.no_grad():
            hidden = bert.reference.bert(torch.tensor([window.ids])).last_hidden_state[0]
        vectors.append(hidden.mean(dim=0).numpy())
    found = bert.ours.embed(LONG, truncate="windows")
    assert np.abs(found - np.average(vectors, axis=0, weights=[64, 40])).max() < CLOSE
    assert found.truncated == 0


def test_embed_windows_of_short_texts(bert):
    texts = ["it is", LONG, ""]
    together = bert.ours.embed(texts, truncate="windows")
    assert np.abs(together[[0, 2]] - bert.ours.embed(["it is", ""])).max() < CLOSE
    assert np.abs(together[1] - bert.ours.embed(LONG, truncate="windows")).max() < CLOSE


def masked_at(places: list[int], count: int = 5000) -> str:
    words = [WORDS[(i * i) % 9] for i in range(count)]
    for place in places:
        words[place] = "[MASK]"
    return " ".join(words)


def central_window(model, text: str, number: int = 0) -> tuple[list[int], int]:
    """The ids of the window in which a mask of the whole text lies most central, and its place there."""
    start = -1
    for _ in range(number + 1):
        start = text.index("[MASK]", start + 1)
    best: tuple[int, list[int], int] = (-1, [], 0)
    for window in model.tokenizer.windows(text, length=64, overlap=31):
        for place, (id, (first, _)) in enumerate(zip(window.ids, window.offsets, strict=True)):
            edge = min(place, len(window) - 1 - place)
            if id == model.tokenizer.mask_id and first == start and edge > best[0]:
                best = (edge, window.ids, place)
    return best[1], best[2]


@pytest.mark.parametrize("place", [0, 1, 61, 62, 63, 2500, 4998, 4999])
def test_a_mask_anywhere_in_a_long_text(bert, place):
    text = masked_at([place])
    result = bert.ours.fill(text)
    ids, at = central_window(bert.ours, text)
    top = bert.log_chances(ids)[at].exp().topk(5)
    assert [a["token"] for a in result] == top.indices.tolist()
    assert [a["score"] for a in result] == pytest.approx(top.values.tolist(), abs=CLOSE)
    assert result.truncated == len(bert.ours.tokenize(text)) - len(ids)  # what the window does not show the model


@pytest.mark.parametrize("places", [[0, 4999], [0, 40], [100, 130, 160], [2500, 2501]])
def test_what_no_window_shows_is_counted(bert, places):
    """All tokens less those in any window that holds a mask centrally, counted one by one."""
    text = masked_at(places)
    asked = [central_window(bert.ours, text, number)[0] for number in range(len(places))]
    seen = set()
    for window in bert.ours.tokenizer.windows(text, length=64, overlap=31):
        if window.ids in asked:
            seen.update(span for span, s in zip(window.offsets, window.sequences, strict=True) if s == 0)
    assert bert.ours.fill(text).truncated == len(bert.ours.tokenizer.encode(text, specials=False)) - len(seen)


@pytest.mark.parametrize("place", [0, 150, 299])
def test_long_texts_of_every_vocabulary(filler, place):
    words = [WORDS[i % 9] for i in range(300)]
    words[place] = filler.mask
    result = filler.ours.fill(" ".join(words), targets=["the", "zoo"])
    assert [a["sequence"].split()[place] for a in result] in (["the", "zoo"], ["zoo", "the"])
    assert all(0 < a["score"] < 1 for a in result)
    assert filler.ours.embed(" ".join(words)).truncated == len(filler.ours.tokenize(" ".join(words))) - 64


def test_a_mask_has_neighbours_on_both_sides(bert):
    """In the middle of a text no mask is answered at the edge of a window."""
    for place in range(300, 340):
        _, at = central_window(bert.ours, masked_at([place], count=600))
        assert 15 <= at <= 48


def test_masks_far_apart(bert):
    text = masked_at([3, 9, 2500, 4990])
    result = bert.ours.fill(text)
    for number in range(4):
        ids, at = central_window(bert.ours, text, number)
        top = bert.log_chances(ids)[at].exp().topk(5)
        assert [a["token"] for a in result[number]] == top.indices.tolist()


@pytest.mark.parametrize("targets", [None, ["dog", "the"]])
def test_each_window_is_read_once_however_many_masks_it_has(bert, monkeypatch, targets):
    """600 masks of a text were 600 rows, most of them the same."""
    run, counts = Predictor.run, []

    def count(self, task, rows):
        counts.append(len(rows))
        return run(self, task, rows)

    monkeypatch.setattr(Predictor, "run", count)
    text = masked_at(list(range(0, 300, 3)), count=300)
    result = bert.ours.fill(text, targets=targets)
    windows = bert.ours.tokenizer.windows(text, length=64, overlap=31)
    assert counts[0] == len(windows) and len(result) == 100
    assert len(counts) == 1 or targets is None  # what is searched for together is asked again
    for number in range(0, 100, 9):
        ids, at = central_window(bert.ours, text, number)
        chances = bert.log_chances(ids)[at].exp()
        found = [a["token"] for a in result[number]]
        if targets is None:
            assert found == chances.topk(5).indices.tolist()
        assert [a["score"] for a in result[number]] == pytest.approx(chances[found].tolist(), abs=CLOSE)


def test_joint_of_masks_far_apart(bert):
    """Masks in one window are filled in each other's light, those in others are not seen."""
    text = masked_at([3, 9, 2500])
    for answer in bert.ours.fill(text).joint:
        log_chance = 0.0
        for number, id in enumerate(answer["tokens"]):
            ids, at = central_window(bert.ours, text, number)
            row = list(ids)
            if number == 1:
                row[row.index(bert.tokenizer.mask_token_id)] = answer["tokens"][0]
            log_chance += bert.log_chances(row)[at, id].item()
        assert answer["score"] == pytest.approx(np.exp(log_chance), rel=1e-3)


def test_targets_in_a_long_text(bert):
    text = masked_at([2500])
    found = {a["token_str"]: a for a in bert.ours.fill(text, targets=["playing", "dog"])}
    windows = bert.ours.tokenizer.windows(text, length=63, overlap=30)  # one place less: "playing" has two pieces
    masked = [w.ids for w in windows if bert.tokenizer.mask_token_id in w.ids]
    ids = max(masked, key=lambda row: min(row.index(4), len(row) - 1 - row.index(4)))
    place = ids.index(4)
    play, ing = found["playing"]["token"]
    first = bert.log_chances([*ids[:place], 4, 4, *ids[place + 1 :]])[place, play]
    second = bert.log_chances([*ids[:place], play, 4, *ids[place + 1 :]])[place + 1, ing]
    assert found["playing"]["score"] == pytest.approx((first + second).exp().item(), rel=1e-3)
    dog = bert.log_chances(ids)[place].exp()[found["dog"]["token"]]
    assert found["dog"]["score"] == pytest.approx(dog.item(), abs=CLOSE)


def test_one_log_line_a_call(bert, caplog):
    with caplog.at_level(logging.INFO, "bertsmith"):
        bert.ours.embed([LONG, "it is", LONG])
    (record,) = caplog.records
    assert record.name == "bertsmith.cuts"
    assert record.getMessage() == (
        "embed: 2 of 3 inputs were longer than 64 tokens; 76 tokens were cut (truncate='head')"
    )


def test_a_log_line_for_every_job(bert, bert_pairs, caplog):
    bert.ours.hidden(LONG, truncate="tail")
    bert.ours.fill(f"[MASK] {LONG}", truncate="head")
    bert_pairs.ours.follows(LONG, "it")
    assert [record.getMessage().split(" were cut")[0] for record in caplog.records] == [
        "hidden: 1 of 1 inputs were longer than 64 tokens; 38 tokens",
        "fill: 1 of 1 inputs were longer than 64 tokens; 39 tokens",
        "follows: 1 of 1 inputs were longer than 64 tokens; 40 tokens",
    ]


def test_no_log_line_without_a_cut(bert, caplog):
    bert.ours.embed(["it is", " ".join(["dog"] * 62)])
    bert.ours.embed(LONG, truncate="windows")
    bert.ours.fill(masked_at([50], count=60))
    bert.ours.hidden([])
    assert caplog.records == []
