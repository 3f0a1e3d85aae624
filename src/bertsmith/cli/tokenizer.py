"""`bertsmith tokenizer train | extend`: a tokenizer of a person's own from raw text, or more pieces for a model's."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.flags import PanelCommand
from bertsmith.cli.options import Download, Field, ResultJson, Sources
from bertsmith.cli.output import wants_json, write_json, write_note, write_text
from bertsmith.data.findings import counted

if TYPE_CHECKING:
    from bertsmith.extending import ExtendedTokenizer
    from bertsmith.tokenizing import TrainedTokenizer

Out = Annotated[str, typer.Option(metavar="DIR", help="The folder to write the tokenizer to.")]
MinCount = Annotated[int, typer.Option(metavar="N", help="How often a pair must occur to become a piece.")]
Threads = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, show_default=False, help="Processes that count.  [default: one a core]"),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a tokenizer that DIR holds.")]
SHOWN = 8  # new pieces that are named

tokenizer = typer.Typer(
    name="tokenizer", no_args_is_help=True, rich_markup_mode=None, help="Make a tokenizer from raw text, or extend one."
)


@tokenizer.command(cls=PanelCommand)
def train(
    sources: Sources,
    out: Out,
    kind: Annotated[
        Literal["wordpiece", "bpe", "unigram"],
        typer.Option(help="As BERT has it, as RoBERTa and GPT-2 (bytes), or as SentencePiece."),
    ] = "wordpiece",
    size: Annotated[int, typer.Option(metavar="N", help="Pieces in all, special tokens among them.")] = 30000,
    cased: Annotated[
        bool | None,
        typer.Option("--cased/--uncased", show_default=False, help="Keep case?  [default: all but wordpiece do]"),
    ] = None,
    min_count: MinCount = 2,
    special: Annotated[
        list[str] | None, typer.Option(metavar="TOKEN", help="A special token of your own; may be repeated.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default=False,
            help="Words of more characters take no part.  [default: 100 in wordpiece, else 1000]",
        ),
    ] = None,
    alphabet: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default=False,
            help="Characters that wordpiece and unigram know.  [default: 1000, more for scripts that need it]",
        ),
    ] = None,
    join_punctuation: Annotated[
        bool, typer.Option("--join-punctuation", help='Unigram: pieces such as "word," too; they save tokens.')
    ] = False,
    balance: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            show_default=False,
            help="Each of SOURCES is a language; small ones count for more: 1 as they are, 0.7 usual, 0 all alike.",
        ),
    ] = None,
    field: Field = "text",
    threads: Threads = None,
    overwrite: Overwrite = False,
    as_json: ResultJson = False,
) -> None:
    """Train a tokenizer on raw text: the same bytes on every run, number of threads and machine.

    DIR gets tokenizer.json and vocab.txt (bpe: vocab.json and merges.txt too), which transformers and tokenizers open.

    \b
    Examples:
      bertsmith tokenizer train texts --size 1000 --out my-pieces
      bertsmith tokenizer train texts --kind bpe --size 2000 --out my-bytes
      bertsmith tokenizer train de fr --kind unigram --size 500 --balance 0.7 --cased --out my-unigrams
    """
    import bertsmith

    as_json = wants_json(as_json)
    with showing_progress() as tell:
        trained = bertsmith.train_tokenizer(
            sources, out, kind=kind, size=size, cased=cased, min_count=min_count, special=special or (), limit=limit,
            alphabet=alphabet, join_punctuation=join_punctuation, balance=balance, field=field, threads=threads,
            overwrite=overwrite, tell=tell,
        )  # fmt: skip
    show(trained, as_json)


@tokenizer.command(cls=PanelCommand)
def extend(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="The folder or name of a model, or the folder of a tokenizer.")
    ],
    sources: Sources,
    add: Annotated[int, typer.Option(metavar="N", help="Most pieces to add.")],
    out: Out,
    min_count: MinCount = 2,
    field: Field = "text",
    threads: Threads = None,
    download: Download = False,
    overwrite: Overwrite = False,
    as_json: ResultJson = False,
) -> None:
    """Add to a model's tokenizer the pieces that save most tokens of your text; the old ones keep their ids.

    Build a corpus with it, and bertsmith pretrain --model MODEL goes on with that: each new piece begins as the mean of
    those that it was cut into before.

    \b
    Examples:
      bertsmith tokenizer extend my-bert texts --add 20 --out my-more-pieces
      bertsmith corpus build texts --tokenizer my-more-pieces --out my-more-corpus
      bertsmith pretrain --model my-bert --corpus my-more-corpus --tokens 2048 --max-steps 5 --out my-adapted-bert
    """
    import bertsmith

    as_json = wants_json(as_json)
    with showing_progress() as tell:
        extended = bertsmith.extend_tokenizer(
            model, sources, out, add=add, min_count=min_count, field=field, threads=threads, download=download,
            overwrite=overwrite, tell=tell,
        )  # fmt: skip
    show_extended(extended, as_json)


def show_extended(extended: "ExtendedTokenizer", as_json: bool) -> None:
    for note in extended.notes:
        write_note(f"note: {note}")
    after, before = extended.tokens_per_word, extended.tokens_per_word_before
    if as_json:
        write_json(
            {
                "folder": str(extended.folder), "kind": extended.kind, "pieces": extended.pieces,
                "added": extended.added, "words": extended.words, "tokens_per_word": round(after, 4),
                "tokens_per_word_before": round(before, 4), "seconds": round(extended.seconds, 2),
            }
        )  # fmt: skip
        return
    some = ", ".join(extended.added[:SHOWN]) + (" …" if len(extended.added) > SHOWN else "")
    sentence = (
        f"{extended.folder}: {counted(len(extended.added), 'piece')} more ({some}), {extended.pieces:,} in all; "
        f"{after:.3f} tokens a word over {counted(extended.words, 'word')}, before {before:.3f}, "
        f"{extended.seconds:.1f} s"
    )
    write_text([(sentence, "")])


def show(trained: "TrainedTokenizer", as_json: bool) -> None:
    for note in trained.notes:
        write_note(f"note: {note}")
    if as_json:
        write_json(
            {
                "folder": str(trained.folder), "kind": trained.kind, "pieces": trained.pieces, "words": trained.words,
                "characters": trained.characters, "tokens_per_word": round(trained.tokens_per_word, 4),
                "covered": trained.covered, "factors": list(trained.factors), "seconds": round(trained.seconds, 2),
            }
        )  # fmt: skip
        return
    sentence = (
        f"{trained.folder}: {counted(trained.pieces, 'piece')}, {trained.tokens_per_word:.3f} tokens a word over "
        f"{counted(trained.words, 'word')}, {trained.seconds:.1f} s"
    )
    write_text([(sentence, "")])


@contextmanager
def showing_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on a terminal, nothing elsewhere."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    tasks: dict[str, Any] = {}
    columns = (TextColumn("{task.description}"), BarColumn(24), TaskProgressColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def tell(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, total=total)

        yield tell
