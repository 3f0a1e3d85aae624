"""What an encoder is given: pieces, ids, segments, positions, and the vectors that are added up for each.

In: a model and a text or a pair. Out: `Input`: the token, segment and position vectors of every piece, their sum, the
same normed (and widened, where a family's tables are narrow), with padding as a padded batch has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from bertsmith.data.batch import Batch
from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError
from bertsmith.inspection.packing import pack
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.subject import Subject
from bertsmith.inspection.watching import Reading, read
from bertsmith.inspection.words import Array
from bertsmith.layers.config import Config

SHADED = 0.98  # of the numbers have a shade; the largest have full colour


def input(model: Subject, text: str | Sequence[int], pair: str | None = None, *, pad_to: int | None = None) -> "Input":
    """What the encoder is given of a text, a pair or token ids; `pad_to` shows the row padded to that many pieces."""
    reading = read(model, text, pair)
    padding = _count_padding(model, len(reading), pad_to)
    config, embed = model.checkpoint.config, model.checkpoint.network.embed
    pad = model.tokenizer.pad_id or 0
    ids = [*reading.ids, *[pad] * padding]
    segments = [*reading.segments, *[0] * padding]
    # RoBERTa gives padding the one position that stands before its first; others go on counting.
    behind = [-1] * padding if config.first_position else range(len(reading), len(ids))
    positions = [*range(len(reading)), *behind]
    batch = Batch.of([ids], [segments], model.device)
    batch.positions = torch.tensor(positions, device=model.device)
    with torch.inference_mode():
        tables = embed.look_up(batch)
        normed = embed.norm(sum(tables[1:], tables[0]))
        given = normed if embed.project is None else embed.project(normed)
    tokens, *others = (table.float().cpu().numpy() for table in tables)
    kinds = others.pop(0) if embed.segments is not None else None
    places = others.pop(0) if embed.positions is not None else None
    pieces = [*reading.pieces, *[model.tokenizer.pad_token or "[PAD]"] * padding]
    summed = tokens + sum(table for table in (kinds, places) if table is not None)
    return Input(
        reading, padding, pieces, ids, segments, [config.first_position + place for place in positions], tokens, kinds,
        places, summed, normed.float().cpu().numpy(), None if embed.project is None else given.float().cpu().numpy(),
        tuple(_tell(config, reading, padding)), config.position,
    )  # fmt: skip


def _count_padding(model: Subject, count: int, pad_to: Any) -> int:
    if pad_to is None:
        return 0
    if isinstance(pad_to, bool) or not isinstance(pad_to, int | np.integer):
        raise BertsmithError(f"pad_to is {pad_to!r}; it must be a whole number of pieces.")
    most = model.checkpoint.config.limit
    if not count <= pad_to <= most:
        raise BertsmithError(
            f"pad_to is {pad_to:,}, but the row has {count:,} pieces and the model reads {most:,}; it must be between."
        )
    return int(pad_to) - count


def _tell(config: Config, reading: Reading, padding: int) -> list[str]:
    """What this family does otherwise than the first BERT, and what was done here."""
    notes = []
    if not config.segments:
        notes.append(f"{config.family} knows no segments: two texts are told apart by the separator alone.")
    elif config.segments == 1:
        notes.append(f"{config.family} has one segment for all pieces, so its vector is the same everywhere.")
    if config.position == "rotary":
        notes.append(f"{config.family} adds no position here: each layer turns queries and keys by it (rotary).")
    if config.position == "none":
        notes.append(f"{config.family} adds no position here: each layer compares words with distances.")
    elif config.relative:
        notes.append(f"In each layer of {config.family} the distance of two tokens adds to how one sees the other.")
    if config.first_position:
        notes.append(f"{config.family} counts positions from {config.first_position}, behind the id of its padding.")
    if config.embed_width != config.width:
        wide = f"{config.embed_width:,} numbers wide; a matrix widens the normed sum to {config.width:,}"
        notes.append(f"The tables are {wide}.")
    if padding:
        notes.append("Padding fills a row of a batch; no word looks at it. bertsmith itself pads nothing.")
    if reading.truncated:
        notes.append(f"The text was cut: {counted(reading.truncated, 'token')} did not fit and stayed out.")
    return notes


@dataclass(frozen=True, eq=False)
class Input(Picture):
    kind: ClassVar[str] = "input"

    reading: Reading
    padding: int  # how many of the pieces, at the end, are padding
    pieces: list[str]
    ids: list[int]
    segments: list[int]
    positions: list[int]  # rows of the position table, or places in the row where there is none
    token_vectors: Array  # (pieces, table width), as the next three
    segment_vectors: Array | None  # None: the family knows no segments
    position_vectors: Array | None  # None: positions are not added
    summed: Array
    normed: Array
    widened: Array | None  # (pieces, width), where the tables are narrower than the encoder
    notes: tuple[str, ...]
    way: str  # that positions are told: "learned", "rotary", or "none" but by the distances that layers compare

    @property
    def title(self) -> str:  # type: ignore[override]
        text = " ".join(" / ".join(self.reading.sources).split())
        return f"What the encoder is given: {text[:80]}{'…' * (len(text) > 80)}"

    @property
    def vectors(self) -> Array:
        """(pieces, width): what the first layer reads."""
        return self.normed if self.widened is None else self.widened

    @property
    def layers(self) -> list[tuple[str, str, Array | None]]:
        """What is drawn, from top to bottom: (name, what it is, vectors or None where the family has none)."""
        found = [
            ("token", "what the piece is", self.token_vectors),
            ("segment", "which text it is of", self.segment_vectors),
            ("position", "where it stands", self.position_vectors),
            ("sum, normed", "what is added up", self.normed),
        ]
        return found if self.widened is None else [*found, ("widened", "to full width", self.widened)]

    def limit(self, vectors: Array) -> float:
        """The number that has full colour: a few are many times as large as the others, which would all look pale."""
        return float(np.quantile(np.abs(vectors), SHADED)) or 1.0

    def rows(self) -> list[dict[str, Any]]:
        """A row a piece, for tables: the lengths of its vectors."""
        count = len(self.pieces) - self.padding
        return [
            {
                "piece": self.pieces[place], "id": self.ids[place], "segment": self.segments[place],
                "position": self.positions[place], "seen": place < count,
                **{f"|{name}|": float(np.linalg.norm(vectors[place])) for name, _, vectors in self.layers
                   if vectors is not None},
            }
            for place in range(len(self.pieces))
        ]  # fmt: skip

    def data(self) -> dict[str, Any]:
        return {
            "title": self.title, "pieces": self.pieces, "ids": self.ids, "segments": self.segments,
            "positions": self.positions, "words": [*self.reading.words.of, *[None] * self.padding],
            "special": [*self.reading.special, *[True] * self.padding], "padding": self.padding,
            "layers": [
                {"name": name, "says": says,
                 "vectors": None if vectors is None else pack(vectors[None], encoding="float16"),
                 "limit": None if vectors is None else self.limit(vectors)}
                for name, says, vectors in self.layers
            ],
            "notes": list(self.notes), "truncated": self.reading.truncated,
        }  # fmt: skip

    def svg(self) -> str:
        from bertsmith.inspection.inputs_drawing import draw_input

        return draw_input(self)
