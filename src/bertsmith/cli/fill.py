"""`bertsmith fill`: what stands behind a mask."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from bertsmith.cli.inputs import CHUNK, Input, ask, decode, read_texts
from bertsmith.cli.options import ModelOptions, Texts, Truncate
from bertsmith.cli.output import Cuts, Rows, pick, wants_json, write_json, write_table
from bertsmith.errors import BertsmithError

ANSWERS = 200_000  # in memory at once, about half a kilobyte each


def fill(
    texts: Texts,
    *,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="How many answers for a mask.")] = 5,
    targets: Annotated[str | None, typer.Option(metavar="A,B,...", help="Choose among these words only.")] = None,
    truncate: Truncate = "windows",
    options: ModelOptions,
) -> None:
    """Fill the masks of a text, likeliest word first.

    The model must have its pretraining head. The mask is written as its vocabulary has it: [MASK] or <mask>.

    \b
    Example:
      bertsmith fill "Paris is the [MASK] of France." --model google-bert/bert-base-uncased --download
    """
    chunks = read_texts(texts, size=max(min(CHUNK, ANSWERS // top_k), 1))
    words = None if targets is None else split_targets(decode(targets, "--targets"))
    cuts, as_json = Cuts(truncate), wants_json(options.as_json)
    model = options.load()

    def question(chunk: list[Input]) -> Sequence[Any]:
        if any(not given.text.strip() for given in chunk):
            raise BertsmithError("empty, where a text with a mask is needed.")
        return model.fill([given.text for given in chunk], top_k=top_k, targets=words, truncate=truncate)

    for given, result in ask(chunks, question):
        cuts.add(result.truncated)
        if as_json:
            write_json({"input": given.text, **result.as_dict()})
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
