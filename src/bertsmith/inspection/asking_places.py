"""The jobs that ask for places in a text, as aims: a mask, a word's tag, where an answer starts and ends.

In and out as in asking.py. A long text is read in the window that the answer came from.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from bertsmith.data.examples import SpanExample
from bertsmith.errors import BertsmithError
from bertsmith.inspection.aims import Able, Aim, Asked, pick, see
from bertsmith.tasks.alignment import split_text
from bertsmith.tasks.answers import SpanRow, weigh
from bertsmith.tasks.fill import Fill
from bertsmith.tasks.masks import find_masks, find_spans
from bertsmith.tasks.span import Span
from bertsmith.tasks.spelling import spell
from bertsmith.tasks.tag import Tag
from bertsmith.tasks.tag_rows import TagRow
from bertsmith.tasks.task import Row, Task
from bertsmith.text.encoding import Encoding


class AnyPiece(Fill):
    """A mask's scores for the whole vocabulary, as they are."""

    scores = Task.scores


def ask_fill(model: Able, texts: list[str], target: Any, at: Any) -> Asked:
    home = model.need("mask", "fill masks")
    tokenizer, text = model.tokenizer, texts[0]
    whole = tokenizer.encode(text)
    spans = find_spans(tokenizer, whole)
    masked = find_masks(tokenizer, text, whole, spans, model.limit, "windows")
    number = 0 if at is None else at
    if not isinstance(number, int) or not 0 <= number < len(spans):
        raise BertsmithError(f"at={at!r} names no mask; the text has {len(spans)}, counted from 0.")
    mask = masked.masks[number]
    row, task = masked.row(mask, {}), AnyPiece(tokenizer, model.limit, "windows")
    piece = _find_piece(model, text, spans[number], target)
    if piece is None:
        piece = int(see(home, task, [row])[0][0].argmax())
    named = tokenizer.decode([piece], skip_specials=False).strip()
    aim = Aim("text", (text,), masked.windows[mask.window], row, task, lambda scores: scores[0, piece])
    return Asked("fill", home, named, f"the raw score (logit) of {named!r} in the place of the mask", [aim])


def _find_piece(model: Able, text: str, span: tuple[int, int], target: Any) -> int | None:
    if target is None:
        return None
    if not isinstance(target, str):
        raise BertsmithError(f"target={target!r} must be a word for the mask.")
    pieces = spell(model.tokenizer, text, span, target)
    if len(pieces) > 1:
        spelled = " ".join(model.tokenizer.piece(id) for id in pieces)
        raise BertsmithError(
            f"target={target!r} has {len(pieces)} pieces ({spelled}) but a mask is one; name a word that is one piece."
        )
    return pieces[0]


def ask_tag(model: Able, texts: list[str], target: Any, at: Any) -> Asked:
    home = model.need("tag", "tag words", "tag")
    settings = home.task_settings(Tag)
    task = Tag(model.tokenizer, model.limit, settings["truncate"], settings)
    example = split_text(texts[0])
    rows = [row for row in task.rows([example])[0] if isinstance(row, TagRow)]
    scores = see(home, task, rows)
    tags = task.answer(example, rows, scores).tags or []
    word = _find_word(example.words, tags, settings.get("default", "O"), at)
    held = next((i for i, row in enumerate(rows) if word in row.words), None)
    if held is None:
        raise BertsmithError(f"the word {example.words[word]!r} was cut away, as the text is too long; shorten it.")
    here = list(rows[held].words).index(word)
    row = Row(rows[held].ids, rows[held].segments, at=[rows[held].at[here]], dropped=rows[held].dropped)
    number = pick(target, task.labels, "tag", scores[held][here])
    encoding = _find_window(model, task, texts[0], held)
    assert encoding.ids == list(row.ids)
    explained = f"the raw score (logit) of the tag {task.labels[number]} for the word {example.words[word]!r}"
    aim = Aim("text", (texts[0],), encoding, row, task, lambda found: found[0, number])
    return Asked("tag", home, f"{example.words[word]}: {task.labels[number]}", explained, [aim])


