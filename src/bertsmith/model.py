"""The object that `bertsmith.load` gives: one method a job, each a few lines over the folders below.

A method given one input returns one `Result` (or one array), given several a list of them.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch

from bertsmith.answering import answer_given, answer_kind, answer_texts, take_head
from bertsmith.arguments import checked
from bertsmith.classifying import classify_texts, follow_texts, judge_labels, refuse_mixture, score_texts
from bertsmith.describing import describe, name_in_a_line
from bertsmith.embedding import compare_texts, embed_texts
from bertsmith.keeping import find_settings, read_tokenizer, save_model
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.files import take_folder
from bertsmith.models.sentence import Sentence
from bertsmith.resident import find_default_home, find_home, put_adapter
from bertsmith.tasks.alignment import split_text
from bertsmith.tasks.choose import Choose, offer
from bertsmith.tasks.embed import Hidden, choose_layers
from bertsmith.tasks.fill import Fill
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.rerank import Rerank, ask_ranks
from bertsmith.tasks.result import Vectors
from bertsmith.tasks.span import Span, ask_spans
from bertsmith.tasks.tag import Tag
from bertsmith.tasks.texts import list_texts, pair_up
from bertsmith.tasks.trained import TrainedTask
from bertsmith.tasks.zero_shot import HYPOTHESIS
from bertsmith.text.tokenizer import Tokenizer

Truncate = Literal["error", "head", "tail", "head+tail", "windows"]


class Model:
    """Safe to share between threads: nothing here changes after loading."""

    def __init__(
        self, folder: Path, checkpoint: Checkpoint, sentence: Sentence, device: torch.device, batch_tokens: int,
        trained: dict[str, Any] | None = None, base: "Model | None" = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.checkpoint = checkpoint
        self.sentence = sentence
        self.device = device
        self.trained = trained or {}  # what a fine-tuning knew of its task: its name, its settings, its score
        self.predictor = Predictor(checkpoint.network, device, batch_tokens)
        self.base = base  # the model that this one is an adapter on
        self.adapters: dict[str, Model] = {}  # by name; filled while loading

    def __repr__(self) -> str:
        return name_in_a_line(self)

    def __reduce__(self) -> Any:
        """A copy, or the model in another process, is loaded from its folder: packed matrices cannot travel."""
        if self.base is not None:
            return Model.use, (self.base, self.folder.absolute())
        adapters = {name: adapter.folder.absolute() for name, adapter in self.adapters.items()}
        return _reopen, (self.folder.absolute(), str(self.device), self.dtype, self.predictor.budget, adapters)

    @checked()
    def use(self, adapter: str | Path) -> "Model":
        """This encoder with an adapter: one that was loaded with it, by its name, or another by its folder.

        It has the answers of a model of its own, and the memory of this one.
        """
        base = self.base or self
        return base.adapters.get(str(adapter)) or put_adapter(base, adapter)

    @property
    def dtype(self) -> str:
        return str(self.checkpoint.network.dtype).removeprefix("torch.")

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return read_tokenizer(self) if self.base is None else self.base.tokenizer

    @property
    def limit(self) -> int:
        """The longest row read, special tokens included."""
        most = self.checkpoint.config.limit
        return min(most, self.sentence.limit or self.tokenizer.limit or most)

    @checked()
    def fill(
        self,
        text: str | Sequence[str],
        *,
        top_k: int = 5,
        targets: Sequence[str] | None = None,
        truncate: Truncate = "windows",
    ) -> Any:
        """What stands behind each mask: `sequence, score, token, token_str`, likeliest first.

        Several masks give one list each, and `.joint`, the best fillings of all together: of few masks among many ways,
        each mask in the light of those before it; of many among fewer, and beyond about 30 several masks that are far
        apart are filled at a time, so that it takes seconds. With `targets` all of them are scored as whole words:
        `score` is the probability of all pieces, `score_per_piece` its geometric mean.
        """
        self.need("mask", "fill masks")
        return answer_texts(self, Fill(self.tokenizer, self.limit, truncate, top_k, targets), text)

    @checked()
    def follows(self, a: str | Sequence[str], b: str | Sequence[str], *, truncate: Truncate = "head") -> Any:
        """Whether `b` follows `a`: `label, score`, by the next-sentence or the sentence-order head."""
        return follow_texts(self, a, b, truncate)

    @checked()
    def classify(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        *,
        labels: Sequence[str] | None = None,
        hypothesis: str = HYPOTHESIS,
        several: bool = False,
        top_k: int | None = None,
        raw: bool = False,
        apply: Literal["softmax", "sigmoid"] | None = None,
        truncate: Truncate | None = None,
    ) -> Any:
        """Which class a text or a pair is of: `label, score`, best first; of several labels those that count.

        With `labels` a model of natural-language inference judges classes it never learnt, by how far the text entails
        the `hypothesis` with a label in its place; `several`: each label on its own, not one of them all.
        `raw`: the scores of all classes as the head gives them, before any function and temperature; `apply`: all of
        them by this function, whichever the model learnt with.
        """
        refuse_mixture(labels is not None, pair, hypothesis, several, raw, apply)
        if labels is not None:
            return judge_labels(self, text, labels, hypothesis, several, top_k, truncate)
        return classify_texts(self, text, pair, top_k, raw, apply, truncate)

    @checked()
    def score(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        *,
        truncate: Truncate | None = None,
    ) -> Any:
        """A number for a text or a pair: `score`."""
        return score_texts(self, text, pair, truncate)

    @checked()
    def choose(
        self,
        prompt: str | Sequence[str],
        choices: Sequence[str] | Sequence[Sequence[str]],
        *,
        truncate: Truncate | None = None,
    ) -> Any:
        """Which choice goes with a prompt: `index, choice, score`, best first; several prompts have a list each."""
        task = Choose(*take_head(self, "choose", "choose", Choose, truncate))
        return answer_given(self, task, offer(prompt, choices), isinstance(prompt, str), "prompt")

    @checked()
    def tag(self, text: str | Sequence[str], *, aggregation: str = "first", truncate: Truncate | None = None) -> Any:
        """The entities of a text: `entity_group, score, word, start, end`; the tag of each word is in `.tags`."""
        task = Tag(*take_head(self, "tag", "tag words", Tag, truncate), aggregation=aggregation)
        given = [text] if isinstance(text, str) else list_texts(text)
        return answer_given(self, task, [split_text(one) for one in given], isinstance(text, str))

    @checked()
    def answer(
        self,
        question: str | Sequence[str],
        context: str | Sequence[str],
        *,
        top_k: int = 1,
        answer_length: int | None = None,
        truncate: Truncate | None = None,
    ) -> Any:
        """The part of the context that answers: `answer, score, start, end`; "" where it holds no answer.

        Several questions may share one context. `answer_length` is the most tokens of an answer, else what the model
        was trained with, or 30.
        """
        tokenizer, limit, policy, settings = take_head(self, "span", "answer questions", Span, truncate)
        if answer_length is not None:
            settings = {**settings, "answer_length": answer_length}
        task = Span(tokenizer, limit, policy, settings, top_k=top_k)
        return answer_given(self, task, ask_spans(question, context), isinstance(question, str), "question")

    @checked()
    def predict(
        self, kind: type[TrainedTask[Any, Any]], examples: Sequence[Any], *, truncate: Truncate | None = None
    ) -> list[Any]:
        """The answers of any task that this model was fine-tuned for, a person's own too, to its examples."""
        return answer_kind(self, kind, examples, truncate)

    @checked()
    def embed(
        self,
        texts: str | Sequence[int] | Sequence[str | Sequence[int]],
        *,
        prompt: str | None = None,
        truncate: Truncate = "head",
        normalize: bool | None = None,
        dims: int | None = None,
    ) -> Vectors:
        """A float32 vector for a text, (width,), or for each of several, (n, width); `.truncated` says what was cut.

        Pooling and length follow a sentence-transformers folder, or the adapter that learnt vectors; a plain folder
        gives the mean of the last states.
        `prompt` is the name of one of the folder's prompts, or a text to put in front. `dims` keeps so many numbers of
        each vector, for a model that was trained to be cut there. A text may also be a list of its token ids, with
        special tokens around them or without.
        """
        return embed_texts(self, texts, prompt, truncate, normalize, dims)

    @checked()
    def similar(
        self, text: str | Sequence[str], others: str | Sequence[str], *, top_k: int | None = None,
        truncate: Truncate = "head",
    ) -> Any:  # fmt: skip
        """The other texts by how alike they are to a text: `index, text, score`, the cosine of their vectors."""
        return compare_texts(self, text, others, top_k, truncate)

    @checked()
    def rerank(
        self, query: str | Sequence[str], texts: Sequence[str] | Sequence[Sequence[str]], *, top_k: int | None = None,
        raw: bool = False, truncate: Truncate | None = None,
    ) -> Any:  # fmt: skip
        """Texts by how well they answer a query: `index, text, score`, best first; several queries have a list each.

        `raw`: scores are the head's numbers, whose sigmoid is the usual score.
        """
        task = Rerank(*take_head(self, "classify", "rerank texts", Rerank, truncate), top_k, raw)
        return answer_given(self, task, ask_ranks(query, texts), isinstance(query, str), "query")

    @checked()
    def hidden(
        self,
        texts: str | Sequence[str],
        *,
        layers: Sequence[int] | Literal["all"] | None = None,
        truncate: Truncate = "head",
    ) -> Any:
        """The last hidden state of each token, (tokens, width); with `layers`, (layers, tokens, width).

        Layer 0 is the embedding, -1 the last; "all" gives every one.
        """
        chosen = choose_layers(layers, self.checkpoint.config.depth + 1)
        return answer_texts(self, Hidden(self.tokenizer, self.limit, truncate, chosen), texts)

    def tokenize(self, text: str | Sequence[str], pair: str | Sequence[str] | None = None) -> Any:
        """The whole text in pieces, an `Encoding`: `.ids .pieces .offsets .words .segments`."""
        pairs, single = pair_up("tokenize", text, pair)
        if single:
            return self.tokenizer.encode(*pairs[0])
        seconds = None if pair is None else [second for _, second in pairs]
        return self.tokenizer.encode_many([first for first, _ in pairs], seconds)

    @checked("folder")
    def save(self, folder: str | Path) -> None:
        """Write a folder that this and other libraries open; nothing is there until everything is."""
        save_model(self, take_folder(folder))

    def info(self) -> dict[str, Any]:
        """What is in the folder."""
        return describe(self)

    def task_settings(self, kind: type[TrainedTask[Any, Any]]) -> dict[str, Any]:
        """What the fine-tuning of this folder left about the task, or what config.json tells of it."""
        return find_settings(self, kind)

    @checked()
    def need(self, head: str, what: str = "do that", task: str = "", pairs: bool | None = None) -> "Model":
        """This model or the adapter on it that has a head; an error where it is missing.

        `task` is what the head is trained for, where that is not called as the head; `pairs`: whether pairs are asked
        about, or single texts.
        """
        return find_home(self, head, what, task, pairs)

    @property
    def embedder(self) -> "Model":
        """Who makes the vectors of `embed`: the adapter that the folder declares for that, or this model itself."""
        return find_default_home(self, "embed")

    @property
    def vector_width(self) -> int:
        """How many numbers `embed` gives for a text."""
        pooling = self.embedder.sentence.pooling
        return pooling.shapes[-1].outputs if pooling.shapes else self.checkpoint.config.width * len(pooling.modes)


def _reopen(folder: Path, device: str, dtype: str, batch_tokens: int, adapters: dict[str, Path]) -> Model:
    from bertsmith.loading import load  # it imports this class

    return load(folder, device=device, dtype=dtype, batch_tokens=batch_tokens, adapters=adapters)
