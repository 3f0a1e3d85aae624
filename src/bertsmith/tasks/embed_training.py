"""Learning vectors from texts that belong together, or from pairs with a number that says how alike they are.

In: `PairExample`s. Out: for each its texts' vectors; the same object scores them, and writes a sentence-transformers
folder. All texts of a step are compared with each other, so one pass holds them all. `Embed` (embed.py) is what
predicts.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.examples import PairExample
from bertsmith.data.matches import pair_examples, scale_of
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.layers.pooling import Pooling
from bertsmith.models.adapters import open_sentence
from bertsmith.models.files import TASK_FILE
from bertsmith.models.network import Network
from bertsmith.models.sentence import Sentence, adapt_sentence, read_width, write_sentence
from bertsmith.tasks import embed_scores
from bertsmith.tasks.embed import dress_texts, find_prompt
from bertsmith.tasks.embed_losses import ANCHOR, NEGATIVE, POSITIVE, contrast, nest, order
from bertsmith.tasks.losses import Criterion
from bertsmith.tasks.measures import Array, Measure
from bertsmith.tasks.result import Vectors, check_finite
from bertsmith.tasks.task import Row, too_long
from bertsmith.tasks.trained import Settings, TrainedTask
from bertsmith.text.tokenizer import Tokenizer

SCALE = 20.0  # of cosines in a softmax: a temperature of 0.05
LOSSES = {"contrast": contrast, "order": order}
Scorer = Callable[[Sequence[Any], Sequence[PairExample]], dict[str, Measure]]
QUERIES, PASSAGES = ("query", "question"), ("document", "passage", "corpus")  # names of prompts


class EmbedPairs(TrainedTask[PairExample, Vectors]):
    """`settings`: labels (none), loss ("contrast" or "order"), scale, dims, pooling, normalize, prompts,
    default_prompt, lower, least and most (the ends of the numbers' scale), truncate, length; to score vectors that are
    cut, cut (how many of their numbers)."""

    name = "embed"
    head = None
    windows = False
    metric = "mrr@10"
    roles: ClassVar[tuple[str, ...]] = ("text", "pair", "negative", "label")
    required: ClassVar[tuple[str, ...]] = ("text", "pair")
    whole: ClassVar[bool] = True
    classes: ClassVar[bool] = False

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings) -> None:
        super().__init__(tokenizer, limit, truncate, settings)
        self.refuse_windows()
        self.pooling = Pooling(tuple(settings["pooling"]), (), bool(settings["normalize"]))
        self.by_number = settings["loss"] == "order"
        if self.by_number:
            self.metric = "spearman"

    @classmethod
    def examples(
        cls, table: Table, columns: Mapping[str, str], choices: Mapping[str, Any], gold: bool = True
    ) -> list[PairExample]:
        return pair_examples(table, columns, gold=gold)

    @classmethod
    def settle(cls, examples: Sequence[PairExample], choices: Mapping[str, Any]) -> Settings:
        """`choices`: source, dims, truncate, length."""
        source = Path(choices["source"])
        sentence = open_sentence(source)
        settings = cls.settings_of(sentence)
        if not sentence.found:
            settings["normalize"] = True  # as the cosine compares them
        settings["dims"] = settle_dims(choices.get("dims"), sentence)
        settings["length"] = choices.get("length") or sentence.limit
        settings["truncate"] = choices.get("truncate") or cls.truncation
        numbers = [e.number for e in examples if e.number is not None]
        if numbers:
            settings |= {"loss": "order"} | dict(zip(("least", "most"), scale_of(numbers), strict=True))
            refuse_one_number(numbers)
        elif len({(e.text, e.pair) for e in examples}) < 2 and not any(e.negatives for e in examples):
            raise BertsmithError(
                "train has one pair only, and nothing that does not belong to it; give more pairs, or negatives."
            )
        elif not any(e.negatives for e in examples):
            refuse_one_text(examples)
        return settings

    @classmethod
    def settings_of(cls, sentence: Sentence) -> Settings:
        """The settings of a folder that was not fine-tuned here."""
        if sentence.pooling.shapes:
            raise BertsmithError(
                f"{sentence.encoder} has dense layers behind its pooling, which are neither trained nor scored here; "
                f"start from a model without them."
            )
        return {
            "labels": [], "loss": "contrast", "scale": SCALE, "dims": [], "pooling": list(sentence.pooling.modes),
            "normalize": sentence.pooling.normalize, "prompts": dict(sentence.prompts),
            "default_prompt": sentence.default_prompt, "lower": sentence.lower, "least": 0.0, "most": 1.0,
            "truncate": cls.truncation, "length": sentence.limit,
        }  # fmt: skip

    @classmethod
    def settings_from(cls, labels: Sequence[str], problem_type: str | None) -> Settings:
        return cls.settings_of(Sentence(Path()))

    def rows(self, examples: Sequence[PairExample]) -> list[list[Row]]:
        """A row each for the text, its pair and the negatives."""
        texts = [self._dress(e) for e in examples]
        cut = None if self.truncate == "error" else self.length
        flat = [text for some in texts for text in some]
        encoded = iter(self.tokenizer.encode_many(flat, length=cut, truncate=self.truncate if cut else "head"))
        golds = self._golds(examples)
        found = []
        for example, some, gold in zip(examples, texts, golds, strict=True):
            rows = [Row(e.ids, e.segments, dropped=e.dropped) for e in (next(encoded) for _ in some)]
            for row, own in zip(rows, gold, strict=True):
                row.gold = own[None]
                if len(row.ids) > self.length:
                    raise too_long(len(row.ids), self.length, self.windows, example.where, "a text")
            found.append(rows)
        return found

    def _dress(self, example: PairExample) -> list[str]:
        """Its texts with the words in front that the model wants: those of a query and of passages, if it has them."""
        prompts, lower = self.settings["prompts"], bool(self.settings["lower"])
        default = prompts.get(self.settings["default_prompt"], "")
        first, second = (prompts.get(find_prompt(prompts, names), default) for names in (QUERIES, PASSAGES))
        if self.by_number:
            first = second = default
        others = dress_texts([example.pair, *example.negatives], second, lower)
        return [*dress_texts([example.text], first, lower), *others]

    def _golds(self, examples: Sequence[PairExample]) -> list[Array]:
        """What `embed_losses` wants to know of each row: (texts of an example, 4), or (2, 2) of pairs with a number."""
        if self.by_number:
            width = self.settings["most"] - self.settings["least"]
            scaled = [np.nan if e.number is None else (e.number - self.settings["least"]) / width for e in examples]
            return [np.array([[number, i], [np.nan, i]], np.float32) for i, number in enumerate(scaled)]
        numbers: dict[str, int] = {}
        found = []
        for i, e in enumerate(examples):
            texts = [numbers.setdefault(t.strip(), len(numbers)) for t in (e.text, e.pair, *e.negatives)]
            roles = [ANCHOR, POSITIVE, *[NEGATIVE] * len(e.negatives)]
            found.append(np.array([[role, i, text, texts[0]] for role, text in zip(roles, texts, strict=True)]))
        return found

    def fewest(self, examples: Sequence[PairExample]) -> int:
        """What others of a step are compared with; a negative of its own is enough."""
        return 2 if self.by_number or not any(e.negatives for e in examples) else 1

    def read(self, network: Network, batch: Batch, at: Tensor | None) -> Tensor:
        """(rows, width)"""
        return self.pooling(network(batch), batch, normalize=False)

    def loss(self, scores: Tensor, gold: Tensor, batch: Batch, criterion: Criterion) -> Tensor:
        settings = self.settings
        return nest(LOSSES[settings["loss"]], scores, gold, settings["scale"], settings["dims"])

    def answer(self, example: PairExample, rows: Sequence[Row], scores: Sequence[Tensor]) -> Vectors:
        """(texts, width): the vectors of the text, its pair and the negatives, of length 1 where the model says so."""
        vectors = np.concatenate([score.numpy() for score in scores])[:, : self.settings.get("cut")]
        if self.settings["normalize"]:
            vectors = embed_scores.to_units(vectors)
        check_finite(vectors)
        return Vectors(vectors, [row.dropped for row in rows])

    def score(self, answers: Sequence[Vectors], examples: Sequence[PairExample]) -> dict[str, Measure]:
        """How well each text finds its own pair among all; of pairs with a number how their cosines follow it."""
        return self._scorer(examples)(answers, examples)

    def metrics(self, examples: Sequence[PairExample] = ()) -> list[str]:
        """Those of the examples that are scored, which may have numbers where training had none."""
        return list(self._scorer(examples)([], []))

    def _scorer(self, examples: Sequence[PairExample]) -> Scorer:
        by_number = all(e.number is not None for e in examples) if examples else self.by_number
        return embed_scores.score_numbers if by_number else embed_scores.score_pairs

    def report(self, answers: Sequence[Vectors], examples: Sequence[PairExample]) -> dict[str, Any]:
        by_number = all(e.number is not None for e in examples)
        ends = float(self.settings["least"]), float(self.settings["most"])
        errors = embed_scores.far_off(answers, examples, ends) if by_number else embed_scores.missed(answers, examples)
        return {"labels": [], "pairs": True, "errors": errors}

    def dress(self, folder: Path) -> None:
        """What sentence-transformers reads; an adapter has none of it, its settings say the same."""
        if (folder / "config.json").exists():
            settings = {**self.settings, "length": self.length}
            write_sentence(adapt_sentence(Sentence(folder), settings, folder / TASK_FILE), folder)


def refuse_one_text(examples: Sequence[PairExample]) -> None:
    """What belongs to the same text is no negative of it: where one side is always the same, nothing is."""
    for texts, side in (({e.text.strip() for e in examples}, "first"), ({e.pair.strip() for e in examples}, "second")):
        if len(texts) == 1:
            raise BertsmithError(
                f"all {len(examples):,} pairs of train have the same {side} text, so nothing stands against any of "
                f"them; give pairs of other texts too, or negatives."
            )


def refuse_one_number(numbers: Sequence[float]) -> None:
    if min(numbers) == max(numbers):
        raise BertsmithError(
            f"all {len(numbers):,} numbers of train are {numbers[0]:g}, so there is nothing to learn; choose another "
            f"column (--label COLUMN), or leave it out of the file where all pairs belong together."
        )


def settle_dims(given: Any, sentence: Sentence) -> list[int]:
    """The lengths to which a vector may be cut, the longest first and the whole one among them; []: only the whole."""
    if given is None:
        return []
    words = [word.strip() for word in str(given).split(",")]
    if not all(word.isascii() and word.isdecimal() and int(word) for word in words):
        raise BertsmithError(f"dims is {given!r}; give whole numbers with commas between them, as in 384,128,64.")
    sizes = sorted({int(word) for word in words}, reverse=True)
    if len(sizes) < len(words):
        raise BertsmithError(f"dims is {given!r}, which names a number twice; give each once, as in 384,128,64.")
    width = read_width(sentence.encoder)
    if width is None:
        return sizes
    width *= len(sentence.pooling.modes)
    if sizes[0] > width:
        raise BertsmithError(f"dims names {sizes[0]:,}, but the vectors of this model have {width:,} numbers.")
    return sizes if sizes[0] == width else [width, *sizes]
