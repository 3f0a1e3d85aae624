"""`bertsmith evaluate --benchmark blimp | masked | perplexity`: what a model knows without labels and fine-tuning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bertsmith.cli.benchmark import BenchmarkOptions
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import drop_nan, wants_json, write_json, write_note, write_table

PANEL = "Without labels (--benchmark blimp, masked, perplexity)"
# Of the options here, of a benchmark's and of a task's: those that each has a use for.
USED = {
    "blimp": ("sets", "limit", "way", "out", "overwrite"),
    "masked": ("samples", "seed", "counts", "way", "out", "overwrite", "length"),
    "perplexity": ("samples", "seed", "way", "out", "overwrite", "length"),
}
INSTEAD = {
    "limit": "of a text, --samples N is how many words are asked for",
    "samples": "of blimp, --limit N takes the first pairs of each set",
}
NEEDED = {
    "blimp": "the folder with its .jsonl files: --benchmark blimp DIR",
    "masked": "a text or a corpus: --benchmark masked FILE",
    "perplexity": "a text or a corpus: --benchmark perplexity FILE",
}


@dataclass(frozen=True)
class UnlabelledOptions:
    """Which part of it, and how likelihood is measured."""

    sets: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="blimp: some of its sets, by name; else all in DIR.", rich_help_panel=PANEL),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="blimp: the first pairs of each set only.", rich_help_panel=PANEL),
    ] = None
    way: Annotated[
        Literal["plain", "within-word"] | None,
        typer.Option(
            help="What is masked: each token alone, or the later pieces of its word too.  [default: plain]",
            rich_help_panel=PANEL,
        ),
    ] = None
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Of the text: words to ask for.  [default: 5000]", rich_help_panel=PANEL),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Of the sample of words.  [default: 1]", rich_help_panel=PANEL),
    ] = None
    counts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="masked: a text that says how frequent words are; else FILE.", rich_help_panel=PANEL
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def refuse(self) -> None:
        """None of them is for anything else."""
        for name in self.given():
            raise typer.BadParameter(f"--{name} is for --benchmark {tell_homes(name)}; leave it out.")


def tell_homes(option: str) -> str:
    """The benchmarks that have a use for it; nothing where none has."""
    *others, last = [home for home, used in USED.items() if option in used] or [""]
    return f"{', '.join(others)} or {last}" if others else last


def run_unlabelled(
    asked: BenchmarkOptions, here: UnlabelledOptions, place: Path | None, options: ModelOptions,
    settings: Mapping[str, Any],
) -> None:  # fmt: skip
    """Measures, and shows a table or one object."""
    import bertsmith
    from bertsmith.evaluation import unlabelled_tables as tables

    name = str(asked.benchmark)
    others = {each.name: value for each in fields(asked) if (value := getattr(asked, each.name))}
    given = {**others, **here.given(), **settings}
    del given["benchmark"]
    for other in given:
        if other not in USED[name]:
            flag, homes = f"--{other.replace('_', '-')}", tell_homes(other)
            why = f"{flag} is for --benchmark {homes}" if homes else f"{flag} has no use with --benchmark {name}"
            instead = INSTEAD.get(other, "leave it out") if homes else "nothing is fine-tuned there"
            raise typer.BadParameter(f"{why}; {instead}.")
    if place is None:
        raise typer.BadParameter(f"--benchmark {name} needs {NEEDED[name]}.")
    as_json = wants_json(options.as_json)
    numbers: Sequence[str]
    if name == "blimp":
        sets = given.pop("sets", None)
        named = None if sets is None else [one.strip() for one in sets.split(",")]
        found = bertsmith.evaluate_blimp(place, options.load(), sets=named, say=write_note, **given)
        rows, numbers, notes = tables.blimp_rows(found), tables.BLIMP_NUMBERS, tables.blimp_notes(found)
    elif name == "perplexity":
        found = bertsmith.evaluate_perplexity(place, options.load(), **given)
        rows, numbers, notes = tables.perplexity_rows(found), tables.MASKED_NUMBERS, tables.perplexity_notes(found)
    else:
        found = bertsmith.evaluate_masked(place, options.load(), **given)
        rows, numbers, notes = tables.masked_rows(found), tables.MASKED_NUMBERS, tables.masked_notes(found)
    if as_json:
        write_json(drop_nan(found))
        return write_note(notes[-1])
    write_table(f"{name}: {found['model']}", rows, numbers=numbers, narrow=True)
    for note in notes:
        write_note(note)
