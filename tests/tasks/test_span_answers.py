"""Scores to answers: every pair tried one by one, text of every kind, the reference's scores, thresholds."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import CLOSE, SENTENCES, Both, bert_pieces, open_both, wordpiece_files

from bertsmith.data.examples import SpanExample
from bertsmith.errors import BertsmithError
from bertsmith.tasks.result import Result
from bertsmith.tasks.span import Span

TEXT = " ".join(SENTENCES)
HARD = ["é", "e\u0301", "q\u0307\u0323", "ﬃ", "日", "本語", "😀", "👩‍🚀", "\u200b", "\u200d", "\ufeff", "\xad", "İ",
        "ß", "№", "½", "\u00a0", "\u3000", "\n", "\t", " ", "  ", "\x00", "\u0301", "한", "ا", "[SEP]", "▁", "Ġ",
        "\ufffd", "\ud800", "fox", "Dog", "playing", "paris.", "x" * 120]  # fmt: skip
HARD_TEXT = st.lists(st.sampled_from(HARD), max_size=60).map("".join) | st.text(max_size=60)
EVERY = pytest.mark.parametrize("name", ["bert", "bert_released", "roberta", "albert"])


@pytest.fixture(scope="module")
def asker(tmp_path_factory) -> Both:
    return open_both(tmp_path_factory.mktemp("span"), "bert", "span", wordpiece_files(bert_pieces()))


def make_task(both: Both, top_k: int = 1, **chosen) -> Span:
    chosen = {"overlap": 12, "question_length": 8, **chosen}
    return Span(both.ours.tokenizer, 40, "windows", {**Span.settings_from((), None), **chosen}, top_k)


def make_scores(rows, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [3 * torch.randn(len(row.ids), 2, generator=generator) for row in rows]


def try_all(task: Span, rows, scores) -> dict[tuple[int, int], float]:
    """The best sum of each span of characters, pair by pair of tokens of the same window."""
    found: dict[tuple[int, int], float] = {}
    for row, score in zip(rows, scores, strict=True):
        context = row.context
        for i in range(row.begin, row.end):
            for j in range(i, min(row.end, i + task.answer_length)):
                if context.opens[i] and context.closes[j]:
                    key = (int(context.starts[i]), int(context.ends[j]))
                    shift = row.first - row.begin
                    total = (score[i + shift, 0] + score[j + shift, 1]).item()
                    found[key] = max(found.get(key, -math.inf), total)
    return found


@EVERY
@given(question=HARD_TEXT, context=HARD_TEXT, seed=st.integers(0, 9), impossible=st.booleans())
@settings(max_examples=60)
def test_an_answer_is_a_slice_of_the_context(request, name, question, context, seed, impossible):
    task = make_task(request.getfixturevalue(name), top_k=50, impossible=impossible, answer_length=5)
    example = SpanExample(question, context)
    rows = task.rows([example])[0]
    result = task.answer(example, rows, make_scores(rows, seed))
    for answer in result:
        assert answer["answer"] == context[answer["start"] : answer["end"]]
        assert answer["answer"] == answer["answer"].strip()
        assert 0 <= answer["score"] <= 1
        assert answer["answer"] or impossible or len(result) == 1
    spans = [(answer["start"], answer["end"]) for answer in result]
    assert len(set(spans)) == len(spans), "each once, whatever windows it was in"
    assert sum(answer["score"] for answer in result) < 1 + 1e-5
    assert (result.no_answer is not None) == (impossible or result[0]["answer"] == "")


@EVERY
@given(context=HARD_TEXT)
@settings(max_examples=60)
def test_every_span_is_told_apart(request, name, context):
    """No two pairs of pieces that may open and close give the same characters: nothing is left to merge."""
    row = make_task(request.getfixturevalue(name)).rows([SpanExample("it", context)])[0][0]
    found = row.context
    starts, ends = found.starts[found.opens].tolist(), found.ends[found.closes].tolist()
    assert starts == sorted(set(starts)) and ends == sorted(set(ends))
    pairs = [(i, j) for i in found.opens.nonzero()[0] for j in found.closes.nonzero()[0] if i <= j]
    assert all(context[found.characters(i, j)].strip() for i, j in pairs)


@EVERY
@given(seed=st.integers(0, 1000), top_k=st.integers(1, 400), longest=st.integers(1, 40), repeats=st.integers(1, 3))
@settings(max_examples=25)
def test_the_best_of_all_pairs(request, name, seed, top_k, longest, repeats):
    task = make_task(request.getfixturevalue(name), top_k, answer_length=longest)
    example = SpanExample("is it small?", "naïve 日本 😀 " + " ".join(SENTENCES[:2] * repeats))
    rows = task.rows([example])[0]
    scores = make_scores(rows, seed)
    wanted = try_all(task, rows, scores)
    total = torch.tensor(list(wanted.values())).logsumexp(0).item()
    best = sorted(wanted.items(), key=lambda item: -item[1])[:top_k]
    result = task.answer(example, rows, scores)
    assert [(a["start"], a["end"]) for a in result] == [span for span, _ in best]
    assert [a["score"] for a in result] == pytest.approx([math.exp(x - total) for _, x in best], rel=1e-4, abs=1e-9)


@given(seed=st.integers(0, 1000), top_k=st.integers(1, 9), threshold=st.floats(-15, 15))
@settings(max_examples=80)
def test_no_answer(bert, seed, top_k, threshold):
    task = make_task(bert, top_k, impossible=True, threshold=threshold)
    example = SpanExample("is it small?", TEXT)
    rows = task.rows([example])[0]
    scores = make_scores(rows, seed)
    spans = try_all(task, rows, scores)
    nothing = min((score[0, 0] + score[0, 1]).item() for score in scores)
    total = torch.tensor([*spans.values(), nothing]).logsumexp(0).item()
    result = task.answer(example, rows, scores)
    assert result.no_answer == pytest.approx(math.exp(nothing - total), rel=1e-4)
    assert (result[0]["answer"] == "") == (nothing - max(spans.values()) > threshold)
    assert len(result) == top_k
    others = [answer["score"] for answer in result][1:]
    assert others == sorted(others, reverse=True)
    for answer in result:
        if answer["answer"] == "":
            assert answer == {"answer": "", "score": result.no_answer, "start": 0, "end": 0}


@pytest.mark.parametrize("impossible", [False, True])
@pytest.mark.parametrize("context", ["", "   ", "\n\t\u3000", "\u200b"])
def test_nothing_to_choose_from(bert, context, impossible):
    task = make_task(bert, top_k=3, impossible=impossible)
    example = SpanExample("is it?", context)
    rows = task.rows([example])[0]
    result = task.answer(example, rows, make_scores(rows, 0))
    assert result.as_dict() == {
        "answers": [{"answer": "", "score": 1.0, "start": 0, "end": 0}], "truncated": 0, "no_answer": 1.0
    }  # fmt: skip


def test_a_long_question_is_cut_and_counted(bert):
    task = make_task(bert)
    example = SpanExample("is it " * 10, TEXT)
    rows = task.rows([example])[0]
    assert task.answer(example, rows, make_scores(rows, 0)).truncated == 12


def test_what_is_not_a_number_is_no_answer(bert):
    task = make_task(bert)
    example = SpanExample("is it?", TEXT)
    rows = task.rows([example])[0]
    with pytest.raises(BertsmithError):
        task.answer(example, rows, [score * math.nan for score in make_scores(rows, 0)])


def ask_reference(both: Both, question: str, context: str) -> tuple[tuple[int, int], float, float]:
    """The best span by the reference's tokenizer, windows and scores; its sum and that of no answer."""
    read = both.tokenizer(
        question, context, truncation="only_second", max_length=40, stride=12,
        return_overflowing_tokens=True, return_offsets_mapping=True, return_token_type_ids=True,
    )  # fmt: skip
    best, sums, nothing = (0, 0), -math.inf, math.inf
    for window, ids in enumerate(read["input_ids"]):
        kinds = torch.tensor([read["token_type_ids"][window]])
        with torch.no_grad():
            said = both.reference(torch.tensor([ids]), token_type_ids=kinds)
        starts, ends = said.start_logits[0].tolist(), said.end_logits[0].tolist()
        nothing = min(nothing, starts[0] + ends[0])
        places = [place for place, sequence in enumerate(read.sequence_ids(window)) if sequence == 1]
        for i in places:
            for j in places:
                if i <= j < i + 30 and starts[i] + ends[j] > sums:
                    offsets = read["offset_mapping"][window]
                    best, sums = (offsets[i][0], offsets[j][1]), starts[i] + ends[j]
    return best, sums, nothing


