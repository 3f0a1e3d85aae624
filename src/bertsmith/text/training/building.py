"""A trained vocabulary as a tokenizer and as files. In: vocabulary and recipe. Out: a `Tokenizer`; a folder.

The folder holds tokenizer.json with its companions, vocab.txt for all kinds, and for BPE vocab.json and merges.txt.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, processors
from tokenizers import Tokenizer as Engine

from bertsmith.errors import BertsmithError
from bertsmith.text.families import FAMILIES, post_processor
from bertsmith.text.templates import read_template
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.training.recipes import Recipe
from bertsmith.text.training.vocabulary import Vocabulary

FAMILY_OF = {"wordpiece": "bert", "bpe": "roberta", "unigram": "xlmroberta"}


def build_tokenizer(vocabulary: Vocabulary, recipe: Recipe, special: list[str]) -> Tokenizer:
    """The tokenizer, with the rows of BERT, RoBERTa or XLM-R; `special` are a person's own special tokens."""
    engine = Engine(build_model(vocabulary, recipe))
    if (normalizer := recipe.normalizer()) is not None:
        engine.normalizer = normalizer
    engine.pre_tokenizer = recipe.splitter()
    family, roles = FAMILIES[FAMILY_OF[recipe.kind]], recipe.specials
    for role, token in [*roles.items(), *(("", token) for token in special)]:
        takes_space = family.mask_takes_space and role == "mask"
        engine.add_special_tokens([AddedToken(token, special=True, normalized=False, lstrip=takes_space)])
    if recipe.kind == "wordpiece":
        engine.decoder = decoders.WordPiece(prefix="##")
    elif recipe.kind == "bpe":
        engine.decoder = decoders.ByteLevel()
    else:
        engine.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    if recipe.kind == "bpe":
        ids = engine.get_vocab()
        sep, cls = ((roles[role], ids[roles[role]]) for role in ("sep", "cls"))
        engine.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=False)
    else:
        engine.post_processor = post_processor(family, engine, family.tokens)
    return Tokenizer(engine, read_template(engine), dict(family.tokens))


def build_model(vocabulary: Vocabulary, recipe: Recipe) -> Any:
    """The part of the engine that cuts a word into pieces."""
    unknown = recipe.specials["unk"]
    ids = {piece: id for id, piece in enumerate(vocabulary.pieces)}
    if recipe.kind == "wordpiece":
        return models.WordPiece(
            ids, unk_token=unknown, max_input_chars_per_word=recipe.longest, continuing_subword_prefix="##"
        )
    if recipe.kind == "bpe":
        return models.BPE(vocab=ids, merges=vocabulary.merges)
    scored = list(zip(vocabulary.pieces, vocabulary.scores, strict=True))
    return models.Unigram(scored, unk_id=ids[unknown], byte_fallback=False)


def check_folder(folder: Path, overwrite: bool) -> None:
    """Before anything is counted: a place that must not be written to is named."""
    if folder.exists() and not folder.is_dir():
        raise BertsmithError(f"--out {folder} is a file; name a folder.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if (folder / "config.json").exists() or any(folder.glob("*.safetensors")):
        raise BertsmithError(f"--out {folder} holds a model, whose ids must stay what they are; name another folder.")
    if (folder.parent / "corpus.json").exists():
        raise BertsmithError(f"--out {folder} is the tokenizer of a corpus, whose ids it made; name another folder.")
    if not (folder / "tokenizer.json").is_file():
        raise BertsmithError(f"--out {folder} holds other files, but no tokenizer; name a new or empty folder.")
    if not overwrite:
        raise BertsmithError(f"--out {folder} holds a tokenizer already; --overwrite replaces it.")


def save_trained(
    tokenizer: Tokenizer, vocabulary: Vocabulary, recipe: Recipe, folder: Path, has_lists: bool = True
) -> None:
    """Writes all files beside the folder first, so that a full disk leaves what was there.

    Without `has_lists` the vocabulary is in tokenizer.json alone: a list has no way to leave ids out."""
    aside = folder.parent / f".{folder.name}.{os.getpid()}"
    try:
        aside.mkdir(parents=True)
        tokenizer.save(aside)
        if has_lists:
            _write_files(vocabulary, recipe, aside)
        folder.mkdir(parents=True, exist_ok=True)
        for old in ("vocab.txt", "vocab.json", "merges.txt"):  # of another kind they would no longer belong to the rest
            (folder / old).unlink(missing_ok=True)
        for path in sorted(aside.iterdir()):
            path.replace(folder / path.name)
    except (OSError, BertsmithError) as error:
        why = str(error).rstrip(".").rpartition(": ")[2] if isinstance(error, BertsmithError) else error.strerror
        raise BertsmithError(f"The tokenizer cannot be written to {folder}: {why or error}.") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_files(vocabulary: Vocabulary, recipe: Recipe, folder: Path) -> None:
    pieces = vocabulary.pieces
    (folder / "vocab.txt").write_bytes("".join(f"{piece}\n" for piece in pieces).encode())
    if recipe.kind == "bpe":
        ids = json.dumps({piece: id for id, piece in enumerate(pieces)}, ensure_ascii=False)
        (folder / "vocab.json").write_bytes(f"{ids}\n".encode())
        merges = "".join(f"{left} {right}\n" for left, right in vocabulary.merges)
        (folder / "merges.txt").write_bytes(f"#version: 0.2\n{merges}".encode())
    if recipe.kind == "wordpiece":
        # For those who read vocab.txt alone.
        path = folder / "tokenizer_config.json"
        own = {"do_lower_case": not recipe.cased, "max_input_chars_per_word": recipe.longest}
        config = {**json.loads(path.read_text("utf-8")), **own}
        path.write_bytes((json.dumps(config, ensure_ascii=False, indent=2) + "\n").encode())
