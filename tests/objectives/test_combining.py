"""Several objectives at once and one after the other."""

import pytest
import torch
from objectives.asking import VOCABULARY, ask, count_ordinary, make_rows, run
from oracle import load_saved, make_reference

from bertsmith.errors import BertsmithError
from bertsmith.objectives.combining import Stages, Sum
from bertsmith.objectives.distillation import Distillation
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.next_token import NextToken
from bertsmith.objectives.objective import Asked
from bertsmith.objectives.pairs import SentencePair
from bertsmith.objectives.relations import AttentionRelations
from bertsmith.objectives.replaced import ReplacedTokens

PAIRS = torch.tensor([0, 1, 1, 0, 1])


@pytest.fixture
def network(tmp_path):
    return load_saved(make_reference("bert", "pretraining"), tmp_path).network


@pytest.mark.parametrize("pair_first", [False, True])
def test_a_sum_is_its_parts_on_the_same_batch(network, pair_first):
    masked, pair = MaskedTokens(VOCABULARY), SentencePair("next")
    parts = (pair, masked) if pair_first else (masked, pair)
    both = Sum(*parts, weights=[3.0, (1.0, 0.0)])
    asked, alone = ask(both, make_rows(), given={"pairs": PAIRS}), ask(masked, make_rows())
    assert torch.equal(asked.batch.ids, alone.batch.ids)  # the pair's question does not change what is hidden
    means, _ = run(both, network, asked)
    assert means["masked"].item() == run(masked, network, alone)[0]["masked"].item()
    assert means["next_sentence"].item() == run(pair, network, asked)[0]["next_sentence"].item()
    first, second = (part.names[0] for part in parts)
    assert both.weights(0.0) == {first: 3.0, second: 1.0} and both.weights(0.75) == {first: 3.0, second: 0.25}
    assert both.needs_pairs and both.alters and set(both.heads) == {"mask", "follows"}
    tokens = count_ordinary(make_rows())
    assert both.expect(tokens, 5, 0.0) == {"masked": round(0.15 * tokens), "next_sentence": 5}


def test_one_that_only_looks_sees_what_is_not_hidden_yet(network, tmp_path):
    """A relation is over all ordinary tokens, those that are masks by now too."""
    teacher = load_saved(make_reference("bert", "", 1), tmp_path / "teacher").network
    both = Sum(MaskedTokens(VOCABULARY), AttentionRelations(VOCABULARY, teacher, network))
    asked = ask(both, make_rows())
    assert asked.given["related"].sum() == count_ordinary(make_rows())
    assert set(run(both, network, asked)[0]) == {"masked", "queries", "keys", "values"}


@pytest.mark.parametrize("kind", ["distilled", "replaced"])
def test_relations_are_the_students_own_beside_another_network_that_reads(kind, tmp_path):
    """Neither a teacher's pass nor a generator's is taken for that of the student."""
    family, head = ("electra", "pretraining") if kind == "replaced" else ("bert", "mask")
    student, teacher, other = (
        load_saved(make_reference(family, head if i != 2 else "mask", i), tmp_path / str(i)).network for i in range(3)
    )
    masked = MaskedTokens(VOCABULARY)
    beside = ReplacedTokens(masked, other) if kind == "replaced" else Distillation(masked, other)
    relations = AttentionRelations(VOCABULARY, teacher, student)
    both = Sum(beside, relations)
    asked = ask(both, make_rows())
    means, _ = run(both, student, asked)
    alone, _ = run(relations, student, Asked(asked.batch.watching(True), asked.given))
    assert {name: means[name].item() for name in relations.names} == pytest.approx(
        {name: mean.item() for name, mean in alone.items()}, rel=1e-5
    )
    if kind == "replaced":
        both.use_parts({"generator": teacher})
        assert both.parts() == {"generator": teacher} and beside.generator is teacher


def test_stages_follow_each_other(network):
    first, second = NextToken(VOCABULARY), Sum(MaskedTokens(VOCABULARY, (0.4, 0.2)), SentencePair("next"))
    stages = Stages([(first, 0.25), (second, 0.75)])
    assert stages.names == ("next_token", "masked", "next_sentence") and stages.needs_pairs
    for done, wanted in ((0.0, {"next_token"}), (0.2499, {"next_token"}), (0.25, {"masked", "next_sentence"}),
                         (1.0, {"masked", "next_sentence"})):  # fmt: skip
        asked = ask(stages, make_rows(), done=done, given={"pairs": PAIRS})
        assert asked.batch.causal == (wanted == {"next_token"})
        summed = stages.losses(network, network(asked.batch), asked.batch, asked.given)
        assert set(summed) == wanted == set(stages.expect(90, 5, done))
        assert stages.measures(network, network(asked.batch), asked.batch, asked.given).keys() == {
            f"{name}_accuracy" for name in wanted
        }
    alone = ask(second, make_rows(), done=0.5, given={"pairs": PAIRS})  # told how much of the whole run is over
    assert torch.equal(ask(stages, make_rows(), done=0.5, given={"pairs": PAIRS}).batch.ids, alone.batch.ids)


def test_combinations_that_cannot_be_are_refused():
    masked, following = MaskedTokens(VOCABULARY), NextToken(VOCABULARY)
    with pytest.raises(BertsmithError, match=r"^masked and next cannot be asked of one batch"):
        Sum(masked, following)
    with pytest.raises(BertsmithError, match=r"^there are 1 weights for 2 objectives\.$"):
        Sum(masked, SentencePair(), weights=[1.0])
    with pytest.raises(BertsmithError, match="a loss of the same name"):
        Sum(SentencePair(), SentencePair())
    for shares in ([], [0.5, 0.4], [1.5, -0.5]):
        with pytest.raises(BertsmithError, match="their sum 1"):
            Stages([(masked, share) for share in shares])
