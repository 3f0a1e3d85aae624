"""`bertsmith choose`: which of several choices goes with a prompt."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from bertsmith.cli.inputs import Input, ask, decode, decode_option
from bertsmith.cli.jobs import open_cuts, read_file
from bertsmith.cli.options import CutPolicy, File, Format, ModelOptions
from bertsmith.cli.output import wants_json, write_json, write_table


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
    options: ModelOptions,
) -> None:
    """Choose what goes with a prompt: an answer, an ending.

    The model must have been fine-tuned to choose (--task choose), here or elsewhere.

    \b
    Examples:
      bertsmith choose "Where would you find a lantern?" "a dark place" "an antique shop" --model my-chooser
      bertsmith choose --in questions.jsonl --model my-chooser
    """
    chunks = read_asked(prompt, choices, file, prompt_column, choices_column, format)
    as_json = wants_json(options.as_json)
    model = options.load()
    model = model.need("choose", "choose")
    cuts = open_cuts(model, "choose", truncate, without="windows")

    def question(chunk: list[Input]) -> Sequence[Any]:
        found: Sequence[Any] = model.choose(
            [given.text for given in chunk], [given.example.choices for given in chunk], truncate=truncate
        )
        return found

    for given, result in ask(chunks, question):
        cuts.add(result.truncated)
        if as_json:
            write_json({"input": given.text, **result.as_dict()})
        else:
            write_table(given.text, result.answers)
    cuts.report()


def read_asked(
    prompt: str | None, choices: Sequence[str] | None, file: str | None, prompt_column: str | None,
    choices_column: str | None, format: str | None,
) -> Iterator[list[Input]]:  # fmt: skip
    """The inputs of the command: one prompt, or a file."""
    if file is not None:
        if prompt is not None:
            raise typer.BadParameter("give a prompt with its choices or --in FILE, not both.")
        columns = {"prompt": prompt_column, "choices": choices_column}
        return read_file("choose", file, {role: decode_option(c, f"--{role}") for role, c in columns.items()}, format)
    if prompt is None or not choices:
        raise typer.BadParameter("give a prompt and two choices or more, or --in FILE.")
    if prompt_column is not None or choices_column is not None:
        raise typer.BadParameter("a column was named, but no file; give --in FILE too.")
    from bertsmith.data.examples import ChoiceExample

    texts = tuple(decode(choice, f"choice {number}") for number, choice in enumerate(choices, 1))
    text = decode(prompt, "PROMPT")
    return iter([[Input("", text, None, ChoiceExample(text, texts))]])
