"""`bertsmith inspect heads`: what each attention head is for, by cutting it."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.flags import ColumnFlags, Flags, check_flags
from bertsmith.cli.inputs import decode, decode_option
from bertsmith.cli.options import Format, ModelOptions, look_here
from bertsmith.cli.output import write_note, write_table
from bertsmith.cli.pictures import PictureOut, check_out, show_picture
from bertsmith.cli.tokenizer import showing_progress
from bertsmith.training.choices import TaskChoices

if TYPE_CHECKING:
    from bertsmith.inspection.ablation import HeadEffects

LISTS = ("choose", "rerank")
CHOICES = ("truncate", "length", "overlap", "question_length", "answer_length", "label_names", "separator", "positive")


def heads(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="With --job: what is asked, as its verb takes it.")
    ] = None,
    *,
    data: Annotated[str | None, typer.Option(metavar="FILE", help="Labelled examples to score the model on.")] = None,
    job: Annotated[
        Literal["fill", "follows", "classify", "score", "tag", "answer", "choose", "rerank", "similar"] | None,
        typer.Option(help="Instead of --data: look at the answer to TEXT alone."),
    ] = None,
    cut: Annotated[
        str | None, typer.Option("--heads", metavar="L.H,…", help="Cut these together: 3.5,2.1, counted from 0.")
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="ANSWER", help="With --job: the answer; else its own.")] = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the model was fine-tuned for; else its folder says.")
    ] = None,
    format: Format = None,
    out: PictureOut = None,
    columns: Annotated[dict[str, Any], ColumnFlags()],
    choices: Annotated[dict[str, Any], Flags(TaskChoices, "Task", CHOICES)],
    options: ModelOptions,
) -> None:
    """Cut each attention head in turn and measure what it was for: the change of the score, or of one answer.

    The score is that of `evaluate`; each change has the interval of a comparison example by example, and says how many
    answers are others. With --out FILE.html or FILE.svg it is a heat map; FILE.json has the numbers.

    \b
    Examples:
      bertsmith inspect heads --data reviews.csv --model my-classifier --out heads.html
      bertsmith inspect heads --data reviews.csv --model my-classifier --heads 0.5,0.1
      bertsmith inspect heads --job similar "The river bank was muddy." "A savings bank."
    """
    check_flags({**columns, **choices})
    if (data is None) == (job is None):
        raise typer.BadParameter("give --data FILE to score on, or --job NAME with its TEXT, one of the two.")
    if data is not None and (texts or target is not None):
        raise typer.BadParameter("TEXT and --target are for --job; leave them out with --data.")
    if job is not None and (columns or choices or task or format):
        raise typer.BadParameter("--task, --format, columns and the task's choices are for --data; leave them out.")
    check_out(out)
    look_here(task)
    given: list[Any] = [decode(text, f"text {number}") for number, text in enumerate(texts or (), 1)]
    model = options.load()

    import bertsmith.inspect

    if job is not None:
        asked = [*given[:1], given[1:]] if job in LISTS else given
        named = decode_option(target, "--target")
        with showing_progress() as tell:
            found = bertsmith.inspect.ablate_answer(model, job, *asked, target=named, heads=cut, tell=tell)
    else:
        with showing_progress() as tell:
            found = bertsmith.inspect.ablate(
                model, data, task=task, heads=cut, format=format, tell=tell, **columns, **choices
            )
    show_picture(found, out, options.as_json, _write)


def _write(found: "HeadEffects") -> None:
    from bertsmith.inspection.heads_drawing import tell_scale, tell_together, tell_whole

    data = found.data()
    write_note(tell_whole(data))
    if data["together"] is not None:
        write_note(tell_together(data))
        return
    rows = [
        {"layer": layer, **{str(head): _show(found, layer, head) for head in range(data["heads"])}}
        for layer in range(data["layers"])
    ]
    title = f"Change of {data['what']} without each head" + (", in points" if _is_share(found) else ", in thousandths")
    title += "; * is p < 0.05" if data["low"] is not None else ""
    write_table(title, rows, numbers=[str(head) for head in range(data["heads"])], narrow=True)
    if data["low"] is not None:
        write_note(tell_scale(data).rpartition("; ")[2])


def _show(found: "HeadEffects", layer: int, head: int) -> str:
    effect = found.effects[layer, head]
    mark = "*" if effect.p is not None and effect.p < 0.05 else ""
    shown = f"{100 * effect.change:+.1f}" if _is_share(found) else f"{1000 * effect.change:+.0f}"  # 12 fit
    return f"{shown}{mark}".replace("-", "−") if effect.change else f"0{mark}"


def _is_share(found: "HeadEffects") -> bool:
    return found.spread is not None and found.what not in ("mse", "mae")
