"""`bertsmith search`: the passages of a folder that answer a query."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.inputs import Input, ask, read_texts
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import wants_json, write_json, write_note, write_table

if TYPE_CHECKING:
    from bertsmith.tasks.result import Result

SHOWN = 300  # characters of a passage, on a terminal


def search(
    queries: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="What to look for, or - for standard input, one query a line.")
    ],
    *,
    folder: Annotated[
        Path, typer.Option("--in", metavar="FOLDER", help="Where to look: .txt, .md, .html and .jsonl files.")
    ],
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="How many passages.")] = 5,
    how: Annotated[
        Literal["hybrid", "dense", "bm25"],
        typer.Option(help="By meaning (dense), by shared words (bm25), or by the ranks in both."),
    ] = "hybrid",
    before: Annotated[bool, typer.Option("--before", help="Show beside it what plain BM25 finds.")] = False,
    rerank_model: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A cross-encoder that reads the query with each of the best passages."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Only files called so; may be given several times.")
    ] = None,
    place: Annotated[
        Path | None,
        typer.Option("--index", metavar="DIR", help="Where the index is kept; else .bertsmith-index in the folder."),
    ] = None,
    passage_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The longest passage; else 128, or what the model reads.")
    ] = None,
    options: ModelOptions,
) -> None:
    """Search a folder of texts by meaning and by words.

    The first search reads and embeds all files; what is kept of that is brought up to date when files change.

    \b
    Examples:
      bertsmith search "can you get medicine for someone pharmacy" --in examples --how dense --before
      bertsmith search - --in examples --only "*.txt" < lines.txt
    """
    chunks, as_json = read_texts(queries), wants_json(options.as_json)
    from bertsmith.searching import index

    # --use is of the model that makes vectors.
    judge = replace(options, model=rerank_model, use=None).load() if rerank_model else None
    counter = Counter()
    try:
        made = index(
            folder, options.load(), place=place, only=only or (), passage_tokens=passage_tokens, progress=counter.show
        )
    finally:
        counter.close()
    for note in made.notes:
        write_note(f"note: {note}")

    def question(chunk: list[Input]) -> Sequence[tuple["Result", "Result | None"]]:
        texts = [given.text for given in chunk]
        olds = made.search(texts, top_k, how="bm25") if before else [None] * len(texts)
        return list(zip(made.search(texts, top_k, how=how, rerank=judge), olds, strict=True))

    for given, (result, old) in ask(chunks, question):
        if result.truncated:
            most = made.model.embedder.limit
            write_note(f"cut: a query was longer than {most:,} tokens; {result.truncated:,} were not seen")
        if as_json:
            write_json({"input": given.text, **result.as_dict(), **({} if old is None else {"before": old.answers})})
        elif old is None:
            write_table(given.text, [describe(found) for found in result] or [{"": "(nothing found)"}])
        else:
            write_table(given.text, put_beside(old, result, f"{how}, reranked" if judge else how))


def describe(found: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table: how well it fits, where it stands, what it says."""
    place = f"{found['document']} [{found['start']}:{found['end']}]"
    return {"score": found["score"], "document": place, "text": shorten(found["text"])}


def put_beside(old: "Result", new: "Result", how: str) -> list[dict[str, Any]]:
    """The rows of both, rank by rank."""
    rows = []
    for rank in range(max(len(old), len(new), 1)):
        sides = [describe(side[rank]) if rank < len(side) else None for side in (old, new)]
        cells = [f"{side['text']} ({side['document']})" if side else "" for side in sides]
        rows.append({"": rank + 1, "before (bm25)": cells[0], f"after ({how})": cells[1]})
    return rows


def shorten(text: str) -> str:
    """In one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1].rstrip() + "…"


class Counter:
    """How far the embedding is, in one line of a terminal that is written over."""

    def __init__(self) -> None:
        self._wrote = False

    def show(self, done: int, total: int) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"\rembedding: {done:,} of {total:,} passages", end="", file=sys.stderr, flush=True)
            self._wrote = True

    def close(self) -> None:
        if self._wrote:
            print(file=sys.stderr)
