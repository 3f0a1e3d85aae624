"""`bertsmith export`: a model as other libraries open it, in the compact form in which it is shipped, or as a graph."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.options import Download, Json
from bertsmith.cli.output import wants_json, write_json, write_note, write_text

if TYPE_CHECKING:
    from bertsmith.exporting import Exported


def export(
    places: Annotated[
        list[str],
        typer.Argument(metavar="[FOLDER] DIR", help="The model, else the default one; and the new folder."),
    ],
    to: Annotated[
        Literal["transformers", "compact", "onnx"],
        typer.Option(help="A plain folder with one head, a base and its adapters in few bytes, or an ONNX graph."),
    ] = "transformers",
    head: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="transformers, onnx: an adapter, merged into the weights, or a job: tag, …"),
    ] = None,
    store: Annotated[
        Literal["int8", "bf16", "fp16", "fp32"] | None,
        typer.Option(
            show_default=False,
            help="transformers: fp32, bf16, fp16; compact: int8, bf16, fp32; onnx: fp32, int8.  "
            "[default: fp32, compact: int8]",
        ),
    ] = None,
    adapter_store: Annotated[
        Literal["int8", "bf16", "fp32"] | None,
        typer.Option(show_default=False, help="compact: how adapters are stored.  [default: as the base]"),
    ] = None,
    adapter: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FOLDER", help="compact: put this adapter in; may be repeated.")
    ] = None,
    default: Annotated[
        list[str] | None,
        typer.Option(metavar="JOB=NAME", help="compact: the adapter for a job that several can do; may be repeated."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="onnx: score the model and its graph on these examples; compare the two."),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            show_default=False, help="onnx: with --data, a score that is worse by more is refused.  [default: 0.02]"
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model that DIR holds.")] = False,
    download: Download = False,
    as_json: Json = False,
) -> None:
    """Write a model for transformers and sentence-transformers, for ONNX Runtime, or with its adapters in few bytes.

    \b
    Examples:
      bertsmith export my-classifier my-plain-classifier
      bertsmith export my-classifier my-half-classifier --store bf16
      bertsmith export my-shipped --to compact --adapter tickets=my-adapter --default classify=tickets
      bertsmith export my-shipped my-tickets --to transformers --head tickets
      bertsmith export my-classifier my-graph --to onnx --store int8 --data reviews.csv
    """
    if len(places) > 2:
        raise typer.BadParameter("give one model and one folder to write to: [FOLDER] DIR.")
    import bertsmith

    made = bertsmith.export_model(
        places[0] if len(places) == 2 else None, places[-1], to=to, head=head, store=store,
        adapter_store=adapter_store, adapters=_pair(adapter, "--adapter", "NAME=FOLDER"),
        defaults=_pair(default, "--default", "JOB=NAME"), data=data, max_loss=max_loss, overwrite=overwrite,
        download=download,
    )  # fmt: skip
    show(made, wants_json(as_json))


def _pair(given: list[str] | None, flag: str, form: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name or not value:
            raise typer.BadParameter(f"{flag} {one!r} must be {form}.")
        if name in found:
            raise typer.BadParameter(f"{flag} gives {name!r} twice.")
        found[name] = value
    return found


def show(made: "Exported", as_json: bool) -> None:
    if as_json:
        about = {"folder": str(made.folder), "form": made.form, "store": made.store, "bytes": made.size}
        opens = {"opens": made.opens, "left_out": made.left_out} if made.opens else {}
        graph = {"largest_error": made.largest_error} if made.form == "onnx" else {}
        scored = {"metric": made.metric, "before": made.scores[0], "after": made.scores[1]} if made.scores else {}
        write_json({**about, "parts": made.sizes, "errors": made.errors, **opens, **graph, **scored})
        return
    size = f"{made.size / 2**20:.1f} MiB in {made.store}"
    if made.form != "compact":
        told = f"transformers opens it as {made.opens}" if made.largest_error is None else _tell_errors(made)
        write_text([(f"{made.folder}: {size}; {told}", "")])
        if made.scores:
            write_text([(f"  {made.metric}: {made.scores[0]:.4f} before, {made.scores[1]:.4f} as a graph", "")])
        if made.left_out:
            write_note(f"note: the adapters {', '.join(made.left_out)} are not in it; --head NAME merges one of them.")
        return
    write_text([(f"{made.folder}: {size}, numbers off by {_percent(made.errors[''])}", "")])
    for name in list(made.errors)[1:]:
        write_text([(f"  {name}: {made.sizes[name] / 2**20:.2f} MiB, off by {_percent(made.errors[name])}", "")])


def _tell_errors(made: "Exported") -> str:
    largest, usual = (f"{100 * share:.2g} %" for share in (made.largest_error or 0.0, made.errors[""]))
    return f"scores on random words are off by {usual}, at most by {largest} of the largest"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
