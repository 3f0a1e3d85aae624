"""Reads a SentencePiece model file, which is a protocol buffer, with the few rules that takes.

In: the bytes of a .model file. Out: its pieces with scores and kinds, and the settings that encoding needs. Field
numbers are those of sentencepiece_model.proto in the SentencePiece repository.
"""

import struct
from dataclasses import dataclass, field
from pathlib import Path

from bertsmith.errors import BertsmithError
from bertsmith.text.protobuf import as_bytes, as_int, read_fields
from bertsmith.text.settings import read_bytes

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
UNIGRAM, PAIRS = 1, 2


@dataclass
class SentencePieceModel:
    """What a model file says; the defaults are those of the format."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)  # text, score, kind
    algorithm: int = UNIGRAM
    unknown_id: int = 0
    unknown_piece: str = "<unk>"
    byte_fallback: bool = False
    space_as_suffix: bool = False
    character_map: bytes = b""
    leading_space: bool = True
    join_spaces: bool = True


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Reads the file and checks that it is whole."""
    content = read_bytes(path)
    try:
        model = _read_model(content)
    except (IndexError, ValueError, TypeError, struct.error) as error:
        raise BertsmithError(f"{path} is not a whole SentencePiece model ({error}); fetch the file again.") from None
    if not model.pieces:
        raise BertsmithError(f"{path} holds no SentencePiece pieces; fetch the file again.")
    if not 0 <= model.unknown_id < len(model.pieces):
        raise BertsmithError(f"{path}: the unknown piece has id {model.unknown_id}, which is not in the file.")
    if model.algorithm not in (UNIGRAM, PAIRS) or model.space_as_suffix:
        kind = "puts spaces behind words" if model.space_as_suffix else "is neither of unigram nor of byte-pair kind"
        raise BertsmithError(f"{path} {kind}, which is not supported; train the model anew without that.")
    return model


def _read_model(content: bytes) -> SentencePieceModel:
    model = SentencePieceModel()
    for number, value in read_fields(content):
        if number == 1:
            model.pieces.append(_read_piece(as_bytes(value)))
        elif number == 2:
            _read_trainer(as_bytes(value), model)
        elif number == 3:
            _read_normalizer(as_bytes(value), model)
    return model


def _read_piece(content: bytes) -> tuple[str, float, int]:
    text, score, kind = "", 0.0, NORMAL
    for number, value in read_fields(content):
        if number == 1:
            text = as_bytes(value).decode("utf-8")
        elif number == 2:
            (score,) = struct.unpack("<f", as_bytes(value))
        elif number == 3:
            kind = as_int(value)
    return text, score, kind


def _read_trainer(content: bytes, model: SentencePieceModel) -> None:
    for number, value in read_fields(content):
        if number == 3:
            model.algorithm = as_int(value)
        elif number == 24:
            model.space_as_suffix = bool(value)
        elif number == 35:
            model.byte_fallback = bool(value)
        elif number == 40:
            model.unknown_id = as_int(value)
        elif number == 45:
            model.unknown_piece = as_bytes(value).decode("utf-8")


def _read_normalizer(content: bytes, model: SentencePieceModel) -> None:
    for number, value in read_fields(content):
        if number == 2:
            model.character_map = as_bytes(value)
        elif number == 3:
            model.leading_space = bool(value)
        elif number == 4:
            model.join_spaces = bool(value)
