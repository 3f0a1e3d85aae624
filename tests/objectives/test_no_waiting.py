"""No objective looks into a tensor: on a device without memory each makes its pass, so none waits for a real one."""

import pytest
import torch
from objectives.asking import VOCABULARY, count_ordinary, make_rows
from oracle import load_saved, make_reference

from bertsmith.data.batch import Batch
from bertsmith.objectives.combining import Stages, Sum
from bertsmith.objectives.distillation import Distillation
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.next_token import NextToken
from bertsmith.objectives.pairs import SentencePair
from bertsmith.objectives.relations import AttentionRelations
from bertsmith.objectives.replaced import ReplacedTokens


@pytest.fixture
def open_network(tmp_path):
    def build(family, head, seed=0):
        return load_saved(make_reference(family, head, seed), tmp_path / f"{family}-{head}-{seed}").network.to("meta")

    return build


def masks(**settings):
    return MaskedTokens(VOCABULARY, **settings)


KINDS = {
    "pieces": lambda new: masks(),
    "words": lambda new: masks(whole_words=True, z_loss=1e-4, chunk=5),
    "spans": lambda new: masks(spans=True, whole_words=True, rate=(0.3, 0.15)),
    "phrases": lambda new: masks(phrases=[[7, 8], [9, 10, 11]]),
    "static": lambda new: masks(static=True),
    "pairs": lambda new: Sum(masks(), SentencePair("next")),
    "next": lambda new: NextToken(VOCABULARY, chunk=9),
    "stages": lambda new: Stages([(NextToken(VOCABULARY), 0.5), (masks(), 0.5)]),
    "distilled": lambda new: Distillation(masks(), new("bert", "mask", 1), over="tokens"),
    "relations": lambda new: AttentionRelations(VOCABULARY, new("bert", "mask", 1), new("bert", "pretraining")),
    "replaced": lambda new: ReplacedTokens(masks(), new("electra", "mask", 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_follow_from_what_the_host_knows(kind, open_network):
    objective, rows = KINDS[kind](open_network), make_rows()
    network = open_network("electra" if kind == "replaced" else "bert", "pretraining").requires_grad_(True)
    batch = Batch.of(rows, device="meta")
    given = {"pairs": torch.zeros(len(rows), dtype=torch.long, device="meta")}
    asked = objective.ask(batch, given, count_ordinary(rows), 0.4)
    hidden = objective.read(network, asked)
    summed = objective.losses(network, hidden, asked.batch, asked.given)
    assert set(summed) == set(objective.expect(count_ordinary(rows), len(rows), 0.4))
    sum(total / count for total, count in summed.values()).backward()
    measured = objective.measures(network, hidden, asked.batch, asked.given)
    assert all(x.shape == () for pair in [*summed.values(), *measured.values()] for x in pair)


def test_the_check_can_fail():
    with pytest.raises(Exception, match="meta"):
        torch.ones(3, device="meta").nonzero()
