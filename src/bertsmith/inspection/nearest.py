"""The uses of a word in a person's own texts that are nearest to a given use.

In: files of any size, read as they stream by. Out: the best few for each use asked about; no more is kept in memory
than these and one block of sentences.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.inspection.sense_maps import unit
from bertsmith.inspection.subject import Subject
from bertsmith.inspection.uses import Array, Use, WordPattern, find_uses, list_sentences, read_uses
from bertsmith.tasks.embed import choose_layers
from bertsmith.tasks.texts import take_count
from bertsmith.text.sentences import split_sentences
from bertsmith.text.sources import list_sources, read_documents

BLOCK = 256  # uses that are read at once
LONG = 4000  # characters; more than any model reads at once
Corpus = str | Path | Sequence[str | Path]


@dataclass
class Found:
    """A use in the file, its cosine with the one asked about, and its vectors, (layers, width)."""

    score: float
    use: Use
    vectors: Array


@dataclass
class Nearest:
    """The nearest uses to one, best first: `score, text, start, end, where`."""

    word: str
    use: Use
    layer: int
    answers: list[dict[str, Any]]
    count: int  # uses that the files hold

    def data(self) -> dict[str, Any]:
        asked = {"text": self.use.text, "start": self.use.start, "end": self.use.end}
        return {"word": self.word, "use": asked, "layer": self.layer, "count": self.count, "answers": self.answers}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.answers)


def nearest_uses(
    model: Subject, word: str, sentence: str, corpus: Corpus, *, layer: int = -1, top_k: int = 10
) -> Nearest:
    """The uses of a word in files of text that are nearest to its (first) use in a sentence, by cosine at a layer."""
    chosen = pick_layer(layer, model)
    pattern = WordPattern.of(word, model.tokenizer)
    uses, vectors, _ = read_uses(model, find_uses(pattern, list_sentences([sentence]))[:1], [chosen])
    found, count = search_uses(model, pattern, vectors[:, 0], {sentence.strip()}, corpus, [chosen], chosen, top_k)
    answers = [
        {"score": one.score, "text": one.use.text, "start": one.use.start, "end": one.use.end, "where": one.use.where}
        for one in found[0]
    ]
    return Nearest(pattern.word, uses[0], chosen, answers, count)


def pick_layer(layer: int, model: Subject) -> int:
    chosen = choose_layers([layer], model.checkpoint.config.depth + 1)
    assert chosen is not None
    return chosen[0]


def search_uses(
    model: Subject, pattern: WordPattern, asked: Array, known: set[str], corpus: Corpus, layers: Sequence[int],
    layer: int, top_k: int,
) -> tuple[list[list[Found]], int]:  # fmt: skip
    """For each vector of `asked` (uses, width) the nearest uses in the files, and how many uses there are.

    Sentences that are `known` already are left out, and one that comes again counts once.
    """
    kept = take_count("top_k", top_k)
    queries, place = unit(asked.astype(np.float64)), list(layers).index(layer)
    best: list[list[Found]] = [[] for _ in queries]
    stream, count = _stream_uses(pattern, known, corpus), 0
    while block := list(islice(stream, BLOCK)):
        uses, vectors, _ = read_uses(model, block, layers)
        scores = queries @ unit(vectors[:, place].astype(np.float64)).T  # (asked, block)
        for mine, row in zip(best, scores, strict=True):
            _merge(mine, row, uses, vectors, kept)
        count += len(block)
    if not count:
        raise BertsmithError(
            f"the corpus holds no use of {pattern.word!r} beyond the sentences given; give other texts."
        )
    return best, count


def _merge(best: list[Found], scores: Array, uses: Sequence[Use], vectors: Array, top_k: int) -> None:
    seen, most = {(one.use.text, one.use.start) for one in best}, len(best) + top_k
    for i in np.argsort(-scores, kind="stable"):
        if len(best) == most:
            break
        if (uses[i].text, uses[i].start) not in seen:
            seen.add((uses[i].text, uses[i].start))
            best.append(Found(float(scores[i]), uses[i], vectors[i].copy()))
    best.sort(key=lambda one: -one.score)  # stable: of equals the first in the file
    del best[top_k:]


def _stream_uses(pattern: WordPattern, known: set[str], corpus: Corpus) -> Iterator[Use]:
    last = ""
    for document in read_documents(list_sources(corpus), unit="line"):
        if not pattern.find(document.text):
            continue
        for sentence in map(str.strip, split_sentences(document.text)):
            if sentence in known or sentence == last:
                continue
            last = sentence
            for start, end in pattern.find(sentence):
                text, first = _cut_around(sentence, start, end)
                yield Use(text, start - first, end - first, where=document.where)


def _cut_around(sentence: str, start: int, end: int) -> tuple[str, int]:
    """The sentence and 0; of one that never ends, what lies around the use, and where that begins."""
    if len(sentence) <= LONG:
        return sentence, 0
    first, last = max(0, start - LONG // 2), min(len(sentence), end + LONG // 2)
    first += max(sentence[first:start].find(" ") + 1, 0) if first else 0
    space = sentence[end:last].rfind(" ") if last < len(sentence) else -1
    return sentence[first : end + space if space >= 0 else last], first
