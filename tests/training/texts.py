"""Texts to classify. A file of its own: a process that only trains need not import the reference."""

import random

GOOD, BAD = ["good", "fine", "great", "lovely"], ["bad", "poor", "awful", "dull"]
PLAIN = [f"word{number}" for number in range(40)]


def make_texts(count: int, seed: int = 0) -> list[dict[str, str]]:
    """Texts of unequal lengths whose label stands in one word."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        words = chance.choices(PLAIN, k=chance.randint(1, 24))
        words.insert(chance.randint(0, len(words)), chance.choice((GOOD, BAD)[number % 2]))
        found.append({"text": " ".join(words), "label": ("yes", "no")[number % 2]})
    return found
