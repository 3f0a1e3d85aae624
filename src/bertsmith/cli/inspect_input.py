"""`bertsmith inspect input`: what an encoder is given of a text."""

from typing import Annotated, Any

import typer

from bertsmith.cli.inputs import decode, decode_option
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import wants_json, write_json, write_note, write_table, write_text
from bertsmith.cli.pictures import PictureOut, check_out, save_picture
from bertsmith.data.findings import counted


def input(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to look at.")],
    pair: Annotated[str | None, typer.Argument(metavar="PAIR", help="A second text behind it.")] = None,
    *,
    pad_to: Annotated[
        int | None, typer.Option(metavar="N", help="Show the row padded to so many pieces, as in a batch.")
    ] = None,
    out: PictureOut = None,
    options: ModelOptions,
) -> None:
    """Show what the encoder is given: pieces, ids, and the token, segment and position vectors that are added up.

    \b
    Examples:
      bertsmith inspect input "My dog is cute." "He likes playing."
      bertsmith inspect input "My dog is cute." "He likes playing." --pad-to 14 --out input.svg
    """
    check_out(out)
    text, pair = decode(text, "TEXT"), decode_option(pair, "PAIR")
    as_json = out is None and wants_json(options.as_json)
    model = options.load()

    import bertsmith.inspect

    found = bertsmith.inspect.input(model, text, pair, pad_to=pad_to)
    if found.reading.truncated:
        write_note(f"cut: {counted(found.reading.truncated, 'token')} did not fit and stayed out of the picture")
    if out is not None:
        save_picture(found, out, options.as_json)
    elif as_json:
        shared = {"input": text, **({} if pair is None else {"pair": pair})}
        write_json({**shared, "pieces": found.rows(), "notes": list(found.notes), "truncated": found.reading.truncated})
    else:
        rows = [{name: _show(value) for name, value in row.items()} for row in found.rows()]
        numbers = [name for name in rows[0] if name not in ("piece", "seen")]
        write_table("What the encoder is given; |…| are the lengths of the vectors", rows, numbers, narrow=True)
        for note in found.notes:
            write_text([(note, "dim")])


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
