"""What still pictures are made of: an SVG that stands alone in light and dark, and numbers as coloured cells.

In: arrays. Out: markup. Many cells are one small PNG inside the SVG, because a rectangle each would weigh a hundred
times as much; its colours have a transparency in place of white, so that one image serves both backgrounds.
"""

import base64
import struct
import zlib
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from bertsmith.evaluation.report.axes import drawing, label, title
from bertsmith.evaluation.report.markup import spell_colours, tag

# Readable on white and on near-black: more than zero, less than zero.
MORE, LESS = (47, 129, 205), (222, 112, 34)
LINE = 17  # from one line of explanation to the next
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Helvetica Neue', Arial, sans-serif"


def stand_alone(inside: str, width: float, height: float, says: str) -> str:
    """A whole SVG file: the colours of `look.css`, a background, and a type for its texts."""
    look = (files("bertsmith.inspection") / "pictures" / "look.css").read_text(encoding="utf-8")
    style = _palette(look) + (
        f"svg {{ font: 13px {FONT}; background: var(--paper); }}\n"
        "text { fill: var(--ink); font-variant-numeric: tabular-nums; }\n"
        "text.quiet { fill: var(--quiet); } text.strong { font-weight: 600; } text.on { fill: var(--on); }\n"
        "text.title { font-size: 20px; font-weight: 650; }\n"
        "rect.paper { fill: var(--paper); } rect.card { fill: var(--card); stroke: var(--rule); }\n"
        "rect.track { fill: var(--track); } line.rule, path.rule { stroke: var(--rule); fill: none; }\n"
        "line.axis { stroke: var(--quiet); }\n"
        "image { image-rendering: pixelated; }\n"
        + "".join(f".fill.c{n} {{ fill: var(--c{n}); }} text.c{n} {{ fill: var(--c{n}); }}\n" for n in range(1, 7))
    )
    paper = tag("rect", "", {"width": "100%", "height": "100%", "class": "paper"})
    whole = drawing(tag("style", style) + paper + inside, width, height, says, "picture")
    whole = whole.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return spell_colours(whole, look)


def _palette(look: str) -> str:
    """The colours alone, the dark ones too: the blocks of the style sheet that set variables."""
    light = look[look.index(":root") : look.index("}", look.index(":root")) + 1]
    dark = look.index("@media screen and (prefers-color-scheme: dark)")
    end = look.index("}", look.index("}", dark) + 1) + 1
    return light + "\n" + look[dark:end] + "\n"


def png(values: NDArray[np.floating], limit: float | None = None) -> str:
    """Numbers (rows, columns) as a data URI: blue above zero and orange below, full colour at `limit`."""
    grid = np.atleast_2d(np.asarray(values, np.float64))
    limit = limit or float(np.abs(grid).max()) or 1.0
    levels = np.rint(np.clip(grid / limit, -1, 1) * 127).astype(np.int16) + 128  # 1 to 255; 128 is zero
    colours = np.array([(*(MORE if n >= 128 else LESS), min(255, abs(n - 128) * 2 + (n != 128))) for n in range(256)])
    # A palette is shorter than colours themselves from about as many cells as it has entries.
    has_palette = grid.size > 2 * len(colours)
    pixels = levels if has_palette else colours[levels].reshape(len(grid), -1)
    lines = np.zeros((len(grid), pixels.shape[1] + 1), np.uint8)  # each line begins with its filter, none
    lines[:, 1:] = pixels
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", grid.shape[1], len(grid), 8, 3 if has_palette else 6, 0, 0, 0)),
        *([(b"PLTE", _bytes(colours[:, :3])), (b"tRNS", _bytes(colours[:, 3]))] if has_palette else []),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    ]
    found = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    )
    return "data:image/png;base64," + base64.b64encode(found).decode()


def _bytes(values: NDArray[np.integer]) -> bytes:
    return values.astype(np.uint8).tobytes()


def cells(
    x: float, y: float, width: float, height: float, values: NDArray[np.floating], limit: float | None = None,
    hint: str = "", framed: bool = True,
) -> str:  # fmt: skip
    """Numbers (columns,) or (rows, columns) as cells in a frame."""
    place = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
    image = tag("image", title(hint), {**place, "preserveAspectRatio": "none", "href": png(values, limit)})
    return (tag("rect", "", {**place, "class": "card"}) if framed else "") + image


def heading(name: str, under: str | Sequence[str], x: float = 24, y: float = 36) -> str:
    """`under` is a line of explanation, or its lines."""
    lines = [under] if isinstance(under, str) else under
    return label(x, y, name, "start", "title") + write_lines(x, y + 22, lines)


def write_lines(x: float, y: float, lines: Sequence[str]) -> str:
    return "".join(label(x, y + number * LINE, line, "start", "quiet") for number, line in enumerate(lines))


def fold(vector: NDArray[np.floating], columns: int) -> NDArray[np.floating]:
    """A long vector in lines of `columns`, the last one filled with nothing."""
    room = -len(vector) % columns
    return np.concatenate([vector, np.zeros(room, vector.dtype)]).reshape(-1, columns)


def name_some(numbers: Sequence[float] | NDArray[np.floating], count: int = 4) -> str:
    """The first numbers of a vector."""
    shown = " ".join(f"{value:.3f}".replace("-", "−") for value in list(numbers)[:count])
    return shown + (" …" if len(numbers) > count else "")
