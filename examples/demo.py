"""A first look, offline: a model of your own, one word with three meanings, a search by meaning.

Run it with `make demo`. The model is all-MiniLM-L6-v2, a real BERT of 6 layers, from a package that carries its
weights. `--svg FILE` also draws what the terminal shows.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

import bertsmith

BANKS = {
    "money": "It is safest to deposit your money in the bank.",
    "river": "All the animals lined up along the river bank.",
    "blood": "Today, blood banks collect blood.",
}
QUERIES = ["can you get medicine for someone pharmacy", "an animal that is good at escaping", "my computer is broken"]
TICKETS = ["Where is the parcel I ordered on Monday?", "You took the money twice.", "My password does not work."]

PAGE = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg"><style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
{styles}</style><defs>{lines}</defs><rect fill="#0c1420" width="100%" height="100%" rx="8"/>
<g transform="translate({terminal_x}, 24)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>"""

console = Console(width=100, highlight=False, record="--svg" in sys.argv)


def word_vector(model: bertsmith.Model, sentence: str, word: str, layer: int):
    """The hidden state of a word in its sentence: the mean of its pieces."""
    start = sentence.index(word)
    pieces = [i for i, (a, b) in enumerate(model.tokenize(sentence).offsets) if start <= a < b <= start + len(word) + 1]
    vector = model.hidden(sentence, layers=[layer])[0][pieces].mean(axis=0)
    return vector / (vector @ vector) ** 0.5


def show_tuning() -> None:
    data = Path(__file__).parent / "tickets.csv"
    lines = len(data.read_text(encoding="utf-8").splitlines()) - 1
    console.print(f"\n[bold]1. A model of your own[/bold] from the {lines} lines of {data.name}")
    with TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        run = bertsmith.finetune("classify", data, out=out, epochs=8, rate=1e-4, batch=16, dev_share=0.2)
        score = run.metrics["dev"]["accuracy"]
        console.print(
            f"{run.outcome.speed.seconds:.0f} seconds of training; right on {score['value']:.0%} of {score['n']} lines "
            f"set apart (95 % interval {score['low']:.0%} to {score['high']:.0%})"
        )
        table = Table(header_style="dim")
        for column in ("a new ticket", "label", "score"):
            table.add_column(column, justify="right" if column == "score" else "left")
        for text, answer in zip(TICKETS, run.model.classify(TICKETS, top_k=1), strict=True):
            table.add_row(text, answer[0]["label"], f"{answer[0]['score']:.2f}")
        console.print(table)


def show_meanings(model: bertsmith.Model) -> None:
    console.print("\n[bold]2. One word, three meanings[/bold]: cosine between the vectors of “bank”")
    for layer, title in ((0, "before the first layer"), (-1, "after the last layer, in context")):
        vectors = {name: word_vector(model, sentence, "bank", layer) for name, sentence in BANKS.items()}
        table = Table(title=title, title_justify="left", header_style="dim")
        for column in ("", *BANKS, "sentence"):
            table.add_column(column, justify="left" if column in ("", "sentence") else "right")
        for name, sentence in BANKS.items():
            table.add_row(name, *(f"{float(vectors[name] @ v):.2f}" for v in vectors.values()), sentence)
        console.print(table)


def show_search(model: bertsmith.Model) -> None:
    texts = (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
    console.print(f"\n[bold]3. Search by meaning[/bold] over {len(texts)} sentences")
    scores = model.embed(QUERIES) @ model.embed(texts).T  # unit vectors: cosines, (queries, sentences)
    table = Table(header_style="dim")
    for column in ("query", "score", "sentence"):
        table.add_column(column, justify="right" if column == "score" else "left")
    for query, row in zip(QUERIES, scores, strict=True):
        for rank, i in enumerate(row.argsort()[::-1][:2]):
            table.add_row("" if rank else query, f"{row[i]:.2f}", texts[i], end_section=bool(rank))
    console.print(table)


def main() -> None:
    model = bertsmith.load()
    about = model.info()
    console.print(
        f"[bold]{about['family']}[/bold], {about['depth']} layers of width {about['width']}, "
        f"{about['parameters'] / 1e6:.1f} million parameters, on {about['device']}"
    )
    show_tuning()
    show_meanings(model)
    show_search(model)
    console.print("\nNext: [bold].venv/bin/bertsmith --help[/bold], or the README.")
    if console.record:
        console.save_svg(sys.argv[-1], title="make demo", code_format=PAGE)


if __name__ == "__main__":
    main()
