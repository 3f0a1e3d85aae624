"""`bertsmith corpus build` and `bertsmith corpus info`: raw text to what models are pretrained on."""

import os
from typing import Annotated, Any, Literal

import typer

from bertsmith.cli.flags import PanelCommand
from bertsmith.cli.options import Field, ResultJson, Sources
from bertsmith.cli.output import wants_json, write_json, write_note, write_table

corpus = typer.Typer(
    name="corpus",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make and look at a corpus: cleaned, compared, tokenized text that models are pretrained on.",
)


@corpus.command(cls=PanelCommand)
def build(
    sources: Sources,
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder to write the corpus to.")],
    tokenizer: Annotated[
        str | None, typer.Option(metavar="DIR", help="The folder of the tokenizer; a model's folder is one too.")
    ] = None,
    unit: Annotated[
        Literal["blank-line", "line", "file"] | None,
        typer.Option(
            show_default=False,
            help="What ends a document in text.  [default: a blank line; in Markdown the file]",
        ),
    ] = None,
    field: Field = "text",
    held_out: Annotated[
        float, typer.Option(metavar="X", help="Share of documents that training never sees, chosen by their hash.")
    ] = 0.01,
    duplicates: Annotated[
        bool, typer.Option("--duplicates/--no-duplicates", help="Drop documents and long paragraphs that come again.")
    ] = True,
    near_duplicates: Annotated[
        bool, typer.Option("--near-duplicates/--no-near-duplicates", help="Drop documents that are nearly the same.")
    ] = True,
    similarity: Annotated[
        float, typer.Option(metavar="X", help="From which Jaccard similarity on two documents are nearly the same.")
    ] = 0.8,
    filters: Annotated[bool, typer.Option("--filters/--no-filters", help="The four filters below.")] = True,
    shortest: Annotated[int, typer.Option(metavar="N", help="Characters a document must have.")] = 50,
    tokens_per_character: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            show_default=False,
            help="Drop documents that the tokenizer cuts finer than this.  [default: 0.3, more for a small vocabulary]",
        ),
    ] = None,
    repetition: Annotated[
        float, typer.Option(metavar="X", help="Share of a document's five-token runs that may be repeats.")
    ] = 0.5,
    boilerplate: Annotated[
        int, typer.Option(metavar="N", help="Drop short lines that stand in so many documents and in one of 1,000.")
    ] = 20,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|DIR", help="Drop paragraphs that share a run of words with this; may be repeated."),
    ] = None,
    gram: Annotated[int, typer.Option(metavar="N", help="Words in such a run.")] = 13,
    codes: Annotated[bool, typer.Option("--codes", help="Rows of integers with a vocabulary of their own.")] = False,
    vocabulary: Annotated[
        int | None, typer.Option(metavar="N", help="With --codes: how many codes there are; else the largest plus 1.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, show_default=False, help="How many work at a time.  [default: one a core]"),
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Where parts are worked on: here, or by Ray Data (an extra).")
    ] = "local",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Make anew what DIR holds.")] = False,
    as_json: ResultJson = False,
) -> None:
    """Turn raw text into a corpus: clean it, drop what comes again or is no good, cut and tokenize the rest.

    The result does not depend on the number of processes. The same command again goes on after a kill. DIR/report.md
    tells what was dropped and why.

    \b
    Examples:
      bertsmith corpus build texts --tokenizer my-bert --out my-corpus
      bertsmith corpus build "wiki/*.jsonl.gz" --tokenizer my-bert --exclude GLUE --out wiki-corpus
      bertsmith corpus build codes.jsonl --codes --vocabulary 1024 --out code-corpus
    """
    import bertsmith
    from bertsmith.workers import count_cores

    as_json = wants_json(as_json)
    if tokenizer is None and not codes:
        raise typer.BadParameter("--tokenizer is missing (or --codes, for rows of integers).")
    bertsmith.build_corpus(
        sources, tokenizer, out, unit=unit, field=field, held_out=held_out, duplicates=duplicates,
        near_duplicates=near_duplicates, similarity=similarity, filters=filters, shortest=shortest,
        tokens_per_character=tokens_per_character, repetition=repetition, boilerplate=boilerplate,
        exclude=exclude or (), gram=gram, codes=codes, vocabulary=vocabulary, processes=processes or count_cores(),
        engine=engine, overwrite=overwrite, say=write_note,
    )  # fmt: skip
    show(bertsmith.corpus_info(out), as_json)
    write_note(f"The corpus is in {out}; what was dropped and why: {os.path.join(out, 'report.md')}.")


@corpus.command(cls=PanelCommand)
def info(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of a corpus.")],
    check: Annotated[bool, typer.Option("--check", help="Read all of it and compare its checksums.")] = False,
    as_json: ResultJson = False,
) -> None:
    """Tell what is in a corpus: documents, sentences and tokens of both parts, and what was dropped.

    \b
    Examples:
      bertsmith corpus info my-corpus
      bertsmith corpus info my-corpus --check
    """
    import bertsmith

    as_json = wants_json(as_json)
    show(bertsmith.corpus_info(folder, check=check), as_json)
    if check:
        write_note("All files are as they were written.")


def show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        write_json(found)
        return
    rows = [{"part": split, **{name: f"{count:,}" for name, count in counts.items()}}
            for split, counts in found["splits"].items()]  # fmt: skip
    title = f"{found['kind']}, a vocabulary of {found['vocabulary']:,}, {found['dtype'].lstrip('<')}"
    write_table(title, rows, numbers=("documents", "sentences", "tokens"))
    if dropped := found.get("dropped"):
        write_table("dropped", [{"reason": reason, "count": told["count"]} for reason, told in dropped.items()])
    if speed := found.get("speed"):
        write_note(f"Built at {speed['megabytes_per_second']:.1f} MB/s in {speed['seconds']:.1f} s.")
    for note in found.get("notes", []):
        write_note(f"note: {note}")
