"""The tokenizer: text, or a pair of texts, to rows of ids and back.

In: an engine of the `tokenizers` library, the names of its special tokens. Out: `Encoding` rows. The engine is never
changed after it was built, so that threads may share it: cutting and special tokens are list work on this side.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as Engine

from bertsmith.errors import BertsmithError
from bertsmith.text.encoding import Encoding, Source
from bertsmith.text.templates import Template
from bertsmith.text.truncation import keep, slide

_DROPPED = re.compile("[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]+")  # by the map that SentencePiece makes by itself
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokenizer:
    """Text to ids and back, with the special tokens, cuts and windows a model needs."""

    def __init__(self, engine: Engine, template: Template, specials: dict[str, str], limit: int | None = None) -> None:
        """`specials` names tokens by role (cls, sep, pad, mask, unk, bos, eos); `limit` is the longest row if known.

        The engine is taken over: its post-processor is kept for saving only. The template has its place already, and
        what it does to offsets is wrong where it takes a space for granted that is not in the text.
        """
        self._engine = engine
        self._post_processor = engine.post_processor
        engine.post_processor = None
        self.template = template
        self.specials = dict(specials)
        self.limit = limit
        self.mask_token, self.mask_id = self._special("mask")
        self.cls_token, self.cls_id = self._special("cls")
        self.sep_token, self.sep_id = self._special("sep")
        self.pad_token, self.pad_id = self._special("pad")
        self.unk_token, self.unk_id = self._special("unk")

    @classmethod
    def from_folder(cls, folder: str | Path) -> "Tokenizer":
        """Loads whichever tokenizer files the folder holds."""
        from bertsmith.text.loading import load_tokenizer  # it imports this class

        return load_tokenizer(folder)

    def encode(
        self, text: str, pair: str | None = None, *, length: int | None = None, truncate: str = "head",
        specials: bool = True,
    ) -> Encoding:  # fmt: skip
        """One row of at most `length` ids; `truncate` is one of "error", "head", "tail", "head+tail"."""
        texts = [_clean(text)] if pair is None else [_clean(text), _clean(pair)]
        return self._row(texts, self._read(texts), length, truncate, specials)

    def encode_many(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, length: int | None = None,
        truncate: str = "head", specials: bool = True,
    ) -> list[Encoding]:  # fmt: skip
        """One row for each text (with its pair), the same as `encode` gives one by one, all in one parallel call."""
        if pairs is not None and len(pairs) != len(texts):
            raise BertsmithError(f"encode_many got {len(texts)} texts but {len(pairs)} pairs; give one pair a text.")
        if isinstance(texts, str) or isinstance(pairs, str):
            raise BertsmithError("encode_many takes lists of texts, not one text; use encode for one text.")
        inputs = [_clean(text) for text in [*texts, *(pairs or ())]]
        sources = self._read(inputs)
        # Row n is made of input n and, with pairs, of input n + len(texts).
        rows = (slice(number, None, max(len(texts), 1)) for number in range(len(texts)))
        return [self._row(inputs[row], sources[row], length, truncate, specials) for row in rows]

    def windows(self, text: str, pair: str | None = None, *, length: int, overlap: int) -> list[Encoding]:
        """Rows that together hold all of the last sequence, neighbours sharing `overlap` of its pieces.

        With a pair the first text (a question) stands whole in each row and the windows slide over the pair.
        """
        texts = [_clean(text)] if pair is None else [_clean(text), _clean(pair)]
        sources = self._read(texts)
        slots = self.template.slots(len(texts) == 2, specials=True)
        taken = self.template.specials(len(texts) == 2) + sum(len(source) for source in sources[:-1])
        if length <= taken:
            raise BertsmithError(
                f"length={length} leaves no room to slide over: special tokens and the first text take {taken} ids; "
                f"make the length larger or the first text shorter."
            )
        whole = [[(0, len(source))] for source in sources[:-1]]
        spans = slide(len(sources[-1]), length - taken, overlap)
        return [Encoding(texts, sources, slots, [*whole, [span]], self.piece) for span in spans]

    def decode(self, ids: Sequence[int], skip_specials: bool = True) -> str:
        """The text of ids, special tokens left out unless asked for."""
        return self._engine.decode([int(id) for id in ids], skip_special_tokens=skip_specials)

    def save(self, folder: str | Path) -> None:
        """Writes tokenizer.json and its two companions, which `tokenizers` and `transformers` read to the same ids."""
        from bertsmith.text.saving import save_tokenizer

        engine = Engine.from_str(self._engine.to_str())
        if self._post_processor is not None:
            engine.post_processor = self._post_processor
        save_tokenizer(self, engine, Path(folder))

    @property
    def form(self) -> str:
        """How words become pieces: WordPiece, BPE or Unigram."""
        return type(self._engine.model).__name__

    @cached_property
    def size(self) -> int:
        """How many rows an embedding needs: the largest id plus one."""
        return max(self._engine.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids of all special tokens, which are never masked, scored or shown."""
        added = self._engine.get_added_tokens_decoder()
        named = (self.id(token) for token in self.specials.values())
        return frozenset(id for id, token in added.items() if token.special) | {id for id in named if id is not None}

    def piece(self, id: int) -> str:
        """The vocabulary's spelling of an id."""
        piece = self._engine.id_to_token(int(id)) if id >= 0 else None
        if piece is None:
            raise BertsmithError(f"id {id} is not in this tokenizer's vocabulary of {self.size} ids.")
        return piece

    def id(self, piece: str) -> int | None:
        """The id of a piece spelled as in the vocabulary; None when it is not there."""
        return self._engine.token_to_id(piece)

    def _special(self, role: str) -> tuple[str | None, int | None]:
        token = self.specials.get(role)
        return token, None if token is None else self._engine.token_to_id(token)

    def _read(self, texts: Sequence[str]) -> list[Source]:
        """What the engine makes of each text, all in one parallel call if they are many."""
        if len(texts) > 2:
            read = self._engine.encode_batch(texts, add_special_tokens=False)
        else:
            read = [self._engine.encode(text, add_special_tokens=False) for text in texts]
        sources = [Source(one) for one in read]
        for number, text in enumerate(texts):
            if (found := _DROPPED.match(text)) and self._loses_lead:
                one = self._engine.encode(text[found.end() :], add_special_tokens=False)
                if one.ids == read[number].ids:  # a space behind them may be another piece at the start
                    sources[number] = Source(one, found.end())
        return sources

    @cached_property
    def _loses_lead(self) -> bool:
        """Whether control characters that begin a text move all offsets: so does SentencePiece's map in the engine.

        It drops them, and where one is the first character it counts from the wrong place.
        """
        one, other = (self._engine.encode(text, add_special_tokens=False) for text in ("\x07a", "a"))
        return one.ids == other.ids and bool(one.ids) and one.offsets[-1] != (1, 2)

    def _row(
        self, texts: list[str], sources: list[Source], length: int | None, truncate: str, specials: bool
    ) -> Encoding:
        paired = len(sources) == 2
        counts = [len(source) for source in sources]
        taken = self.template.specials(paired) if specials else 0
        room = None if length is None else length - taken
        if room is not None and room < 0:
            raise BertsmithError(f"length={length} is too short: the special tokens of a row alone take {taken} ids.")
        if truncate == "error" and room is not None and sum(counts) > room:
            raise BertsmithError(
                f"The input has {sum(counts) + taken} ids but at most length={length} fit; choose "
                f'truncate="head", "tail" or "head+tail", or windows, or a shorter input.'
            )
        row = Encoding(texts, sources, self.template.slots(paired, specials), keep(counts, room, truncate), self.piece)
        row.dropped = sum(counts) + taken - len(row)
        return row


def _clean(text: str) -> str:
    # Half of a UTF-16 pair has no UTF-8 form; U+FFFD has the same length, so offsets still hold.
    if not isinstance(text, str):
        raise BertsmithError(f"A text must be a string, not {type(text).__name__}.")
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)
