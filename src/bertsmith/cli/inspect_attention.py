"""`bertsmith inspect attention`: what each word looks at, in every layer and head."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.inputs import decode, decode_option
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import Rows, wants_json, write_json, write_note, write_table, write_text
from bertsmith.cli.pictures import PictureOut, check_out, save_picture
from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.inspection.attention import Attention
    from bertsmith.inspection.attention_svg import AttentionAt

WIDE = 12  # tokens that a matrix on a terminal has room for
STRONGEST = 4
LEAST = 0.005  # of the shares of one word, to be told


def attention(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to look at.")],
    pair: Annotated[str | None, typer.Argument(metavar="PAIR", help="A second text behind it.")] = None,
    *,
    out: PictureOut = None,
    layer: Annotated[
        int | None, typer.Option(metavar="N", help="Show this layer, counted from 0; -1 is the last.")
    ] = None,
    head: Annotated[int | None, typer.Option(metavar="N", help="With --layer: show this head.")] = None,
    word: Annotated[
        str | None, typer.Option(metavar="WORD|N", help="With --layer: what this word looks at, or its number from 0.")
    ] = None,
    causal: Annotated[
        bool, typer.Option("--causal", help="Let a word see only itself and those before it, as GPT reads.")
    ] = False,
    neurons: Annotated[
        bool, typer.Option("--neurons", help="Keep queries and keys in the file, for the view that multiplies them.")
    ] = False,
    options: ModelOptions,
) -> None:
    """Show what each word looks at, in every layer and head.

    With --out FILE.html it is one page to look at, which opens from disk and needs no network: lines, all heads, one
    word through all heads, a matrix. FILE.svg stands still: all heads, or lines of the --layer and --head. FILE.json
    has the numbers. Without --out it tells what the heads do.

    \b
    Examples:
      bertsmith inspect attention "The river bank was muddy." --out attention.html
      bertsmith inspect attention "The river bank was muddy." "The bank raised its rates." --out pair.html --neurons
      bertsmith inspect attention "The river bank was muddy." --layer 0 --head 4
      bertsmith inspect attention "The dog ran because it was late." --layer -1 --word it --out it.svg
    """
    if layer is None and (head is not None or word is not None):
        raise BertsmithError(f"{'--head' if word is None else '--word'} needs a --layer to look at.")
    if neurons and out is None:
        raise BertsmithError("--neurons keeps more in a file; name it with --out FILE.html.")
    check_out(out)
    text, pair = decode(text, "TEXT"), decode_option(pair, "PAIR")
    as_json = out is None and wants_json(options.as_json)
    model = options.load()

    import bertsmith.inspect

    found = bertsmith.inspect.attention(model, text, pair, causal=causal, neurons=neurons)
    part = None if layer is None else found.at(layer, head, None if word is None else decode(word, "--word"))
    if found.truncated:
        write_note(f"cut: {counted(found.truncated, 'token')} did not fit and stayed out of the picture")
    if out is not None:
        save_picture(part or found, out, options.as_json)
    elif as_json:
        write_json({"input": text, **({} if pair is None else {"pair": pair}), **_record(found, part)})
    elif part is None:
        _write_habits(found)
    else:
        _write_part(part)


def _record(found: "Attention", part: "AttentionAt | None") -> dict[str, Any]:
    shared: dict[str, Any] = {"tokens": list(found.pieces), "truncated": found.truncated}
    if part is None:
        return {**shared, "heads": found.heads()}
    chosen = {"layer": part.layer} if part.head is None else {"layer": part.layer, "head": part.head}
    shares = part.looks_at()
    if shares is not None:
        return {**shared, **chosen, "asking": list(part.asking or ()), "weights": [round(float(w), 6) for w in shares]}
    return {**shared, **chosen, "weights": [[round(float(w), 6) for w in row] for row in part.weights]}


def _write_habits(found: "Attention") -> None:
    """A line a layer, a column a habit: the numbers of the heads that have it."""
    rows = found.heads()
    names = list(dict.fromkeys([*_order(found), *(row["habit"] for row in rows)]))
    kept = [name for name in names if any(row["habit"] == name for row in rows)]
    table: Rows = [
        {
            "layer": layer,
            **{
                name: " ".join(str(row["head"]) for row in rows if row["layer"] == layer and row["habit"] == name)
                for name in kept
            },
            "bits": f"{found.entropy[layer].mean():.1f}",
            "away": f"{found.distance[layer].mean():.1f}",
        }
        for layer in range(found.layers)
    ]
    write_table(f"What the heads of each layer look at most: {found.title.partition(': ')[2]}", table, ("bits", "away"))
    write_text([("bits: entropy; away: places to what is looked at; ", "dim"),
                ("--layer N [--head N]", "bold"), (" shows one, ", "dim"),
                ("--out FILE.html", "bold"), (" makes the page", "dim")])  # fmt: skip


def _order(found: "Attention") -> list[str]:
    return [*found.habits.shares, "broad", "mixed"]


def _write_part(part: "AttentionAt") -> None:
    pieces, weights, shares = part.attention.pieces, part.weights, part.looks_at()
    if shares is not None:
        write_table(part.describe(), [{"looks at": pieces[at], "%": f"{100 * shares[at]:.1f}"}
                                      for at in (-shares).argsort() if shares[at] >= LEAST], ("%",))  # fmt: skip
        return
    if len(pieces) <= WIDE:
        numbered = [f"{place} {piece}" for place, piece in enumerate(pieces)]  # a piece may occur twice
        rows: Rows = [
            {"": piece, **{name: f"{100 * weight:.0f}" for name, weight in zip(numbered, row, strict=True)}}
            for piece, row in zip(numbered, weights, strict=True)
        ]
        write_table(f"{part.describe()}; in percent", rows, numbered, narrow=True)
        return
    rows = [
        {
            "token": piece,
            "looks at": ", ".join(f"{pieces[at]} {100 * row[at]:.0f} %" for at in (-row).argsort()[:STRONGEST]),
        }
        for piece, row in zip(pieces, weights, strict=True)
    ]
    write_table(part.describe(), rows)
