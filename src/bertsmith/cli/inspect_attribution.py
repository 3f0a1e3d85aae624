"""`bertsmith inspect attribution`: which words made an answer."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.inputs import decode, decode_option
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import write_note, write_table
from bertsmith.cli.pictures import PictureOut, check_out, show_picture
from bertsmith.cli.tokenizer import showing_progress
from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.inspection.attribution import Attribution, Part

Job = Literal["fill", "follows", "classify", "score", "tag", "answer", "choose", "rerank", "similar"]
LISTS = ("choose", "rerank")  # all texts behind the first are a list


def attribution(
    job: Annotated[Job, typer.Argument(metavar="JOB", help="What the model is asked for.")],
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="As the verb of that name takes them; of answer question and context."),
    ],
    *,
    target: Annotated[
        str | None,
        typer.Option(metavar="ANSWER", help="Explain this answer: a label, a word for the mask, …; else its own."),
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="WORD|N", help="tag: which word; fill: which mask, counted from 0.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="classify: classes it never learnt (a model of inference).")
    ] = None,
    method: Annotated[
        Literal["all", "integrated", "gradient", "occlusion"], typer.Option(help="How words are weighed.")
    ] = "all",
    baseline: Annotated[
        Literal["mask", "pad", "zero"] | None,
        typer.Option(help="What stands for a word that is not there; else the first that the model has."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of the integral; else as many as make its sum right.")
    ] = None,
    out: PictureOut = None,
    options: ModelOptions,
) -> None:
    """Show which words made an answer, for every job: what each adds to the answer's raw score, or takes from it.

    Integrated gradients add up to the difference to a text without words, gradient × input is the slope at the text
    itself, occlusion is how far the score falls without the word. With --out FILE.html it is one page to look at;
    FILE.svg stands still, FILE.json has the numbers.

    \b
    Examples:
      bertsmith inspect attribution similar "The river bank was muddy." "A savings bank." --out words.html
      bertsmith inspect attribution classify "A wonderful film." --out words.html
      bertsmith inspect attribution tag "Ada lives in London." --at London
    """
    check_out(out)
    given: list[Any] = [decode(text, f"text {number}") for number, text in enumerate(texts, 1)]
    if job in LISTS:
        given = [given[0], given[1:]]
    named = decode_option(at, "--at")
    named_labels = decode_option(labels, "--labels")
    chosen = decode_option(target, "--target")
    model = options.load()

    import bertsmith.inspect

    place = _take_place(job, named)
    with showing_progress() as tell:
        found = bertsmith.inspect.attribute(
            model, job, *given, target=chosen, at=place, method=method, steps=steps, baseline=baseline,
            labels=None if named_labels is None else named_labels.split(","), tell=tell,
        )  # fmt: skip
    show_picture(found, out, options.as_json, _write)
    _tell(found)


def _take_place(job: str, at: str | None) -> int | str | None:
    """A number is a mask's; of tag it is a word's, unless the text holds it as a word, which is looked at there."""
    if job != "fill" or at is None:
        return at
    if not at.isdecimal():
        raise BertsmithError(f"--at {at} is no number; of fill it is the number of a mask, counted from 0.")
    return int(at)


def _write(found: "Attribution") -> None:
    for part in found.parts:
        _write_part(found, part)


def _write_part(found: "Attribution", part: "Part") -> None:
    """A line a word, a column a method, and a bar of the first."""
    first = next(iter(part.found.values())).units
    most = max(map(abs, first.tolist()), default=0.0) or 1.0
    rows = [
        {
            "word": name,
            **{method: f"{one.units[i]:+.3f}".replace("-", "−") for method, one in part.found.items()},
            "": _draw(float(first[i]) / most),
        }
        for i, name in enumerate(part.names)
    ]
    title = f"{found.job}: {found.target}  |  {part.name}, score {part.score:.3f}, baseline {part.start:.3f}"
    write_table(title, rows, numbers=list(part.found), narrow=True)


def _draw(share: float, wide: int = 10) -> str:
    """A bar to the right of the middle, or to its left."""
    count = round(abs(share) * wide)
    return f"{' ' * wide}│{'█' * count}" if share >= 0 else f"{' ' * (wide - count)}{'█' * count}│"


def _tell(found: "Attribution") -> None:
    if not found.is_complete:
        steps = max(part.found["integrated"].steps for part in found.parts)
        write_note(
            f"integrated gradients add up to {100 * (found.missed or 0):.1f} % beside the score's difference after "
            f"{counted(steps, 'step')}; another --baseline or more --steps may do better"
        )
    cut = sum(part.truncated for part in found.parts)
    if cut:
        write_note(f"cut: {counted(cut, 'token')} did not fit and stayed unexplained")
