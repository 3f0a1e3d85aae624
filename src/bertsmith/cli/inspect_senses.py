"""`bertsmith inspect senses`: one word in many sentences, and how alike a model finds its uses at each layer."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.inputs import decode, decode_option
from bertsmith.cli.options import ModelOptions
from bertsmith.cli.output import Rows, write_note, write_table, write_text
from bertsmith.cli.pictures import PictureOut, check_out, show_picture
from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.inspection.senses import Senses
    from bertsmith.inspection.senses_scores import SenseScores

AROUND = 34  # characters to each side of the word that a table shows


def senses(
    word: Annotated[str | None, typer.Argument(metavar="WORD", help="The word to look at.")] = None,
    sentences: Annotated[
        list[str] | None, typer.Argument(metavar="SENTENCE", help="Sentences that hold it; else --in FILE.")
    ] = None,
    *,
    file: Annotated[
        str | None,
        typer.Option("--in", metavar="FILE", help="Sentences, one a line, each perhaps behind its label and a tab."),
    ] = None,
    example: Annotated[
        Literal["apple", "bank", "mouse"] | None, typer.Option(help="A word and sentences that come with bertsmith.")
    ] = None,
    nearest: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Find the nearest uses in this text (txt, jsonl, …, a folder) of any size."),
    ] = None,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="With --nearest: so many for each use.")] = 5,
    layer: Annotated[
        int, typer.Option(metavar="N", help="Of the tables and --nearest: 0 is the embedding, -1 the last.")
    ] = -1,
    out: PictureOut = None,
    benchmark: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Measure every layer on CoarseWSD-20 in this folder, by the nearest use."),
    ] = None,
    most: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="With --benchmark: so many uses of each word, drawn.")
    ] = None,
    options: ModelOptions,
) -> None:
    """Show how alike the uses of one word are to a model, layer by layer.

    With --out FILE.html it is one page to look at: a map, a heat map of cosines and the sentences, at every layer;
    FILE.svg stands still. Lines of --in may begin with a label and a tab, which become colours.

    \b
    Examples:
      bertsmith inspect senses --example bank --out bank.html
      bertsmith inspect senses bank "We sat on the bank of the river." "The bank raised its rates."
      bertsmith inspect senses --example apple --layer 1
    """
    check_out(out)
    if benchmark is not None:
        if word or sentences or file or example or nearest:
            raise typer.BadParameter("--benchmark stands alone: it brings its own words and sentences.")
        _measure(decode(benchmark, "--benchmark"), most, out, options)
        return
    if most is not None:
        raise typer.BadParameter("--most goes with --benchmark.")
    word, given = _gather(word, sentences, decode_option(file, "--in"), example)
    model = options.load()

    import bertsmith.inspect
    from bertsmith.inspection.nearest import pick_layer

    shown = pick_layer(layer, model)
    corpus = decode_option(nearest, "--nearest")
    found = bertsmith.inspect.senses(model, word, given, corpus=corpus, layer=shown, top_k=top_k)
    if found.truncated:
        write_note(f"cut: {counted(found.truncated, 'token')} of long sentences lay out of reach of the word")
    show_picture(found, out, options.as_json, lambda senses: _write(senses, shown, corpus is not None))


def _gather(
    word: str | None, sentences: list[str] | None, file: str | None, example: str | None
) -> tuple[str, list[Any]]:
    """The word and its sentences, from one of the three places."""
    from bertsmith.inspection.senses import read_sentences
    from bertsmith.inspection.senses_examples import EXAMPLES

    if example is not None:
        if word or sentences or file:
            raise typer.BadParameter("--example brings its word and its sentences; leave the others out.")
        return example, list(EXAMPLES[example])
    if not word:
        raise typer.BadParameter("name a WORD and sentences that hold it, or --example bank.")
    if bool(sentences) == bool(file):
        raise typer.BadParameter("give sentences behind the WORD, or --in FILE with a sentence a line.")
    name = decode(word, "WORD")
    if file is not None:
        return name, list(read_sentences(file))
    return name, [decode(text, f"sentence {number}") for number, text in enumerate(sentences or (), 1)]


def _write(found: "Senses", layer: int, shows_nearest: bool) -> None:
    _write_layers(found)
    _write_uses(found, layer)
    if shows_nearest:
        _write_nearest(found)


def _write_layers(found: "Senses") -> None:
    rows: Rows = [
        {
            "layer": one["layer"],
            "cosine of two uses": one["all"],
            **({"same label": one["same"], "other labels": one["other"]} if found.labels else {}),
            "groups": int(groups.max()) + 1,
        }
        for one, groups in zip(found.likeness(), found.groups, strict=True)
    ]
    sentences = len({use.number for use in found.uses[: found.given]})
    write_table(f"{found.title}: {found.given} in {sentences} sentence{'s' * (sentences != 1)}", rows)


def _write_uses(found: "Senses", layer: int) -> None:
    place = found.layers.index(layer)
    rows = []
    for i in range(found.given):
        cosines = found.cosines[place][i].copy()
        cosines[i] = -2.0
        other = int(cosines[: found.given].argmax()) if found.given > 1 else None
        rows.append(
            {
                "use": str(i + 1),
                **({"label": found.uses[i].label or ""} if found.labels else {}),
                "group": int(found.groups[place][i]) + 1,
                "in": shorten_use(found, i),
                "nearest": "" if other is None else str(other + 1),
                "cosine": None if other is None else float(cosines[other]),
            }
        )
    write_table(f"At layer {layer}", rows, ("use", "nearest"))


def _write_nearest(found: "Senses") -> None:
    for i, some in enumerate(found.nearest):
        rows = [{"cosine": score, "in": shorten_use(found, j), "where": found.uses[j].where} for j, score in some]
        write_table(f"Nearest to {i + 1}: {shorten_use(found, i)}  (of {found.count:,} uses)", rows)


def shorten_use(found: "Senses", i: int) -> str:
    """The word with a little of its sentence to each side."""
    use = found.uses[i]
    start, end = max(0, use.start - AROUND), min(len(use.text), use.end + AROUND)
    return "…" * (start > 0) + use.text[start:end] + "…" * (end < len(use.text))


def _measure(folder: str, most: int | None, out: str | None, options: ModelOptions) -> None:
    from bertsmith.cli.tokenizer import showing_progress

    if out is not None and out.lower().endswith(".html"):
        raise BertsmithError(f"{out}: scores by layer stand still; save them as .svg or .json.")
    model = options.load()

    import bertsmith.inspect

    with showing_progress() as tell:
        scores = bertsmith.inspect.score_senses(model, folder, most=most, tell=tell)
    show_picture(scores, out, options.as_json, _write_scores)


def _write_scores(scores: "SenseScores") -> None:
    data = scores.data()
    columns = zip(data["layers"], data["micro"], data["macro"], data["balanced"], strict=True)
    rows: list[dict[str, Any]] = [
        {"layer": str(layer), "all uses": micro, "mean of words": macro, "mean of senses": balanced}
        for layer, micro, macro, balanced in columns
    ]
    frequent = data["frequent"]
    rows.append({"layer": "most frequent sense", "all uses": frequent["micro"], "mean of words": frequent["macro"],
                 "mean of senses": None})  # fmt: skip
    title = f"Accuracy by the nearest of {data['train']:,} training uses, {data['test']:,} test uses"
    title += f" (at most {data['most']:,} of a word, drawn)" if data["most"] else ""
    write_table(title, rows, ("mean of senses",))
    best = max(range(len(scores.layers)), key=lambda place: scores.micro[place])
    words: Rows = [
        {"word": one["word"], "senses": len(one["senses"]), "test": one["test"], "frequent": one["frequent"],
         "layer 0": one["accuracy"][0], f"layer {scores.layers[best]}": one["accuracy"][best]}
        for one in data["words"]
    ]  # fmt: skip
    write_table("", words)
    write_text([("--out FILE.svg", "bold"), (" draws it", "dim")])
