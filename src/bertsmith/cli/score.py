"""`bertsmith score`: a number for a text or a pair of texts."""

from collections.abc import Sequence
from typing import Any

from bertsmith.cli.inputs import Input, ask
from bertsmith.cli.jobs import open_cuts, part, read_asked, write_answers
from bertsmith.cli.options import File, Format, ModelOptions, OwnCut, Pair, TextColumn, TextsOrPairs
from bertsmith.cli.output import wants_json


def score(
    texts: TextsOrPairs = None,
    *,
    pair: Pair = None,
    file: File = None,
    text: TextColumn = None,
    format: Format = None,
    truncate: OwnCut = None,
    options: ModelOptions,
) -> None:
    """Give a number for a text or a pair of texts: how alike they are, how many stars.

    The model must have been fine-tuned for that (--task regress), here or elsewhere.

    \b
    Examples:
      bertsmith score "A man is dancing." --pair "Someone dances." --model my-scorer
      bertsmith score --in pairs.csv --model my-scorer
    """
    chunks = read_asked("regress", texts, file, pair, text, format)
    as_json = wants_json(options.as_json)
    model = options.load()
    model = model.need("classify", "give a number", "regress")
    cuts = open_cuts(model, "regress", truncate)

    def question(chunk: list[Input]) -> Sequence[Any]:
        found: Sequence[Any] = model.score(*part(chunk), truncate=truncate)
        return found

    for given, result in ask(chunks, question):
        cuts.add(result.truncated)
        write_answers(given, result, as_json)
    cuts.report()
