"""`bertsmith score`: a number for a text or a pair of texts."""

from collections.abc import Sequence
from typing import Any

from bertsmith.asking import Input, Question
from bertsmith.cli.bulk import BulkOptions, Out, write_file
from bertsmith.cli.inputs import ask
from bertsmith.cli.jobs import asks_file, name_columns, open_cuts, part, read_asked, write_answers
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
    out: Out = None,
    bulk: BulkOptions,
    options: ModelOptions,
) -> None:
    """Give a number for a text or a pair of texts: how alike they are, how many stars.

    The model must have been fine-tuned for that (--task regress), here or elsewhere.

    \b
    Examples:
      bertsmith score "A man is dancing." --pair "Someone dances."
      bertsmith score --in pairs.csv --model my-scorer
      bertsmith score --in pairs.csv --out numbers.jsonl --model my-scorer
    """
    question = Question("score", {"truncate": truncate})
    if bulk.asked(file, out):
        asks_file(texts, file)
        columns = name_columns(pair, text)
        write_file(question, file, columns, format, out, bulk, options, lambda m: open_cuts(m, "regress", truncate))
        return
    chunks = read_asked(question, texts, file, pair, text, format)
    as_json = wants_json(options.as_json)
    model = options.load()
    cuts = open_cuts(question.find_home(model, pairs=None if pair is None else True), "regress", truncate)

    def put(chunk: list[Input]) -> Sequence[Any]:
        found: Sequence[Any] = model.score(*part(chunk), truncate=truncate)
        return found

    for given, result in ask(chunks, put):
        cuts.add(result.truncated)
        write_answers(given, result, as_json)
    cuts.report()
