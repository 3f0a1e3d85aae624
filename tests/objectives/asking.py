"""A made vocabulary, rows over it, and the steps of a pass as a loop makes them."""

import torch
from hypothesis import strategies as st
from oracle import pad

from bertsmith.data.batch import Batch
from bertsmith.objectives.objective import Vocabulary

PAD, CLS, SEP, MASK = 0, 1, 2, 4
SPECIALS = (PAD, CLS, SEP, MASK)
SIZE = 97
BEGINS = torch.arange(SIZE) % 3 != 0  # every third id goes on with a word
VOCABULARY = Vocabulary(SIZE, MASK, SPECIALS, BEGINS)
ORDINARY = [id for id in range(SIZE) if id not in SPECIALS]

bodies = st.lists(st.lists(st.sampled_from(ORDINARY), min_size=1, max_size=40), min_size=1, max_size=6)
seeds = st.integers(0, 2**31)
kinds = st.sampled_from([{}, {"whole_words": True}, {"spans": True}, {"whole_words": True, "spans": True},
                         {"phrases": [[5, 7], [8, 9, 10]]}])  # fmt: skip
rates = st.sampled_from([0.05, 0.15, 0.4, 0.9, 1.0])


def surround(some):
    """[CLS] … [SEP] around each body, and a [SEP] in the middle of a longer one."""
    return [[CLS, *body[: len(body) // 2], *([SEP] if len(body) > 5 else []), *body[len(body) // 2 :], SEP]
            for body in some]  # fmt: skip


rows = bodies.map(surround)


def make_rows(seed=0, lengths=(17, 5, 40, 23, 9)):
    generator = torch.Generator().manual_seed(seed)
    picked = [torch.randint(len(ORDINARY), (n,), generator=generator).tolist() for n in lengths]
    return surround([[ORDINARY[i] for i in body] for body in picked])


def make_batch(rows, two=False):
    """`two`: what stands behind the first [SEP] is the second segment."""
    segments = [[int(two and SEP in row[:i]) for i in range(len(row))] for row in rows]
    return Batch.of(rows, segments)


def count_ordinary(rows):
    return sum(id not in SPECIALS for row in rows for id in row)


def ask(objective, rows, seed=0, done=0.0, given=None, two=False):
    torch.manual_seed(seed)
    return objective.ask(make_batch(rows, two), given or {}, count_ordinary(rows), done)


def run(objective, network, asked):
    """What a pass costs, name -> mean, and the weighted sum."""
    summed = objective.losses(network, objective.read(network, asked), asked.batch, asked.given)
    means = {name: total / count for name, (total, count) in summed.items()}
    weights = objective.weights(0.0)
    return means, sum(weights.get(name, 1.0) * mean for name, mean in means.items())


def padded(batch, ids=None):
    """The batch as the reference takes it."""
    split = [list(batch.split(x)) for x in (batch.ids if ids is None else ids, batch.segments)]
    mask = pad([torch.ones_like(row) for row in split[0]], 0, "right")
    return {"input_ids": pad(split[0], PAD, "right"), "token_type_ids": pad(split[1], 0, "right"),
            "attention_mask": mask}  # fmt: skip


def labels_of(batch, at, gold):
    """(rows, longest): the gold where something is asked, else -100."""
    flat = torch.full_like(batch.ids, -100).scatter(0, at, gold)
    return pad(list(batch.split(flat)), -100, "right")


def flat(rows):
    return torch.tensor([id for row in rows for id in row])


def hidden_places(asked):
    return set(asked.given["at"][asked.given["gold"] >= 0].tolist())


def words_of(rows):
    """Sets of places, each a word: it begins with a piece that does, behind a special token, or with its row."""
    words, place = [], 0
    for row in rows:
        for i, id in enumerate(row):
            if id in SPECIALS or i == 0 or row[i - 1] in SPECIALS or BEGINS[id]:
                words.append(set())
            words[-1].add(place)
            place += 1
    return words
