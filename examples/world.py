"""Writes a small made world: text to pretrain a BERT on in a minute, with tags and questions whose answers are known.

    python examples/world.py world

The folder gets texts.txt (a blank line between documents), train.conll and dev.conll (who, which animal, where), and
train.json and dev.json (questions with answers, as SQuAD has them). All is drawn from a few sentence patterns, the same
on every run, so that a tiny model can learn it and a person can see what it learnt. "bank" has two meanings in it.
"""

import argparse
import json
import random
from itertools import islice
from pathlib import Path

PEOPLE = ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gina", "Hugo", "Iris", "Jack", "Kira", "Leo"]
TOWNS = ["Oslo", "Paris", "Rome", "London", "Vienna", "Lisbon"]
# A scene: what lives or stands in it, what that does, and where. Words of one scene come together in one document.
SCENES = {
    "river": (
        ["fish", "duck", "otter", "frog", "trout", "swan"],
        ["swam", "dived"],
        ["in the river", "near the river bank", "under the old bridge", "in the cold water"],
        ["The river bank was muddy .", "The water was cold .", "The boat lay on the river bank ."],
    ),
    "sky": (
        ["eagle", "swallow", "kite", "hawk", "crow", "gull"],
        ["flew", "glided"],
        ["over the hills", "above the clouds", "across the sky", "over the tower"],
        ["The sky was blue .", "The wind was strong .", "The clouds were white ."],
    ),
    "farm": (
        ["horse", "cow", "sheep", "goat", "donkey", "pig"],
        ["grazed", "slept"],
        ["in the field", "behind the barn", "beside the fence", "on the green grass"],
        ["The grass was green .", "The barn was red .", "The hay was dry ."],
    ),
    "money": (
        ["banker", "cashier", "clerk", "customer", "lawyer", "manager"],
        ["waited", "signed"],
        ["at the bank", "in the office", "at the counter", "near the safe"],
        ["The bank raised its rates .", "The loan was expensive .", "The money was in the bank ."],
    ),
}


def tell(draw: random.Random, scene: str, person: str, town: str) -> tuple[list[str], list[str]]:
    """One sentence of a scene: its words and their tags."""
    who, does, where, facts = SCENES[scene]
    kind = draw.randrange(4)
    if kind == 0:
        words = draw.choice(facts).split()
        return words, ["O"] * len(words)
    one, act, place = draw.choice(who), draw.choice(does), draw.choice(where).split()
    marked = "B-ANIMAL" if scene != "money" else "O"
    if kind == 1:
        return ["The", one, act, *place, "."], ["O", marked, "O", *["O"] * len(place), "O"]
    if kind == 2:
        words = [person, "saw", "the", one, *place, "."]
        return words, ["B-PER", "O", "O", marked, *["O"] * len(place), "O"]
    return [person, "lives", "in", town, "."], ["B-PER", "O", "O", "B-PLACE", "O"]


def write_texts(folder: Path, documents: int = 1500) -> None:
    draw = random.Random(1)
    texts = []
    for _ in range(documents):
        scene, person, town = draw.choice([*SCENES]), draw.choice(PEOPLE), draw.choice(TOWNS)
        lines = (join(tell(draw, scene, person, town)[0]) for _ in range(draw.randint(5, 9)))
        texts.append("\n".join(dict.fromkeys(lines)))  # nothing is told twice
    (folder / "texts.txt").write_text("\n\n".join(texts) + "\n")


def write_tags(folder: Path, counts: dict[str, int]) -> None:
    """No sentence is in both files, so that dev tells what was understood and not what was remembered."""
    draw = random.Random(2)
    told: dict[str, str] = {}
    while len(told) < sum(counts.values()):
        words, tags = tell(draw, draw.choice([*SCENES]), draw.choice(PEOPLE), draw.choice(TOWNS))
        told[join(words)] = "\n".join(f"{word} {tag}" for word, tag in zip(words, tags, strict=True))
    blocks = iter(told.values())
    for name, count in counts.items():
        (folder / f"{name}.conll").write_text("\n\n".join(islice(blocks, count)) + "\n")


def write_questions(path: Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    paragraphs = [ask(draw, f"{path.stem}-{number}") for number in range(count)]
    data = {"version": "1.1", "data": [{"title": "world", "paragraphs": paragraphs}]}
    path.write_text(json.dumps(data, indent=1) + "\n")


def ask(draw: random.Random, name: str) -> dict[str, object]:
    """A paragraph of three sentences and a question about it."""
    person, town = draw.choice(PEOPLE), draw.choice(TOWNS)
    who, _, where, facts = SCENES[draw.choice([*SCENES])]
    seen, place = draw.choice(who), draw.choice(where)
    context = f"{join(draw.choice(facts).split())} {person} saw the {seen} {place}. {person} lives in {town}."
    asked = {
        f"What did {person} see?": (f"the {seen}", context.index(f"saw the {seen}") + len("saw ")),
        f"Where does {person} live?": (town, context.index(f"in {town}") + len("in ")),
        f"Who saw the {seen}?": (person, context.index(f"{person} saw")),
    }
    question, (answer, start) = draw.choice([*asked.items()])
    answers = [{"text": answer, "answer_start": start}]
    return {"context": context, "qas": [{"id": name, "question": question, "answers": answers}]}


def join(words: list[str]) -> str:
    return " ".join(words).replace(" .", ".")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_texts(folder)
    write_tags(folder, {"train": 300, "dev": 60})
    write_questions(folder / "train.json", 400, seed=3)
    write_questions(folder / "dev.json", 60, seed=4)
    print(f"{folder}: texts.txt, train.conll, dev.conll, train.json, dev.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("world"), help="to write into; default: world")
    main(parser.parse_args().folder)
