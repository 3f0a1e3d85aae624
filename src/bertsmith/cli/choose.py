"""`bertsmith choose`: which of several choices goes with a prompt."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.asking import Input, Question
from bertsmith.cli.bulk import BulkOptions, Out, write_file
from bertsmith.cli.inputs import ask, decode, decode_option
from bertsmith.cli.jobs import open_cuts, read_file, refuse_format
from bertsmith.cli.options import CutPolicy, File, Format, ModelOptions
from bertsmith.cli.output import Cuts, wants_json, write_json, write_table

if TYPE_CHECKING:
    from bertsmith.model import Model


def choose(
    prompt: Annotated[str | None, typer.Argument(metavar="PROMPT", help="A question, or how a text begins.")] = None,
    choices: Annotated[list[str] | None, typer.Argument(metavar="CHOICE", help="Two choices or more.")] = None,
    *,
    file: File = None,
    prompt_column: Annotated[
        str | None, typer.Option("--prompt", metavar="COLUMN", help="With --in: the column of the prompt.")
    ] = None,
    choices_column: Annotated[
        str | None, typer.Option("--choices", metavar="COLUMN", help="With --in: the column of the choices.")
    ] = None,
    format: Format = None,
    truncate: Annotated[
        CutPolicy | None,
        typer.Option(help="What to do with a choice that is too long with its prompt; else as it learnt."),
    ] = None,
    out: Out = None,
    bulk: BulkOptions,
    options: ModelOptions,
) -> None:
    """Choose what goes with a prompt: an answer, an ending.

    The model must have been fine-tuned to choose (--task choose), here or elsewhere.

    \b
    Examples:
      bertsmith choose "Where would you find a lantern?" "a dark place" "an antique shop" --model my-chooser
      bertsmith choose --in questions.jsonl --model my-chooser
      bertsmith choose --in questions.jsonl --out chosen.jsonl --model my-chooser
    """
    question = Question("choose", {"truncate": truncate})

    def count_cuts(home: "Model") -> Cuts:
        return open_cuts(home, "choose", truncate, without="windows")

    named = {"prompt": prompt_column, "choices": choices_column}
    columns = {role: decode_option(column, f"--{role}") for role, column in named.items()}
    if file is not None and prompt is not None:
        raise typer.BadParameter("give a prompt with its choices or --in FILE, not both.")
    refuse_format(file, format)
    if bulk.asked(file, out):
        write_file(question, file, columns, format, out, bulk, options, count_cuts)
        return
    is_file = file is not None
    chunks = read_file(question, file, columns, format) if is_file else read_asked(prompt, choices, columns)
    as_json = wants_json(options.as_json)
    model = question.find_home(options.load())
    cuts = count_cuts(model)

    def put(chunk: list[Input]) -> Sequence[Any]:
        found: Sequence[Any] = model.choose(
            [given.text for given in chunk], [given.example.choices for given in chunk], truncate=truncate
        )
        return found

    for given, result in ask(chunks, put):
        cuts.add(result.truncated)
        if as_json:
            write_json({**given.describe(), **result.as_dict()})
        else:
            write_table(given.text, result.answers)
    cuts.report()


def read_asked(
    prompt: str | None, choices: Sequence[str] | None, columns: Mapping[str, str | None]
) -> Iterator[list[Input]]:
    """The one prompt of the command."""
    if prompt is None or not choices:
        raise typer.BadParameter("give a prompt and two choices or more, or --in FILE.")
    if any(columns.values()):
        raise typer.BadParameter("a column was named, but no file; give --in FILE too.")
    from bertsmith.data.examples import ChoiceExample

    texts = tuple(decode(choice, f"choice {number}") for number, choice in enumerate(choices, 1))
    text = decode(prompt, "PROMPT")
    return iter([[Input("", text, None, ChoiceExample(text, texts))]])
