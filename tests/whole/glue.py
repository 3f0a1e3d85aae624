"""A folder laid out as GLUE is, with a few dozen lines a task of words that the tiny encoder knows."""

from pathlib import Path

from whole.tiny import DISLIKED, LIKED, THINGS


def texts(start: str) -> list[tuple[str, int]]:
    return [(f"{start} {thing} was {word}", good) for good, words in enumerate((DISLIKED, LIKED))
            for word in words[:3] for thing in THINGS[:3]]  # fmt: skip


def write(path: Path, *rows: tuple[object, ...]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def make_glue(folder: Path) -> Path:
    """CoLA without header, SST-2, STS-B with its numbers, and of MNLI a subset under a name of its own."""
    for side, start in (("train", "the"), ("dev", "a")):
        marked = [("gj04", good, "" if good else "*", text) for text, good in texts(start)]
        write(folder / "CoLA" / f"{side}.tsv", *marked)
        write(folder / "SST-2" / f"{side}.tsv", ("sentence", "label"), *texts(start))
        pairs = [(i, "main", text, f"it was {THINGS[i % 3]}", 5.0 * good + i % 3 / 10)
                 for i, (text, good) in enumerate(texts(start))]  # fmt: skip
        write(folder / "STS-B" / f"{side}.tsv", ("index", "genre", "sentence1", "sentence2", "score"), *pairs)
    words = ("entailment", "neutral", "contradiction")
    for name, start in (("train.subset10k", "the"), ("dev_matched.rebuilt", "a")):
        rows = [(text, "it was fine", words[i % 3]) for i, (text, _) in enumerate(texts(start))]
        write(folder / "MNLI" / f"{name}.tsv", ("sentence1", "sentence2", "gold_label"), *rows)
    (folder / "RTE").mkdir()  # without files
    return folder
