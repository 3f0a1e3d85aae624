"""The doctor for questions with answers in a text.

In: SpanExamples of train and dev. Out: facts and findings: whether each answer stands where it says, ids, shared texts.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bertsmith.data.doctor_lengths import measure_lengths
from bertsmith.data.doctor_shared import report_empty, report_overlap, report_repeats, report_signs, report_unknown
from bertsmith.data.examples import SpanExample
from bertsmith.data.findings import Diagnosis, counted, quoted, share, shorten

HARDLY_ANY = 0.01  # of the questions without answer: SQuAD 1.1 with holes rather than SQuAD 2.0


def examine_spans(diagnosis: Diagnosis, train: Sequence[SpanExample], dev: Sequence[SpanExample] | None) -> None:
    """All findings on questions, texts and answers, and the facts of both sides."""
    sides = {"train": train} if dev is None else {"train": train, "dev": dev}
    for side, examples in sides.items():
        report_empty(diagnosis, examples, [e.question for e in examples], side, "question")
        _report_contexts(diagnosis, examples)
        report_signs(diagnosis, examples, [e.question for e in examples])
        known = [e for e in examples if e.answers is not None]
        report_unknown(diagnosis, [e for e in examples if e.answers is None], side, "answers")
        diagnosis.facts[side] |= _facts(examples)
        _report_places(diagnosis, examples)
        _report_ids(diagnosis, examples)
        _report_impossible(diagnosis, known, side)
    golds = [None if e.answers is None else frozenset(text for text, _ in e.answers) for e in train]
    report_repeats(diagnosis, train, [key(e) for e in train], golds, "question", "answers")
    if dev:
        report_overlap(diagnosis, [key(e) for e in train], dev, [key(e) for e in dev], "question")
        compare_questions(diagnosis, train, dev, "dev")


def key(example: SpanExample) -> tuple[str, str]:
    """What makes two examples the same question."""
    return example.question.strip(), example.context


def _facts(examples: Sequence[SpanExample]) -> dict[str, Any]:
    words = [len(text.split()) for e in examples for text, _ in e.answers or ()]
    return {
        "contexts": len({e.context for e in examples}),
        "impossible": sum(e.answers == () for e in examples),
        "answers": measure_lengths(words, None, "words"),
    }


def _report_contexts(diagnosis: Diagnosis, examples: Sequence[SpanExample]) -> None:
    empty = [e for e in examples if not e.context.strip()]
    if empty:
        diagnosis.add("error" if len(empty) == len(examples) else "warning",
                      f"the text to answer from is empty for {counted(len(empty), 'question')}", empty)  # fmt: skip


def _report_places(diagnosis: Diagnosis, examples: Sequence[SpanExample]) -> None:
    """Answers that do not stand where they say, and answers without text."""
    empty: list[SpanExample] = []
    moved: list[tuple[SpanExample, str, int]] = []
    absent: list[tuple[SpanExample, str, int]] = []
    for example in examples:
        for text, start in example.answers or ():
            if not text.strip():
                empty.append(example)
            elif start < 0 or not example.context.startswith(text, start):
                (moved if text in example.context else absent).append((example, text, start))
    if absent:
        diagnosis.add("error", f'{counted(len(absent), "answer")} not in the text, such as "{shorten(absent[0][1])}"',
                      [example for example, _, _ in absent])  # fmt: skip
    if moved:
        example, text, start = moved[0]
        place = f"at {start:,}, which begins at {_nearest(example.context, text, start):,}"
        diagnosis.add("error", f'{counted(len(moved), "answer")} not at the character given, such as "{shorten(text)}" '
                      f"{place}", [example for example, _, _ in moved])  # fmt: skip
    if empty:
        diagnosis.add("error", f"{counted(len(empty), 'answer')} without text: a question that has no answer needs an "
                      f"empty list of answers", empty)  # fmt: skip


def _nearest(context: str, text: str, start: int) -> int:
    """The place of `text` that is closest to `start`."""
    before, after = context.rfind(text, 0, max(start, 0) + len(text)), context.find(text, max(start, 0))
    found = [place for place in (before, after) if place >= 0]
    return min(found, key=lambda place: abs(place - start))


def _report_ids(diagnosis: Diagnosis, examples: Sequence[SpanExample]) -> None:
    counts = Counter(e.id for e in examples if e.id)
    repeated = {id_ for id_, count in counts.items() if count > 1}
    if repeated:
        rows = [e for e in examples if e.id in repeated]
        diagnosis.add("warning", f"{counted(len(repeated), 'id')} of more than one question, such as "
                      f"{quoted(sorted(repeated)[:1])}: predictions by id will overwrite each other", rows)  # fmt: skip


def _report_impossible(diagnosis: Diagnosis, known: Sequence[SpanExample], side: str) -> None:
    """Questions without answer: all of them teach nothing, a handful are likely holes."""
    without = [e for e in known if e.answers == ()]
    if not without:
        return
    if len(without) == len(known):
        if side == "train":
            diagnosis.add("error", "no train question has an answer: there is nothing to learn", without[:1])
        return
    rate = share(len(without), len(known))
    if len(without) <= HARDLY_ANY * len(known):
        diagnosis.add("warning", f"{counted(len(without), f'{side} question')} of {len(known):,} without an answer "
                      f"({rate}): meant so, or are answers missing?", without)  # fmt: skip
    else:
        diagnosis.add("note", f"{rate} of the {side} questions have no answer in their text")


def compare_questions(
    diagnosis: Diagnosis, train: Sequence[SpanExample], other: Sequence[SpanExample], side: str
) -> None:
    """What dev or test shares with train, and what they lack of each other."""
    _report_shared(diagnosis, train, other, side)
    _compare_impossible(diagnosis, train, other, side)


def _compare_impossible(
    diagnosis: Diagnosis, train: Sequence[SpanExample], other: Sequence[SpanExample], side: str
) -> None:
    """Questions without an answer that one side has and the other has not: the model learns another task."""
    taught, asked = ([e for e in some if e.answers == ()] for some in (train, other))
    if asked and not taught:
        diagnosis.add(
            "warning",
            f"{counted(len(asked), f'{side} question')} ({share(len(asked), len(other))}) without an answer, but every "
            f"train question has one: the model will always answer, so each of these will be wrong",
            asked,
        )
    if not asked and len(taught) > HARDLY_ANY * len(train):
        diagnosis.add(
            "warning",
            f"{share(len(taught), len(train))} of the train questions have no answer, but every {side} question has "
            f'one: the model learns to say "no answer", and each time it does so in {side} it will be wrong',
            taught,
        )


def _report_shared(diagnosis: Diagnosis, train: Sequence[SpanExample], other: Sequence[SpanExample], side: str) -> None:
    seen = {e.context for e in train}
    shared = [e for e in other if e.context in seen]
    diagnosis.facts[side]["shared_contexts"] = len({e.context for e in shared})
    if len(shared) > diagnosis.facts[side]["overlap"]:
        diagnosis.add("warning", f"{share(len(shared), len(other))} of the {side} questions are about a text that "
                      f"train has questions about too: the score will be too good by them", shared)  # fmt: skip
