"""Makes small folders with random, sharp models: saved by the reference implementation, opened by it and by us."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers
from oracle import make_reference
from tokenizers import AddedToken, pre_tokenizers

import bertsmith

SENTENCES = [
    "Paris is the capital of France, and London is not.",
    "The quick brown fox jumps over the lazy dog!",
    "We were playing; he walked and she is walking (slowly).",
    "A naïve café in Berlin? It's small - but good.",
]
WORDS = (
    "the a of is are paris london berlin france capital city fox dog cat play walk quick lazy small good not it he we"
)
PUNCTUATION = ". , ! ? ; : ' ( ) - /"
SQUARE = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CLOSE = 1e-5


@dataclass
class Both:
    """One folder, opened here and by the reference."""

    ours: Any
    reference: Any
    tokenizer: Any

    @property
    def mask(self) -> str:
        return self.tokenizer.mask_token

    def log_chances(self, ids: list[int] | list[list[int]]) -> torch.Tensor:
        """The reference's log-probabilities for a row, (tokens, vocabulary), or for rows of one length."""
        rows = torch.tensor(ids)
        with torch.no_grad():
            return self.reference(torch.atleast_2d(rows)).logits.log_softmax(dim=-1).view(*rows.shape, -1)


def wordpiece_files(pieces: list[str]) -> dict[str, str]:
    return {"vocab.txt": "\n".join([*SQUARE, *pieces]) + "\n"}


def bert_pieces() -> list[str]:
    inner = [f"##{ending}" for ending in [*LETTERS, "ing", "ed", "ly"]]
    return list(dict.fromkeys([*PUNCTUATION.split(), *LETTERS, *inner, *WORDS.split()]))


def bytelevel_files() -> dict[str, str]:
    """Every byte is a piece and every word of SENTENCES has its merges, the same in each run."""
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = [word for sentence in SENTENCES for word, _ in splitter.pre_tokenize_str(sentence)]
    merges = dict.fromkeys((word[:cut], word[cut]) for word in [*words, "Paris"] for cut in range(1, len(word)))
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    pieces += [*dict.fromkeys(a + b for a, b in merges), "##", "<mask>"]
    lines = ["#version: 0.2", *(f"{a} {b}" for a, b in merges)]
    vocabulary = {piece: id for id, piece in enumerate(dict.fromkeys(pieces))}
    return {"vocab.json": json.dumps(vocabulary), "merges.txt": "\n".join(lines) + "\n"}


def sentencepiece_files() -> dict[str, bytes]:
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20), model_writer=out, vocab_size=110, hard_vocab_limit=False, minloglevel=2,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"], pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, pad_piece="<pad>",
    )  # fmt: skip
    return {"spiece.model": out.getvalue()}


def open_both(folder: Path, family: str, head: str, files: dict[str, Any], **settings: Any) -> Both:
    """Write the vocabulary, let the reference save tokenizer and model beside it, and open the folder twice."""
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    # As in the released folders: these masks swallow the space before them.
    mask = {"bert": "[MASK]", "roberta": AddedToken("<mask>", lstrip=True), "albert": AddedToken("[MASK]", lstrip=True)}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, mask_token=mask[family])
    tokenizer.save_pretrained(folder)
    reference = make_reference(family, head, vocab_size=len(tokenizer), **settings)
    reference.save_pretrained(folder)
    return Both(bertsmith.load(folder, device="cpu"), reference, tokenizer)
