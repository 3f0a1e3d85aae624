"""`bertsmith embed`: a vector for a text."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.asking import Input, Question
from bertsmith.cli.bulk import BulkOptions, write_file
from bertsmith.cli.inputs import ask, decode_option, read_texts
from bertsmith.cli.jobs import asks_file, read_file
from bertsmith.cli.options import File, Format, ModelOptions, TextColumn, TextsOrFile, Truncate
from bertsmith.cli.output import Cuts, wants_json, write_json, write_note, write_table
from bertsmith.data.findings import counted

if TYPE_CHECKING:
    from numpy import ndarray

SHOWN = 6  # of a vector, on a terminal


def embed(
    texts: TextsOrFile = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy",
            help="Write the vectors into this NumPy file, one row a text; with --in into FILE.jsonl too, and after a "
            "kill the same command goes on.",
        ),
    ] = None,
    file: File = None,
    text: TextColumn = None,
    format: Format = None,
    prompt: Annotated[
        str | None, typer.Option(metavar="NAME|TEXT", help="One of the model's prompts, or a text to put in front.")
    ] = None,
    dims: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Keep so many numbers of each vector (a model trained with --dims)."),
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option("--normalize/--no-normalize", help="Vectors of length 1; else as the model says.")
    ] = None,
    truncate: Truncate = "head",
    bulk: BulkOptions,
    options: ModelOptions,
) -> None:
    """Turn each text into a vector.

    \b
    Examples:
      bertsmith embed "a river bank" "a savings bank"
      bertsmith embed - --out vectors.npy < lines.txt
      bertsmith embed --in reviews.csv --out reviews.npy
    """
    from bertsmith.cli.vectors import VectorFile

    prompt, columns = decode_option(prompt, "--prompt"), {"text": decode_option(text, "--text")}
    question = Question("embed", {"prompt": prompt, "truncate": truncate, "normalize": normalize, "dims": dims})
    is_file = asks_file(texts, file, text, format=format)
    if is_file and bulk.asked(file, out):
        write_file(question, file, columns, format, out, bulk, options, lambda _: Cuts(truncate))
        return
    chunks = read_file(question, file, columns, format) if is_file else read_texts(texts or ())
    as_json = out is None and wants_json(options.as_json)
    if not is_file and bulk != BulkOptions(overwrite=bulk.overwrite and out is not None):
        raise typer.BadParameter("--on-error and --engine go with --in FILE, --overwrite with --out FILE.")
    # Opened first: a wrong path must not cost a long run.
    with VectorFile(out, bulk.overwrite) if out else nullcontext() as vectors:
        model, cuts = options.load(), Cuts(truncate)

        def put(chunk: list[Input]) -> Iterator[tuple["ndarray[Any, Any]", int]]:
            texts = [given.text for given in chunk]
            found = model.embed(texts, prompt=prompt, truncate=truncate, normalize=normalize, dims=dims)
            return zip(found, map(int, found.truncated), strict=True)

        for given, (vector, cut) in ask(chunks, put):
            cuts.add(cut)
            if vectors:
                vectors.append(vector)
            elif as_json:
                write_json({**given.describe(), "vector": vector.tolist(), "truncated": cut})
            else:
                values = " ".join(f"{value:+.4f}" for value in vector[:SHOWN].tolist())
                write_table(given.text, [{"width": len(vector), "vector": f"{values} …"}])
        if vectors and not cuts.inputs:
            vectors.width = model.embed([], dims=dims).shape[1]
    if vectors:
        write_note(f"wrote {counted(vectors.count, 'vector')} of width {vectors.width:,} to {out}")
    cuts.report()
