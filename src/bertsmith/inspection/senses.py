"""One word in many sentences: how alike its contextual vectors are, layer by layer.

In: a word and sentences that hold it, perhaps labelled with its senses. Out: vectors, cosines, a map in two dimensions
and groups at every layer, as numbers and as a picture.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bertsmith.data.decoding import bare_lines, decode
from bertsmith.errors import BertsmithError
from bertsmith.inspection.nearest import Corpus, Found, pick_layer, search_uses
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.sense_maps import Array, compare, group, project_layers, unit
from bertsmith.inspection.subject import Subject
from bertsmith.inspection.uses import Use, WordPattern, word_vectors

MOST = 200  # uses in one picture: more are hardly told apart, and their cosines weigh megabytes


@dataclass
class Senses(Picture):
    """`vectors` (uses, layers, width); by layer `cosines` (layers, uses, uses), `places` (layers, uses, 2), `shares` of
    the variance on both axes, `groups` (layers, uses)."""

    kind: ClassVar[str] = "senses"

    word: str
    uses: list[Use]
    layers: list[int]
    vectors: Array
    given: int  # so many of the uses are of the sentences given; those behind them were found in a corpus
    truncated: int = 0
    nearest: list[list[tuple[int, float]]] = field(default_factory=list)  # of each given use: other uses, their cosine
    count: int = 0  # uses that the corpus holds

    def __post_init__(self) -> None:
        self.title = f"Uses of “{self.word}”"
        by_layer = self.vectors.transpose(1, 0, 2)
        self.cosines = np.stack([compare(one) for one in by_layer])
        self.places, self.shares = project_layers(unit(self.vectors))  # as the cosine sees them: their directions
        # Before any context uses differ by their place in the sentence alone, which is no sense.
        none = np.zeros(len(self.uses), dtype=np.int64)
        chosen = zip(self.layers, self.cosines, strict=True)
        self.groups = np.stack([group(one) if layer else none for layer, one in chosen])

    @property
    def labels(self) -> list[str]:
        """The senses that were named, in the order in which they come."""
        return list(dict.fromkeys(use.label for use in self.uses if use.label is not None))

    def likeness(self) -> list[dict[str, Any]]:
        """Of each layer the mean cosine of two different uses, of all given ones, of the same label and of others."""
        labels = np.array([use.label or "" for use in self.uses[: self.given]])
        named = (labels != "")[:, None] & (labels != "")[None]
        alike = labels[:, None] == labels[None]
        above = np.triu(np.ones((self.given, self.given), dtype=bool), 1)
        found = []
        for layer, cosines in zip(self.layers, self.cosines[:, : self.given, : self.given], strict=True):
            chosen = {"all": above, "same": above & named & alike, "other": above & named & ~alike}
            found.append({"layer": layer, **{name: _mean(cosines[mask]) for name, mask in chosen.items()}})
        return found

    def data(self) -> dict[str, Any]:
        return {
            "word": self.word,
            "layers": self.layers,
            "given": self.given,
            "labels": self.labels,
            "uses": [
                {"text": use.text, "start": use.start, "end": use.end, "label": use.label, "where": use.where,
                 "sentence": None if use.where else use.number + 1, "pieces": list(use.pieces)}
                for use in self.uses
            ],
            "cosines": [_round(one, 3) for one in self.cosines],
            "places": [_round(one, 4) for one in self.places],
            "shares": _round(self.shares, 4),
            "groups": self.groups.tolist(),
            "likeness": self.likeness(),
            "nearest": [[[i, round(score, 4)] for i, score in some] for some in self.nearest],
            "count": self.count,
            "truncated": self.truncated,
        }  # fmt: skip

    def svg(self) -> str:
        from bertsmith.inspection.senses_svg import draw_senses

        return draw_senses(self)


def senses(
    model: Subject, word: str, sentences: Sequence[Any], *, layers: Sequence[int] | None = None,
    corpus: Corpus | None = None, layer: int = -1, top_k: int = 5,
) -> Senses:  # fmt: skip
    """Every use of a word in these sentences, compared at every layer (or at `layers`; 0 is the embedding).

    Sentences are texts, or mappings with a `text` and perhaps a `label`. `corpus` names files of text: of each use the
    `top_k` nearest uses there, by cosine at `layer`, join the picture.
    """
    found = word_vectors(model, word, sentences, layers=layers)
    chosen, uses, vectors, given = found.layers, found.uses, found.vectors, len(found.uses)
    _check_count(word, given, corpus)
    nearest: list[list[tuple[int, float]]] = []
    count = 0
    if corpus is not None:
        by = pick_layer(layer, model) if layers is None or layer != -1 else chosen[-1]
        if by not in chosen:
            raise BertsmithError(f"layer {by} is not among the layers looked at ({', '.join(map(str, chosen))}).")
        asked = vectors[:, chosen.index(by)]
        pattern, known = WordPattern.of(word, model.tokenizer), {use.text.strip() for use in uses}
        best, count = search_uses(model, pattern, asked, known, corpus, chosen, by, top_k)
        nearest, more = _number(best, given)
        uses = uses + [one.use for one in more]
        vectors = np.concatenate([vectors, *[one.vectors[None] for one in more]])
        _check_count(word, len(uses), corpus)
    return Senses(found.word, uses, chosen, vectors, given, found.truncated, nearest, count)


def _check_count(word: str, count: int, corpus: Corpus | None) -> None:
    if count < 2 and corpus is None:
        raise BertsmithError(
            f"there is one use of {word!r}; give at least two sentences, or a corpus to compare it with."
        )
    if count > MOST:
        raise BertsmithError(
            f"{count:,} uses of {word!r} are more than the {MOST} that one picture shows; give fewer sentences "
            f"(word_vectors gives the numbers of any many)."
        )


def _number(best: Sequence[Sequence[Found]], given: int) -> tuple[list[list[tuple[int, float]]], list[Found]]:
    """The found uses, each once, behind the given ones; for each given use the numbers of its nearest."""
    numbers: dict[tuple[str, int], int] = {}
    more: list[Found] = []
    for some in best:
        for one in some:
            key = (one.use.text, one.use.start)
            if key not in numbers:
                numbers[key] = given + len(more)
                more.append(one)
    return [[(numbers[one.use.text, one.use.start], one.score) for one in some] for some in best], more


def read_sentences(path: str | Path) -> list[dict[str, str]]:
    """The sentences of a file, one a line, each perhaps behind its label and a tab."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from error
    found = []
    for number, line in bare_lines(decode(raw, str(path))):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) > 2:
            raise BertsmithError(
                f"{path}, line {number}: {len(cells)} tab-separated columns, where a sentence or a label and a "
                f"sentence are needed."
            )
        found.append({"text": cells[0]} if len(cells) == 1 else {"label": cells[0].strip(), "text": cells[1]})
    if not found:
        raise BertsmithError(f"{path} holds no sentence.")
    return found


def _mean(values: Array) -> float | None:
    return round(float(values.mean()), 4) if values.size else None


def _round(values: Array, digits: int) -> list[Any]:
    found: list[Any] = (np.round(values, digits) + 0.0).tolist()  # + 0.0: no -0.0
    return found
