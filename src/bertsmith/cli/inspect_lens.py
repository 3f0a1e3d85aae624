"""`bertsmith inspect lens`: what the masked-token head would say after each layer, or in variants of a sentence."""

from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.inputs import decode
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import Rows, write_table, write_text
from bertsmith.cli.pictures import PictureOut, check_out, show_picture

if TYPE_CHECKING:
    from bertsmith.inspection.lens import Lens
    from bertsmith.inspection.masks import Masks

WIDE = 10  # pieces that a table on a terminal has room for


def lens(
    texts: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="A text; or variants of a sentence with one mask each.")
    ],
    *,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="How many of the likeliest pieces.")] = 5,
    out: PictureOut = None,
    options: ModelOptions,
) -> None:
    """Show what a model would answer after each of its layers, at each place of a text.

    With several texts, each with one mask: what stands behind it in each, side by side. The model must have its
    pretraining head. With --out FILE.html it is one page to look at; FILE.svg stands still, FILE.json has the numbers.

    \b
    Examples:
      bertsmith inspect lens "Paris is in [MASK]." --out lens.html
      bertsmith inspect lens "A [MASK] swam." "A [MASK] flew."
    """
    check_out(out)
    given = [decode(text, f"text {number}") for number, text in enumerate(texts, 1)]
    model = options.load()

    import bertsmith.inspect

    if len(given) == 1:
        show_picture(bertsmith.inspect.lens(model, given[0], top_k=top_k), out, options.as_json, _write_lens)
    else:
        masks = bertsmith.inspect.compare_masks(model, given, top_k=top_k)
        show_picture(masks, out, options.as_json, _write_masks)


def _write_lens(found: "Lens") -> None:
    """At the masks each layer's list; without a mask the likeliest piece at every place."""
    for place in found.masks:
        rows: Rows = [
            {
                "layer": layer,
                "rank of the answer": int(found.ranks[row, place]),
                "the layer would say": ", ".join(_list_answers(found, layer, place)),
            }
            for row, layer in enumerate(found.layers)
        ]
        write_table(found.text, rows)
    if found.masks:
        return
    for start in range(0, len(found.pieces), WIDE):
        some = range(start, min(start + WIDE, len(found.pieces)))
        rows = [
            {"layer": layer, **{f"{i} {found.pieces[i]}": found.at(layer, i)[0]["token_str"] for i in some}}
            for layer in found.layers
        ]
        write_table(found.text if not start else "", rows, narrow=True)


def _list_answers(found: "Lens", layer: int, place: int) -> list[str]:
    return [f"{one['token_str']} {one['score']:.3f}" for one in found.at(layer, place)]


def _write_masks(found: "Masks") -> None:
    for number, text in enumerate(found.texts, 1):
        moved = f"  ({100 * found.distances[number - 1]:.0f} % moved)" if number > 1 else ""
        write_text([(f"{number}  {text}", "bold"), (moved, "dim")])
    rows: Rows = [
        {"word": word, **{str(number + 1): float(row[i]) for number, row in enumerate(found.chances)}}
        for i, word in enumerate(found.words)
    ]
    write_table("", rows)
