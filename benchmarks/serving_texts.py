"""The texts that the load on a server is made of: sentences of 5 to 120 words, half of them under 20, a long tail.

In: a seed. Out: texts, the same ones every time and no two alike, so that no cache helps anybody.
"""

import random
from collections.abc import Iterator
from math import log

LEAST, MEDIAN, MOST = 5, 20, 120  # words
SPREAD = 0.85  # of the logarithm of the words: one text in fifty is cut at the most

# What common text is made of: short words often, long ones seldom. Whole pieces and words of several are among them.
SHORT = (
    "the of and to a in is was for on that with as it by at from his he be this are an which or had not but were have "
    "one has their who they her she new first can two all been other when there time year city state school film team "
    "water house road river park book music game line work day man life part world war name area family group"
)
LONG = (
    "government university international population development according different following including community "
    "president national information production performance championship construction professional representatives "
    "archaeological photosynthesis reinsurance microprocessors thunderstorms misunderstanding biodiversity kilometres "
    "unemployment parliamentary electromagnetic subcommittee refrigerators counterproductive Shostakovich Reykjavik"
)


def make_texts(seed: int) -> Iterator[str]:
    """Without end."""
    chance, short, long = random.Random(seed), SHORT.split(), LONG.split()
    while True:
        words = min(max(round(chance.lognormvariate(log(MEDIAN), SPREAD)), LEAST), MOST)
        chosen = [chance.choice(short if chance.random() < 0.8 else long) for _ in range(words - 1)]
        yield " ".join([*chosen, str(chance.randrange(10**6))]) + "."
