"""`bertsmith inspect positions`: how a model knows where a word stands."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import write_table, write_text
from bertsmith.cli.pictures import PictureOut, check_out, show_picture

if TYPE_CHECKING:
    from bertsmith.inspection.positions import Positions

PLACES = (0, 1, 2, 4, 8, 16, 32, 64, 127)  # rows of a map that a terminal shows
COLUMNS = 8


def positions(
    kind: Annotated[
        Literal["sinusoid", "learned", "rotary"] | None,
        typer.Option(help="Which way to tell positions; else the model's own. sinusoid and rotary need no model."),
    ] = None,
    *,
    out: PictureOut = None,
    options: ModelOptions,
) -> None:
    """Show how positions are told: the sinusoid map, how alike learned positions are, or rotary angles.

    \b
    Examples:
      bertsmith inspect positions
      bertsmith inspect positions --kind sinusoid --out sinusoids.svg
      bertsmith inspect positions --out learned.html
    """
    check_out(out)
    # What needs no weights waits for none.
    needless = kind == "sinusoid" or (kind == "rotary" and options.model is None)
    model = None if needless else options.load()

    import bertsmith.inspect

    found = bertsmith.inspect.positions(model, kind)
    show_picture(found, out, options.as_json, _write, _record)


def _record(found: "Positions") -> dict[str, Any]:
    maps = [
        {"name": one.name, "rows": one.rows, "columns": one.columns, "row_step": one.row_step,
         "column_step": one.column_step, "values": [[round(v, 6) for v in row] for row in one.values.tolist()]}
        for one in found.maps
    ]  # fmt: skip
    return {"title": found.title, "kind": found.way, "notes": list(found.notes), "maps": maps}


def _write(found: "Positions") -> None:
    for one in found.maps:
        count, width = one.values.shape
        columns = sorted({round(i * (width - 1) / (COLUMNS - 1)) for i in range(COLUMNS)})
        rows = [
            {one.rows: place * one.row_step,
             **{str(column * one.column_step): f"{one.values[place, column]:.3f}" for column in columns}}
            for place in PLACES if place < count
        ]  # fmt: skip
        write_table(f"{found.title}: {one.name}; columns: {one.columns}", rows, list(rows[0]), narrow=True)
    write_text([(found.says, "dim")])
    for note in found.notes:
        write_text([(note, "dim")])