def _find_word(words: Sequence[str], tags: Sequence[str], default: str, at: Any) -> int:
    """The word that is asked for: by its number or itself; else the first with a tag that says something."""
    if not words:
        raise BertsmithError("the text has no words to tag.")
    if at is None:
        return next((i for i, tag in enumerate(tags) if tag != default), 0)
    if isinstance(at, str):
        if at in words:
            return list(words).index(at)
        at = int(at) if at.isdecimal() else at  # as a command line gives a number
    if isinstance(at, int) and 0 <= at < len(words):
        return at
    listed = ", ".join(words[:8]) + (" …" if len(words) > 8 else "")
    raise BertsmithError(f"at={at!r} names no word; the text has {len(words)}, counted from 0: {listed}.")


def _find_window(model: Able, task: Tag, text: str, number: int) -> Encoding:
    """The encoding of the row of this number."""
    length, policy = task.length, task.truncate
    if policy != "windows":
        return model.tokenizer.encode(text, length=length, truncate=policy)
    room = length - model.tokenizer.template.specials(paired=False)
    return model.tokenizer.windows(text, length=length, overlap=room // 4)[number]


def ask_answer(model: Able, texts: list[str], target: Any, at: Any) -> Asked:
    home = model.need("span", "answer questions", "span")
    settings = home.task_settings(Span)
    task = Span(model.tokenizer, model.limit, settings["truncate"], settings)
    question, context = texts
    example = SpanExample(question, context)
    rows = [row for row in task.rows([example])[0] if isinstance(row, SpanRow)]
    scores = see(home, task, rows)
    if target is None:
        target = task.answer(example, rows, scores)[0]["answer"]
        candidates = weigh(rows, scores, task.answer_length).top(1)
        span = candidates[0] if target and candidates else None
    else:
        span = _find_answer(rows[0], context, target)
    held, start, end = _place(rows, scores, span)
    row, shown = rows[held], repr(target) if span else "no answer"
    asked = len(row.ids) - (row.end - row.begin) - task.specials  # pieces of the question, which may be cut
    encoding = model.tokenizer.encode(question, context).keep([[(0, asked)], [(row.begin, row.end)]])
    assert encoding.ids == list(row.ids)
    explained = f"the raw scores (logits) of the start and the end of {shown}, added"
    aim = Aim("question and context", (question, context), encoding, row, task, lambda s: s[start, 0] + s[end, 1])
    return Asked("answer", home, target, explained, [aim])


def _find_answer(row: SpanRow, context: str, target: Any) -> tuple[int, int] | None:
    """The first and the last piece of an answer that was named; None: that there is none."""
    if not isinstance(target, str) or target not in context:
        raise BertsmithError(f"target={target!r} does not stand in the context; copy it from there, or leave it out.")
    start = context.index(target)
    found = row.context.find(start, start + len(target)) if target else None
    if target and found is None:
        raise BertsmithError(f"target={target!r} holds nothing that the model reads; name another part.")
    return found


def _place(rows: Sequence[SpanRow], scores: Sequence[Tensor], span: tuple[int, int] | None) -> tuple[int, int, int]:
    """The window that gives an answer its score, and the places of its first and last piece there."""
    if span is None:  # [CLS], which must win in every window
        sums = [float(s[0, 0] + s[0, 1]) for s in scores]
        return sums.index(min(sums)), 0, 0
    places = [
        (i, row.first + span[0] - row.begin, row.first + span[1] - row.begin)
        for i, row in enumerate(rows)
        if row.begin <= span[0] and span[1] < row.end
    ]
    if not places:
        raise BertsmithError("no window holds the whole answer; name a shorter one, or shorten the context.")
    return max(places, key=lambda at: float(scores[at[0]][at[1], 0] + scores[at[0]][at[2], 1]))
