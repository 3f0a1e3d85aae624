"""How a model knows where a word stands: the sinusoid map, a learned table's similarities, or rotary angles.

In: a model, or none. Out: `Positions`: one or two maps of numbers from -1 to 1.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.inspection.packing import pack
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.subject import Subject
from bertsmith.inspection.words import Array
from bertsmith.layers.config import Config

Kind = Literal["sinusoid", "learned", "rotary"]
PLACES, WIDTH = 128, 64  # of the sinusoid map, as lectures show it
STEPS = 128  # of a number of a large map in a saved page, between 0 and 1: as fine as colours are, half of the size
LARGE = 20_000  # numbers
MOST = 512  # places of a table that are compared


def positions(model: Subject | None = None, kind: Kind | None = None) -> "Positions":
    """A model's own way to tell positions, or the one that `kind` names; without a model, the sinusoids of 2017."""
    own = None if model is None else model.checkpoint.config.position
    chosen = kind or ("learned" if own == "none" else own) or "sinusoid"
    if chosen not in get_args(Kind):
        raise BertsmithError(f"kind is {chosen!r}; it must be one of {', '.join(get_args(Kind))}.")
    if chosen == "sinusoid":
        return _draw_sinusoids()
    if model is None:
        if chosen == "rotary":  # needs no weights: RoFormer's own base and a usual size
            return _compare_turns(((10_000.0, "angles"),), 64, "RoFormer")
        raise BertsmithError("kind is 'learned', and what was learned is in a model; give one.")
    config = model.checkpoint.config
    if own == "none":
        told = f"this model ({config.family}) has no positions: its layers compare words with distances"
        raise BertsmithError(f"{told}; inspect attention shows what they make of them.")
    if chosen != own:
        has = f"this model ({config.family}) has {own} positions"
        raise BertsmithError(f"kind is {chosen!r}, but {has}; leave kind out.")
    if own == "rotary":
        return _compare_turns(_bases(config), config.width // config.heads, config.family)
    return _compare_table(model)


def sinusoids(places: int, width: int) -> Array:
    """(places, width): sin in even columns, cos in odd ones (Attention Is All You Need, section 3.5)."""
    angles = np.arange(places)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)
    found = np.empty((places, width), np.float32)
    found[:, 0::2], found[:, 1::2] = np.sin(angles), np.cos(angles[:, : width // 2])
    return found


def _draw_sinusoids() -> "Positions":
    says = "each row is the vector of a position: fast waves on the left tell neighbours apart, slow ones far places"
    whole = sinusoids(PLACES, WIDTH)
    first = Map("sinusoids", "dimension", "position", whole)
    alike = Map("how alike two positions are (cosine)", "position", "position", _cosines(whole))
    return Positions("sinusoid", "Sinusoid positions", says, (first, alike), ())


def _compare_table(model: Subject) -> "Positions":
    config, table = model.checkpoint.config, model.checkpoint.network.embed.positions
    assert table is not None
    rows = table.weight.detach().float().cpu().numpy()[config.first_position :]
    step = -(-len(rows) // MOST)
    notes = [f"One position in {step} of {len(rows):,} is drawn."] if step > 1 else []
    if config.first_position:
        notes.append(f"The table's first {config.first_position} rows belong to no position in {config.family}.")
    found = Map("how alike two positions are (cosine)", "position", "position", _cosines(rows[::step]), step, step)
    says = f"each of {len(rows):,} positions has a learned vector of {rows.shape[1]:,} numbers"
    return Positions("learned", f"Learned positions of {config.family}", says, (found,), tuple(notes))


def _cosines(rows: Array) -> Array:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(lengths > 0, lengths, 1)
    found: Array = np.clip(unit @ unit.T, -1, 1)
    return found


def _bases(config: Config) -> tuple[tuple[float, str], ...]:
    if not config.window:
        return ((config.theta, "all layers"),)
    return ((config.theta, "global layers"), (config.local_theta, f"local layers, {config.window} to each side"))


def _compare_turns(bases: tuple[tuple[float, str], ...], size: int, family: str) -> "Positions":
    """For each pair of numbers and each distance the cosine of the angle between a query and a key turned apart."""
    maps = []
    for theta, name in bases:
        steps = 1.0 / theta ** (np.arange(0, size, 2) / size)  # the angle of one place, by pair
        angles = np.arange(PLACES)[:, None] * steps
        maps.append(Map(f"{name}, base {theta:,.0f}", "pair of numbers", "distance", np.cos(angles).astype(np.float32)))
    says = f"words this far apart are turned against each other by an angle in each of {size // 2} pairs: its cosine"
    return Positions("rotary", f"Rotary positions of {family}", says, tuple(maps), ())


@dataclass(frozen=True, eq=False)
class Map:
    name: str
    columns: str  # what the columns count, and the rows
    rows: str
    values: Array  # (rows, columns), from -1 to 1
    column_step: int = 1  # how many a column stands for
    row_step: int = 1


@dataclass(frozen=True, eq=False)
class Positions(Picture):
    kind: ClassVar[str] = "positions"

    way: Kind
    name: str
    says: str
    maps: tuple[Map, ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.name

    def data(self) -> dict[str, Any]:
        return {
            "title": self.title, "way": self.way, "says": self.says, "notes": list(self.notes),
            "maps": [
                {"name": one.name, "columns": one.columns, "rows": one.rows, "column_step": one.column_step,
                 "row_step": one.row_step, "shape": list(one.values.shape),
                 "values": pack(_coarsen(one.values)[None], encoding="float16")}
                for one in self.maps
            ],
        }  # fmt: skip

    def svg(self) -> str:
        from bertsmith.inspection.positions_drawing import draw_positions

        return draw_positions(self)


def _coarsen(values: Array) -> Array:
    return values if values.size < LARGE else np.round(values * STEPS) / np.float32(STEPS)
