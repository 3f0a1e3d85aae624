"""A first look, offline: the model that comes with bertsmith does each of its jobs on a few lines.

Run it with `make demo`. `--svg FILE` also draws what the terminal shows.
"""

import re
import sys
import time
from itertools import combinations
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import bertsmith

MASKS = ["The poor don't have any [MASK].", "if you don't want to inhale viruses, you should wear a [MASK]."]
FIRST = "the man went to the store"
SECONDS = ["he bought a gallon of milk", "penguins are flightless"]
PARAGRAPH = (
    "The National University of Singapore (NUS) was founded in 1905 and is the oldest university in the country. "
    "Students can learn medicine, law, engineering and music there."
)
QUESTIONS = [
    "What can we learn in NUS?",
    "What does NUS mean?",
    "When was NUS founded?",
    "What does it cost to study there?",
]
REVIEWS = ["A warm, funny film that stays with you.", "Two hours of my life that I will not get back."]
NAMES = "Marie Curie was born in Warsaw and taught at the University of Paris."
PREMISE = "A man plays a guitar on the street."
HYPOTHESES = ["Someone makes music outdoors.", "The street is empty.", "He earns money with it."]
ALIKE = ["A man is playing a guitar.", "Someone plays an instrument.", "The shares fell on Monday."]
HEADLINE, LABELS = "The striker scored twice in the final.", ["sport", "politics", "cooking"]
BANKS = {
    "money": "It is safest to deposit your money in the bank.",
    "river": "All the animals lined up along the river bank.",
    "blood": "The blood bank needs donors this week.",
}
QUERIES = ["can you get medicine for someone pharmacy", "an animal that is good at escaping", "my computer is broken"]

PAGE = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg"><style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
{styles}</style><defs>{lines}</defs><rect fill="#0c1420" width="100%" height="100%" rx="8"/>
<g transform="translate({terminal_x}, 24)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>"""

console = Console(width=100, highlight=False, record="--svg" in sys.argv)


def title(words: str, command: str) -> None:
    console.print(f"\n[bold]{words}[/bold]  [dim]bertsmith {command}[/dim]")


