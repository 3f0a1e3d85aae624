"""Byte-level byte-pair encoding from vocab.json and merges.txt (RoBERTa, GPT-2, ModernBERT, DeBERTa).

In: the two files and the settings beside them. Out: an engine that cuts any text, as every byte is a piece.
"""

from pathlib import Path

from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, pre_tokenizers

from bertsmith.errors import BertsmithError
from bertsmith.text.settings import Built, Settings, read_json, read_text


def bytelevel_engine(folder: Path, settings: Settings, tokens: dict[str, str]) -> Built:
    """Builds the engine; special tokens and the post-processor are the caller's part."""
    vocabulary = _read_vocabulary(folder / "vocab.json")
    merges = _read_merges(folder / "merges.txt", vocabulary)
    # Without a token for the unknown, bytes missing from the vocabulary would vanish without a trace.
    unknown = tokens.get("unk") if tokens.get("unk") in vocabulary else None
    engine = Engine(
        models.BPE(
            vocab=vocabulary, merges=merges, unk_token=unknown, continuing_subword_prefix="", end_of_word_suffix=""
        )
    )
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=settings.flag("add_prefix_space", False))
    engine.decoder = decoders.ByteLevel()
    return engine, []


def _read_vocabulary(path: Path) -> dict[str, int]:
    vocabulary = read_json(path)
    for piece, id in vocabulary.items():
        if not isinstance(id, int) or isinstance(id, bool) or id < 0:
            raise BertsmithError(f"{path}: the id of {piece!r} must be a whole number, not {id!r}.")
    if len(set(vocabulary.values())) != len(vocabulary):
        raise BertsmithError(f"{path} gives one id to several pieces; fetch or write the file again.")
    if not vocabulary:
        raise BertsmithError(f"{path} holds no pieces; fetch or write the file again.")
    return vocabulary


def _read_merges(path: Path, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    merges = []
    for number, line in enumerate(read_text(path).rstrip("\r\n").split("\n"), start=1):
        if number == 1 and line.startswith("#version"):
            continue
        parts = line.rstrip("\r").split(" ")
        if len(parts) != 2 or not all(parts):
            raise BertsmithError(f"{path}, line {number}: a merge is two pieces with a space between, not {line!r}.")
        for piece in (*parts, "".join(parts)):
            if piece not in vocabulary:
                raise BertsmithError(
                    f"{path}, line {number}: {piece!r} is not in vocab.json; the two files do not belong together."
                )
        merges.append((parts[0], parts[1]))
    return merges
