"""Text that tests train on: made from a seed, with frequent and rare words, several scripts and odd characters."""

import random

ENGLISH = (
    "the of and to in a is was for on as with by he that at from his it an were which are this also be has had first"
    " low lower lowest new newer newest wide wider widest river rivers running runner unbelievable believe token tokens"
    " tokenizer tokenizers transform transformer transformers nation national international play played player playing"
)
OTHERS = (
    "Füchslein springt über naïve café école東京 東京は日本の首都です。 Москва столица России 2024 don't , . ( \" )"
)


def make_lines(count: int, seed: int = 0) -> list[str]:
    """Lines of words that are rarer the later they stand in the lists."""
    draw = random.Random(seed)
    words = ENGLISH.split()
    words += [*OTHERS.split(), *(a + b for a in ("re", "un", "over") for b in words[20:])]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    lines = []
    for _ in range(count):
        chosen = draw.choices(words, weights, k=draw.randint(3, 15))
        chosen[0] = chosen[0].capitalize()
        lines.append(" ".join(chosen) + draw.choice([".", "!", "", ",", "?"]))
    return lines
