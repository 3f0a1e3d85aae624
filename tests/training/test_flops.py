"""What a token costs, beside what torch counts when a step is made."""

import pytest
import torch
from pretraining_made import SMALL, make_corpus, pretrain
from torch.utils.flop_counter import FlopCounterMode

from bertsmith.data.rows_plan import Phase
from bertsmith.pretraining import make_study
from bertsmith.training.devices import Ranks
from bertsmith.training.flops import count_flops
from bertsmith.training.passes import Passes
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.recipes import find_recipe

CPU = torch.device("cpu")
RANKS = Ranks(0, 1, CPU)
WIDE = {"depth": 3, "width": 64, "heads": 2, "inner": 96, "dropout": 0.0}
STEPS = 8


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("flops"))


@pytest.fixture(scope="module")
def teacher(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher") / "model"
    pretrain(corpus, folder, "bert", asks="masked", max_steps=1, **{**WIDE, "width": 128})
    return folder


def count_steps(corpus, recipe, **more):
    """What torch counts of a run's steps, and what is said of their tokens, attention apart."""
    start = prepare(corpus, find_recipe(recipe, {**SMALL, **WIDE, **more, "max_steps": STEPS}), RANKS)
    training, network = start.recipe.training, start.checkpoint.network.train()
    study = make_study(start, training, STEPS)
    passes = Passes(network, study, training, CPU, "fp32", RANKS)
    counted = read = 0
    for step in range(STEPS):
        works = study.works(step, 0, 1, start.size)
        with FlopCounterMode(display=False) as counter:
            passes.run(works, step)
        found = counter.get_flop_counts()["Global"]
        counted += sum(number for op, number in found.items() if "attention" not in str(op) and "bmm" not in str(op))
        read += sum(len(work.ids) for work in works)
    said = count_flops(start.made.objective, network, training.phases())
    # Scores and sums; DeBERTa's scores of words with distances, and of those with words, are as many again.
    attention = (24 if network.config.relative else 12) * network.config.depth * network.config.width
    if generator := start.made.objective.parts().get("generator"):
        asked = sum("generator" in start.made.objective.expect(512, 16, step / STEPS) for step in range(STEPS)) / STEPS
        attention += asked * 12 * generator.config.depth * generator.config.width
    if start.made.teacher is not None:
        attention += 4 * start.made.teacher.config.depth * start.made.teacher.config.width
    return counted / read, said - attention * training.longest


CASES = {
    "bert": {},
    "albert": {},
    "modernbert": {"asks": "masked"},
    "roberta causal": {"asks": "causal"},
    "roberta causal first": {"asks": "causal:0.25,masked:0.75"},
    "electra": {},
    # What its distances become is the same for all tokens of a pass, and is not counted.
    "roberta deberta": {"preset": "deberta-v3-base", "pass_tokens": 512},
    "smith replaced": {"asks": "masked:0.4,replaced:0.6", "stay_hidden": 0.5},
    "distilbert": {"teacher": True},
    "bert relations": {"asks": "relations", "teacher": True},
}


@pytest.mark.parametrize("case", CASES)
def test_a_step_costs_what_torch_counts(corpus, teacher, case, monkeypatch):
    monkeypatch.setattr("bertsmith.layers.onednn.is_quicker", lambda: False)  # whose products torch does not count
    more = {**CASES[case], **({"teacher": str(teacher)} if "teacher" in CASES[case] else {})}
    counted, said = count_steps(corpus, case.split()[0], **more)
    assert said == pytest.approx(counted, rel=0.07)


def test_attention_is_over_the_rows_of_each_phase(corpus):
    """Nine tenths of a run of short rows cost what short rows cost."""
    start = prepare(corpus, find_recipe("bert", {**SMALL, **WIDE, "asks": "masked", "mask_rate": 0.15}), RANKS)
    objective, network = start.made.objective, start.checkpoint.network
    short, long, both = (
        count_flops(objective, network, phases)
        for phases in ([Phase(32, 1.0)], [Phase(128, 1.0)], [Phase(32, 0.9), Phase(128, 0.1)])
    )
    assert long - short == 12 * network.config.depth * network.config.width * 96
    assert both == pytest.approx(0.9 * short + 0.1 * long)
