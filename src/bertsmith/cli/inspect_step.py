"""`bertsmith inspect step`: what one head of attention computes for one word, with every number."""

from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.inputs import decode, decode_option
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import Rows, write_note, write_table, write_text
from bertsmith.cli.pictures import PictureOut, check_out, show_picture

if TYPE_CHECKING:
    from bertsmith.inspection.step import Step
    from bertsmith.inspection.words import Array

FIRST = 8  # numbers of the input vector that are told; it has hundreds


def step(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to look at.")],
    pair: Annotated[str | None, typer.Argument(metavar="PAIR", help="A second text behind it.")] = None,
    *,
    word: Annotated[str, typer.Option(metavar="WORD|N", help="The word that asks, or its number from 0.")],
    layer: Annotated[int, typer.Option(metavar="N", help="The layer, counted from 0; -1 is the last.")] = 0,
    head: Annotated[int, typer.Option(metavar="N", help="The head, counted from 0; -1 is the last.")] = 0,
    piece: Annotated[int, typer.Option(metavar="N", help="Of a word in several pieces the one that asks, from 0.")] = 0,
    causal: Annotated[
        bool, typer.Option("--causal", help="Let a word see only itself and those before it, as GPT reads.")
    ] = False,
    out: PictureOut = None,
    options: ModelOptions,
) -> None:
    """Show one step of attention with every number: one word, one head.

    The word's query is multiplied with each word's key, scaled, turned into shares, and these weigh the values: all
    numbers are the model's own. FILE.html walks through it stage by stage, FILE.svg is a sheet to show.

    \b
    Examples:
      bertsmith inspect step "The fisherman sat on the river bank." --layer 0 --head 2 --word bank
      bertsmith inspect step "The fisherman sat on the river bank." --layer 0 --head 2 --word bank --out step.html
      bertsmith inspect step "The river bank was muddy." --word was --causal --out step.svg
    """
    check_out(out)
    text, pair, word = decode(text, "TEXT"), decode_option(pair, "PAIR"), decode(word, "--word")
    model = options.load()

    import bertsmith.inspect

    found = bertsmith.inspect.step(
        model, text, layer=layer, head=head, word=word, pair=pair, piece=piece, causal=causal
    )
    if out is not None:
        for note in found.notes:
            write_note(f"note: {note}")
    asked = {"input": text, **({} if pair is None else {"pair": pair})}
    show_picture(found, out, options.as_json, _write, lambda one: {**asked, **one.data()})


def _write(found: "Step") -> None:
    scores: Rows = [{"place": row["place"], **row} for row in found.rows()]
    if not found.masked.any():
        scores = [{key: value for key, value in row.items() if key != "masked"} for row in scores]
    write_table(found.title, scores)
    write_table("The vectors", _list_vectors(found))
    if found.left_out:
        write_text([(found.left_out, "dim")])
    for note in found.notes:
        write_text([(note, "dim")])


def _list_vectors(found: "Step") -> Rows:
    some = f"{_join(found.x[:FIRST])} … ({len(found.x)} numbers)"
    rows = [{"vector": "x", "of": found.name, "length": _length(found.x), "numbers": some}]
    query, keys = (found.query, found.keys)
    rows.append({"vector": "q", "of": found.name, "length": _length(query), "numbers": _join(query)})
    if found.turned_query is not None and found.turned_keys is not None:
        query, keys = found.turned_query, found.turned_keys
        rows.append({"vector": "q turned", "of": found.name, "length": _length(query), "numbers": _join(query)})
    name = "k" if found.turned_keys is None else "k turned"
    for sort, vectors in ((name, keys), ("v", found.values), ("weight × v", found.contributions)):
        for place in found.shown:
            vector = vectors[place]
            row = {"vector": sort, "of": found.pieces[place], "length": _length(vector), "numbers": _join(vector)}
            rows.append(row)
    rows.append({"vector": "sum", "of": found.name, "length": _length(found.result), "numbers": _join(found.result)})
    return rows


def _join(vector: "Array") -> str:
    return " ".join(f"{value:.4f}" for value in vector.tolist())


def _length(vector: "Array") -> float:
    return float((vector @ vector) ** 0.5)
