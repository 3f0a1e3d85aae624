"""`bertsmith fill`: what stands behind a mask."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from bertsmith.asking import Input, Question
from bertsmith.cli.bulk import BulkOptions, Out, write_file
from bertsmith.cli.inputs import ask, decode, decode_option, read_texts
from bertsmith.cli.jobs import asks_file, read_file
from bertsmith.cli.options import File, Format, ModelOptions, TextColumn, TextsOrFile, Truncate
from bertsmith.cli.output import Cuts, Rows, pick, wants_json, write_json, write_table
from bertsmith.errors import BertsmithError


def fill(
    texts: TextsOrFile = None,
    *,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="How many answers for a mask.")] = 5,
    targets: Annotated[str | None, typer.Option(metavar="A,B,...", help="Choose among these words only.")] = None,
    file: File = None,
    text: TextColumn = None,
    format: Format = None,
    truncate: Truncate = "windows",
    out: Out = None,
    bulk: BulkOptions,
    options: ModelOptions,
) -> None:
    """Fill the masks of a text, likeliest word first.

    The model must have its pretraining head. The mask is written as its vocabulary has it: [MASK] or <mask>.

    \b
    Examples:
      bertsmith fill "Paris is the [MASK] of France."
      bertsmith fill --in masked.jsonl --out filled.jsonl
    """
    words = None if targets is None else split_targets(decode(targets, "--targets"))
    question = Question("fill", {"top_k": top_k, "targets": words, "truncate": truncate})
    columns = {"text": decode_option(text, "--text")}
    is_file = asks_file(texts, file, text, format=format)
    if bulk.asked(file, out):
        write_file(question, file, columns, format, out, bulk, options, lambda _: Cuts(truncate))
        return
    chunks = read_file(question, file, columns, format) if is_file else read_texts(texts or (), size=question.chunk)
    cuts, as_json = Cuts(truncate), wants_json(options.as_json)
    model = options.load()

    def put(chunk: list[Input]) -> Sequence[Any]:
        if any(not given.text.strip() for given in chunk):
            raise BertsmithError("empty, where a text with a mask is needed.")
        return model.fill([given.text for given in chunk], top_k=top_k, targets=words, truncate=truncate)

    for given, result in ask(chunks, put):
        cuts.add(result.truncated)
        if as_json:
            write_json({**given.describe(), **result.as_dict()})
        else:
            for title, rows in list_tables(given.text, result):
                write_table(title, rows)
    cuts.report()


def split_targets(targets: str) -> list[str]:
    """The words between the commas."""
    words = [word.strip() for word in targets.split(",")]
    if not all(words):
        raise typer.BadParameter(f"--targets {targets!r} has an empty word; write words with single commas between.")
    return words


def list_tables(text: str, result: Any) -> Iterator[tuple[str, Rows]]:
    """The heading and the rows of each table: one for the mask; with several masks one each, then the joint answers."""
    several = bool(result.answers) and isinstance(result.answers[0], list)
    for number, answers in enumerate(result.answers if several else [result.answers], 1):
        scores = [key for key in ("score", "score_per_piece") if key in answers[0]]
        yield f"{text}  (mask {number})" if several else text, pick(answers, *scores, "token_str", "sequence")
    if result.joint:
        yield f"{text}  (all masks together)", pick(result.joint, "score", "sequence")
