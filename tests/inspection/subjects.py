"""Made models of every family with one small vocabulary: what looking inside needs of a model, and the reference."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import transformers
from oracle import SIZES, load_saved, make_reference
from tasks.made import LETTERS, SQUARE

from bertsmith.models.checkpoint import Checkpoint
from bertsmith.tasks.predicting import Predictor
from bertsmith.text.tokenizer import Tokenizer

WORDS = "the a river bank was on it fish sat mud sea sun his play walk ##ing ##ed ##bank . , ! ? - ' 1 2"
VOCABULARY = [*SQUARE, *LETTERS[1:], *(f"##{letter}" for letter in LETTERS), *WORDS.split()]
TEXT, PAIR = "The fishing was on the river bank, walked.", "His river sat playing!"


@dataclass
class Subject:
    checkpoint: Checkpoint
    tokenizer: Tokenizer
    reference: Any
    folder: Path

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def limit(self) -> int:
        return self.checkpoint.config.limit

    @cached_property
    def predictor(self) -> Predictor:
        return Predictor(self.checkpoint.network, self.device, 1024)

    def ask(self, ids: list[int], segments: list[int]) -> Any:
        """The reference's attention and hidden states over one row."""
        given = {"input_ids": torch.tensor([ids])}
        if getattr(self.reference.config, "type_vocab_size", 0):
            given["token_type_ids"] = torch.tensor([segments])
        with torch.no_grad():
            return self.reference(**given, output_attentions=True, output_hidden_states=True)


def make_model(family: str, **settings: Any) -> Any:
    if family == "roberta":  # the vocabulary is BERT's, which tells two segments
        settings = {"type_vocab_size": 2, **settings}
    return make_reference(family, "", attn_implementation="eager", **settings)


def make_subject(folder: Path, family: str, packed: bool = False, **settings: Any) -> Subject:
    """`settings` go to the reference's config."""
    assert len(VOCABULARY) <= SIZES["vocab_size"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    tokenizer = Tokenizer.from_folder(folder)
    reference = make_model(family, **settings)
    checkpoint = load_saved(reference, folder)
    if packed:
        checkpoint.network.pack()
    return Subject(checkpoint, tokenizer, reference, folder)
