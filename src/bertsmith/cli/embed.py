"""`bertsmith embed`: a vector for a text."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.inputs import Input, ask, decode_option, read_texts
from bertsmith.cli.options import ModelOptions, Texts, Truncate
from bertsmith.cli.output import Cuts, wants_json, write_json, write_note, write_table

if TYPE_CHECKING:
    from numpy import ndarray

SHOWN = 6  # of a vector, on a terminal


def embed(
    texts: Texts,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.npy", help="Write the vectors into this NumPy file, one row a text.")
    ] = None,
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
    options: ModelOptions,
) -> None:
    """Turn each text into a vector.

    \b
    Examples:
      bertsmith embed "a river bank" "a savings bank"
      bertsmith embed - --out vectors.npy < lines.txt
    """
    from bertsmith.cli.vectors import VectorFile

    chunks, prompt = read_texts(texts), decode_option(prompt, "--prompt")
    as_json = out is None and wants_json(options.as_json)
    with VectorFile(out) if out else nullcontext() as file:  # opened first: a wrong path must not cost a long run
        model, cuts = options.load(), Cuts(truncate)

        def question(chunk: list[Input]) -> Iterator[tuple["ndarray[Any, Any]", int]]:
            texts = [given.text for given in chunk]
            vectors = model.embed(texts, prompt=prompt, truncate=truncate, normalize=normalize, dims=dims)
            return zip(vectors, map(int, vectors.truncated), strict=True)

        for given, (vector, cut) in ask(chunks, question):
            cuts.add(cut)
            if file:
                file.append(vector)
            elif as_json:
                write_json({"input": given.text, "vector": vector.tolist(), "truncated": cut})
            else:
                values = " ".join(f"{value:+.4f}" for value in vector[:SHOWN].tolist())
                write_table(given.text, [{"width": len(vector), "vector": f"{values} …"}])
        if file and not cuts.inputs:
            file.width = model.embed([], dims=dims).shape[1]
    if file:
        write_note(f"wrote {file.count:,} vectors of width {file.width:,} to {out}")
    cuts.report()
