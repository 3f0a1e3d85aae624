"""`bertsmith export`: a model as other libraries open it, or in the compact form in which it is shipped."""

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
        Literal["transformers", "compact"],
        typer.Option(help="A plain folder with one head, or a base and its adapters in few bytes."),
    ] = "transformers",
    head: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="transformers: an adapter, merged into the weights, or a job such as tag."),
    ] = None,
    store: Annotated[
        Literal["int8", "bf16", "fp16", "fp32"] | None,
        typer.Option(
            show_default=False,
            help="transformers: fp32, bf16, fp16; compact: int8, bf16, fp32.  [default: fp32, compact: int8]",
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
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model that DIR holds.")] = False,
    download: Download = False,
    as_json: Json = False,
) -> None:
    """Write a model for transformers and sentence-transformers, or with its adapters in a quarter of the bytes.

    \b
    Examples:
      bertsmith export my-classifier my-plain-classifier
      bertsmith export my-classifier my-half-classifier --store bf16
      bertsmith export my-shipped --to compact --adapter tickets=my-adapter --default classify=tickets
      bertsmith export my-shipped my-tickets --to transformers --head tickets
    """
    if len(places) > 2:
        raise typer.BadParameter("give one model and one folder to write to: [FOLDER] DIR.")
    import bertsmith

    made = bertsmith.export_model(
        places[0] if len(places) == 2 else None, places[-1], to=to, head=head, store=store,
        adapter_store=adapter_store, adapters=_pair(adapter, "--adapter", "NAME=FOLDER"),
        defaults=_pair(default, "--default", "JOB=NAME"), overwrite=overwrite, download=download,
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
        write_json({**about, "parts": made.sizes, "errors": made.errors, **opens})
        return
    size = f"{made.size / 2**20:.1f} MiB in {made.store}"
    if made.form == "transformers":
        write_text([(f"{made.folder}: {size}; transformers opens it as {made.opens}", "")])
        if made.left_out:
            write_note(f"note: the adapters {', '.join(made.left_out)} are not in it; --head NAME merges one of them.")
        return
    write_text([(f"{made.folder}: {size}, numbers off by {_percent(made.errors[''])}", "")])
    for name in list(made.errors)[1:]:
        write_text([(f"  {name}: {made.sizes[name] / 2**20:.2f} MiB, off by {_percent(made.errors[name])}", "")])


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
