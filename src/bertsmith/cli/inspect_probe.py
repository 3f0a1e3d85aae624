"""`bertsmith inspect probe`: what each layer knows, by linear probes."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.flags import ColumnFlags
from bertsmith.cli.options import Format, ModelOptions
from bertsmith.cli.output import write_note, write_table
from bertsmith.cli.pictures import PictureOut, check_out, show_picture
from bertsmith.cli.tokenizer import showing_progress
from bertsmith.data.findings import counted

if TYPE_CHECKING:
    from bertsmith.inspection.probing import Probes


def probe(
    *,
    train: Annotated[str, typer.Option(metavar="FILE|DIR", help="Labelled texts or tagged words to learn from.")],
    dev: Annotated[
        str | None, typer.Option(metavar="FILE", help="And others to test on; or --train is a folder with both.")
    ] = None,
    task: Annotated[
        Literal["classify", "tag"] | None, typer.Option(help="What is probed for; else the columns say.")
    ] = None,
    reads: Annotated[
        Literal["mean", "first"], typer.Option(help="classify: the mean of all tokens, or the first one.")
    ] = "mean",
    most: Annotated[int, typer.Option(metavar="N", min=1, help="Texts or words a side, drawn by --seed.")] = 10000,
    seed: Annotated[int, typer.Option(metavar="N", help="Of what is drawn, and of the control.")] = 0,
    format: Format = None,
    out: PictureOut = None,
    columns: Annotated[dict[str, Any], ColumnFlags(("text", "pair", "label", "words", "tags", "entities"))],
    options: ModelOptions,
) -> None:
    """Show what each layer knows: how well a linear probe reads labels from it.

    Beside it stand the majority's accuracy and a control, the same probe on labels that mean nothing; what a probe
    knows beyond that (selectivity) comes from the layer. The mix is of all layers, with shares that are learnt.

    \b
    Examples:
      bertsmith inspect probe --train train.conll --dev dev.conll --out probe.svg
      bertsmith inspect probe --train reviews.csv --dev more-reviews.csv
    """
    check_out(out)
    model = options.load()

    import bertsmith.inspect

    with showing_progress() as tell:
        found = bertsmith.inspect.probe(
            model, train, dev, task=task, reads=reads, most=most, seed=seed, format=format, tell=tell, **columns
        )
    show_picture(found, out, options.as_json, _write)
    if found.truncated:
        write_note(f"cut: {counted(found.truncated, 'token')} of long texts did not fit and stayed unprobed")


def _write(found: "Probes") -> None:
    """A line a layer, in percent."""
    rows = [
        {
            "layer": layer.layer,
            "accuracy": _percent(layer.accuracy),
            "95 % interval": f"{_percent(layer.low)} to {_percent(layer.high)}",
            "macro F1": _percent(layer.macro_f1),
            "control": _percent(layer.control),
            "selectivity": f"{100 * layer.selectivity:+.2f}".replace("-", "−"),
            "share in the mix": f"{100 * share:.1f}",
        }
        for layer, share in zip(found.layers, found.shares.tolist(), strict=True)
    ]
    mix = found.mix
    between = f"{_percent(mix.low)} to {_percent(mix.high)}"
    scores = {"accuracy": _percent(mix.accuracy), "95 % interval": between, "macro F1": _percent(mix.macro_f1)}
    rows.append({**dict.fromkeys(rows[0], ""), "layer": "mix", **scores})
    rows.append({**dict.fromkeys(rows[0], ""), "layer": "majority", "accuracy": _percent(found.majority)})
    what = "words" if found.task == "tag" else "texts"
    title = f"{found.task}: {found.sizes[0]:,} {what} to learn from, {found.sizes[1]:,} to test on, in percent"
    write_table(title, rows, numbers=[key for key in rows[0] if key != "layer"], narrow=True)


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"