def test_the_whole_road_against_the_reference(asker):
    pairs = [("is paris the capital?", TEXT), ("who?", "He walked."), ("", "dog"), ("a fox", "Small & Good! " * 20)]
    examples = [SpanExample(question, context) for question, context in pairs]
    task = make_task(asker, impossible=True, threshold=math.inf)
    results: list[Result] = asker.ours.predictor.predict(task, examples)
    rows = task.rows(examples)
    assert sum(len(some) > 1 for some in rows) >= 2
    for (question, context), some, result in zip(pairs, rows, results, strict=True):
        span, best, nothing = ask_reference(asker, question, context)
        assert (result[0]["start"], result[0]["end"]) == span
        assert math.log(result[0]["score"] / result.no_answer) == pytest.approx(best - nothing, abs=20 * CLOSE)
        candidates, _ = task._weigh(some, asker.ours.predictor.run(task, some))
        assert (candidates.best, candidates.nothing) == pytest.approx((best, nothing), abs=10 * CLOSE)


@given(seed=st.integers(0, 1000), count=st.integers(1, 12), data=st.data())
@settings(max_examples=40)
def test_the_tuned_threshold_is_the_best(bert, seed, count, data):
    task = make_task(bert, impossible=True)
    kinds = data.draw(st.lists(st.sampled_from(["fox", "dog", None]), min_size=count, max_size=count))
    context = "lazy fox is not one dog"  # no article: alone it is an answer to the official search, not to the score
    golds = [() if kind is None else ((kind, context.index(kind)),) for kind in kinds]
    examples = [SpanExample("it?", context, gold) for gold in golds]
    rows = task.rows(examples)
    scores = [make_scores(some, 31 * seed + i) for i, some in enumerate(rows)]

    def f1_at(threshold: float) -> float:
        other = make_task(bert, impossible=True, threshold=threshold)
        answers = [other.answer(*each) for each in zip(examples, rows, scores, strict=True)]
        return other.score(answers, examples)["f1"].point

    tuned = task.tune(examples, rows, scores, {})
    if None not in kinds:
        assert tuned == {}
        return
    leads = [task._weigh(*each)[0] for each in zip(rows, scores, strict=True)]
    tried = [f1_at(one.nothing - one.best) for one in leads]
    assert f1_at(tuned["threshold"]) == pytest.approx(max([*tried, f1_at(-math.inf)]))


def test_a_model_that_answers_always_has_no_threshold(bert):
    task = make_task(bert)
    examples = [SpanExample("it?", "a fox", ())]
    rows = task.rows(examples)
    assert task.tune(examples, rows, [make_scores(rows[0], 0)], {}) == {}


def test_scores_of_answers(bert):
    examples = [SpanExample("?", "a fox", (("fox", 2),)), SpanExample("?", "a fox", ()), SpanExample("?", "a fox")]
    answers = [Result([{"answer": text}]) for text in ("a fox", "fox", "fox")]
    found = make_task(bert).score(answers, examples)
    assert next(iter(found)) == Span.metric
    assert {name: measure.point for name, measure in found.items()} == {
        "f1": 0.5, "exact": 0.5, "has_answer_f1": 1, "has_answer_exact": 1, "no_answer_f1": 0, "no_answer_exact": 0
    }  # fmt: skip
    assert all(len(measure.counts) == len(examples) for measure in found.values())