def bar(share: float, width: int = 12) -> Text:
    """A share as a line of blocks, in eighths of a character."""
    whole, rest = divmod(round(share * width * 8), 8)
    return Text(("█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width), style="cyan")


def lines(*rows: tuple[str | Text, ...], head: tuple[str, ...] = ()) -> None:
    table = Table(box=None, show_header=bool(head), header_style="dim", padding=(0, 2, 0, 2))
    for place in range(len(rows[0])):
        table.add_column(head[place] if head else "", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def show_masks(model: bertsmith.Model) -> None:
    title("Fill the gap", "fill TEXT")
    for text, found in zip(MASKS, model.fill(MASKS, top_k=5), strict=True):
        words = "  ".join(f"[green]{one['token_str']}[/green] [dim]{one['score']:.0%}[/dim]" for one in found)
        console.print(f"  {text.replace('[MASK]', '____')}\n     {words}")


def show_pairs(model: bertsmith.Model) -> None:
    title("Does it follow?", "follows A B")
    found = model.follows([FIRST] * len(SECONDS), SECONDS)
    share = [next(one["score"] for one in answers if one["label"] == "follows") for answers in found]
    lines(*((f"{FIRST} → {text}", bar(one), f"{one:.0%}") for text, one in zip(SECONDS, share, strict=True)))


def show_answers(model: bertsmith.Model) -> None:
    title("Answer from a text", "answer QUESTION --context TEXT")
    console.print(Padding(f"[dim]{PARAGRAPH}[/dim]", (0, 2)))
    found = model.answer(QUESTIONS, PARAGRAPH)
    said = [
        f"[green]{one[0]['answer']}[/green]" if one[0]["answer"] else "[dim](the text does not say)[/dim]"
        for one in found
    ]
    lines(*zip(QUESTIONS, said, strict=True))


def show_names(model: bertsmith.Model) -> None:
    title("Tag names", "tag TEXT")
    said, at = "", 0
    for one in model.tag(NAMES):
        said += f"{NAMES[at : one['start']]}[green]{one['word']}[/green] [dim]{one['entity_group']}[/dim]"
        at = one["end"]
    console.print(f"  {said}{NAMES[at:]}")


def show_judgements(model: bertsmith.Model) -> None:
    title("Judge", "classify TEXT [--pair TEXT | --labels A,B]   score TEXT --pair TEXT")
    moods = model.classify(REVIEWS, top_k=1)
    rows = [(text, f"[green]{one[0]['label']}[/green]", f"{one[0]['score']:.0%}")
            for text, one in zip(REVIEWS, moods, strict=True)]  # fmt: skip
    judged = model.classify([PREMISE] * len(HYPOTHESES), HYPOTHESES, top_k=1)
    rows += [(f"{PREMISE} → {text}", f"[green]{one[0]['label']}[/green]", f"{one[0]['score']:.0%}")
             for text, one in zip(HYPOTHESES, judged, strict=True)]  # fmt: skip
    topic = model.classify(HEADLINE, labels=LABELS, top_k=1)[0]
    rows += [(f"{HEADLINE} ({', '.join(LABELS)}?)", f"[green]{topic['label']}[/green]",
              f"{topic['score']:.0%}")]  # fmt: skip
    alike = model.score([ALIKE[0]] * 2, ALIKE[1:])
    rows += [(f"{ALIKE[0]} / {text}", "alike, 0 to 5", f"[green]{one[0]['score']:.1f}[/green]")
             for text, one in zip(ALIKE[1:], alike, strict=True)]  # fmt: skip
    lines(*rows)


def word_vector(model: bertsmith.Model, sentence: str, word: str, layer: int):
    """The hidden state of a word in its sentence: the mean of its pieces."""
    start, end = re.search(rf"{word}\w*", sentence).span()
    pieces = [i for i, (a, b) in enumerate(model.tokenize(sentence).offsets) if start <= a < b <= end]
    vector = model.hidden(sentence, layers=[layer])[0][pieces].mean(axis=0)
    return vector / (vector @ vector) ** 0.5


def show_meanings(model: bertsmith.Model) -> None:
    title("One word, three meanings", "inspect senses --example bank")
    for name, sentence in BANKS.items():
        console.print(f"  {name}: [dim]{sentence}[/dim]")
    rows = []
    for layer, where in ((0, "before the first layer"), (-1, "after the last, in context")):
        vectors = {name: word_vector(model.use("search"), text, "bank", layer) for name, text in BANKS.items()}
        for number, (one, other) in enumerate(combinations(BANKS, 2)):
            cosine = float(vectors[one] @ vectors[other])
            rows.append(("" if number else where, f"{one} / {other}", f"{cosine:.2f}"))
    lines(*rows, head=("cosine of “bank”", "", ""))


def show_search(model: bertsmith.Model) -> None:
    texts = (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
    title(f"Search by meaning, {len(texts)} sentences", "search WORDS --in FOLDER --how dense")
    queries, found = (model.embed(some, normalize=True) for some in (QUERIES, texts))
    scores = queries @ found.T  # cosines, (queries, sentences)
    rows = [(query, f"{row.max():.2f}", f"[green]{texts[row.argmax()]}[/green]")
            for query, row in zip(QUERIES, scores, strict=True)]  # fmt: skip
    lines(*rows)


def main() -> None:
    start = time.perf_counter()
    model = bertsmith.load()
    about = model.info()
    console.print(
        f"[bold]{about['family']}[/bold], {about['depth']} layers of width {about['width']}, "
        f"{about['parameters'] / 1e6:.1f} million parameters and {len(model.adapters)} adapters, on {about['device']}"
    )
    for show in (show_masks, show_pairs, show_answers, show_names, show_judgements, show_meanings, show_search):
        show(model)
    console.print(f"\n{time.perf_counter() - start:.1f} seconds, no network. Next: a model of your own,\n"
                  "  [bold].venv/bin/bertsmith finetune --train examples/tickets.csv --out my-model[/bold],\n"
                  "or a page to play on, [bold].venv/bin/bertsmith serve[/bold]; the README has the rest.")  # fmt: skip
    if console.record:
        console.save_svg(sys.argv[-1], title="make demo", code_format=PAGE)


if __name__ == "__main__":
    main()
