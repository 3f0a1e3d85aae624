"""`bertsmith classify`: which class a text or a pair of texts is of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from bertsmith.asking import Input, Question
from bertsmith.cli.bulk import BulkOptions, Out, write_file
from bertsmith.cli.inputs import ask, decode
from bertsmith.cli.jobs import asks_file, name_columns, open_cuts, part, read_asked, write_answers
from bertsmith.cli.options import CutPolicy, File, Format, ModelOptions, OwnCut, Pair, TextColumn, TextsOrPairs
from bertsmith.cli.output import Cuts, wants_json

if TYPE_CHECKING:
    from bertsmith.model import Model


def classify(
    texts: TextsOrPairs = None,
    *,
    pair: Pair = None,
    file: File = None,
    text: TextColumn = None,
    format: Format = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Classes it never learnt; the model must be one of inference (NLI)."),
    ] = None,
    hypothesis: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --labels: what a label claims, {} in its place.")
    ] = None,
    several: Annotated[
        bool, typer.Option("--several", help="With --labels: judge each on its own, not one of them all.")
    ] = False,
    top_k: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="So many labels; else all classes, or the labels that count.")
    ] = None,
    truncate: OwnCut = None,
    out: Out = None,
    bulk: BulkOptions,
    options: ModelOptions,
) -> None:
    """Tell which class a text is of, or which labels it has.

    The model must have been fine-tuned to classify, here or elsewhere. With --in and --out a file of any size is
    answered in bounded memory, and the same command goes on after a kill.

    \b
    Examples:
      bertsmith classify "A wonderful film." "Two hours of my life, gone."
      bertsmith classify --in reviews.csv --model my-classifier
      bertsmith classify --in reviews.csv --out moods.jsonl --on-error skip --model my-classifier
      bertsmith classify "The match was a draw." --labels sport,politics
    """
    zero = read_labels(labels, hypothesis, several)
    if zero and pair is not None:
        raise typer.BadParameter("--labels are judged for a text, not for a pair; leave --pair out.")
    question = Question("classify", {"top_k": top_k, "truncate": truncate, **zero})

    def count_cuts(home: "Model") -> Cuts:
        return Cuts(truncate or "head", choices=get_args(CutPolicy)) if zero else open_cuts(home, "classify", truncate)

    if bulk.asked(file, out):
        asks_file(texts, file)
        write_file(question, file, name_columns(pair, text), format, out, bulk, options, count_cuts)
        return
    chunks = read_asked(question, texts, file, pair, text, format)
    as_json = wants_json(options.as_json)
    model = options.load()  # it finds the adapter for single texts, and the one for pairs
    cuts = count_cuts(question.find_home(model, pairs=None if pair is None else True))

    def put(chunk: list[Input]) -> Sequence[Any]:
        found: Sequence[Any] = model.classify(*part(chunk), top_k=top_k, truncate=truncate, **zero)
        return found

    for given, result in ask(chunks, put):
        cuts.add(result.truncated)
        write_answers(given, result, as_json, otherwise={"label": "no label reaches its threshold"})
    cuts.report()


def read_labels(labels: str | None, hypothesis: str | None, several: bool) -> dict[str, Any]:
    """What is asked about labels that were never learnt; nothing where none were named."""
    if labels is None:
        if hypothesis is not None or several:
            raise typer.BadParameter("--hypothesis and --several say how --labels are judged; give those too.")
        return {}
    named = decode(labels, "--labels").split(",")
    claim = {} if hypothesis is None else {"hypothesis": decode(hypothesis, "--hypothesis")}
    return {"labels": named, "several": several, **claim}
