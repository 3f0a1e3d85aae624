"""What each setting is for: the table names all of them and says the truth, and what is idle is refused."""

from dataclasses import fields, replace

import pytest
from pretraining_made import SMALL, pretrain

from bertsmith.errors import BertsmithError
from bertsmith.objectives.wording import HEADS
from bertsmith.training.devices import Ranks
from bertsmith.training.optimizer import make_optimizer, parameter_groups
from bertsmith.training.pretraining_start import prepare
from bertsmith.training.purposes import PURPOSES, refuse_unread
from bertsmith.training.recipes import KINDS, RECIPES, Asking, find_recipe
from bertsmith.training.schedule import rate_share

TAUGHT = {"teacher": "t"}
# Setting -> a recipe and settings that ignore it, what is said, and more or other settings with which it is read.
IDLE = {
    "mask_rate": ("bert", {"mask_rate": 0.3, "asks": "causal"}, "is for masked, replaced and distilled, and asks is",
                  {"asks": "causal+masked"}),
    "whole_words": ("bert", {"whole_words": True, "asks": "next"}, "asks is 'next'", {"asks": "masked+next"}),
    "spans": ("electra", {"spans": True, "asks": "causal"}, "asks is 'causal'", {"asks": "replaced"}),
    "phrases": ("bert", {"phrases": "p.txt", "asks": "relations", **TAUGHT}, "asks is 'relations'",
                {"asks": "masked+relations"}),
    "static": ("bert", {"static": True, "asks": "causal"}, "asks is 'causal'", {"asks": "distilled", **TAUGHT}),
    "mask_replace": ("electra", {"mask_replace": 0.9}, "is for masked and distilled, and asks is 'replaced'",
                     {"asks": "masked:1,replaced:1"}),
    "random_replace": ("electra", {"random_replace": 0.2}, "asks is 'replaced'", {"asks": "masked"}),
    "z_loss": ("bert", {"z_loss": 1e-4, "distil_weights": "5,0,1", **TAUGHT},
               "is for the hidden words, and distil_weights is '5,0,1'", {"asks": "causal:1,distilled:1"}),
    "causal_share": ("smith", {"causal_share": 0.5}, "is for asks causal+masked, and asks is 'masked'",
                     {"asks": "causal + masked"}),
    "generator_share": ("smith", {"generator_share": 0.5}, "is for replaced, and asks is 'masked'",
                        {"asks": "masked:1,replaced:1"}),
    "replaced_weight": ("bert", {"replaced_weight": 9.0}, "asks is 'masked+next'", {"asks": "replaced"}),
    "stay_hidden": ("roberta", {"stay_hidden": 0.5}, "asks is 'masked'", {"asks": "replaced"}),
    "teacher": ("bert", {"teacher": "t", "asks": "masked"}, "is for distilled and relations, and asks is 'masked'",
                {"asks": "masked+relations"}),
    "distil_weights": ("distilbert", {"distil_weights": "1,1,1"}, "is for distilled, and asks is 'masked'; leave it "
                       "out, or ask for that (asks)", TAUGHT),
    "temperature": ("bert", {"temperature": 3.0, **TAUGHT, "distil_weights": "0,1,1"},
                    "is for the teacher's distributions, and distil_weights is '0,1,1'", {"distil_weights": "1,0,0"}),
    "distil_masked": ("bert", {"distil_masked": True, "asks": "relations", **TAUGHT}, "asks is 'relations'",
                      {"asks": "distilled"}),
    "head_rate": ("bert", {"head_rate": 0.5, "asks": "relations", **TAUGHT}, "asks is 'relations'",
                  {"asks": "relations+next"}),
    "momentum": ("bert", {"momentum": 0.9}, "is for optimizer muon, and optimizer is 'adamw'; leave it out, or give "
                 "optimizer muon", {"optimizer": "muon"}),
    "adam_rate": ("albert", {"adam_rate": 1e-3}, "is for optimizer muon, and optimizer is 'lamb'",
                  {"optimizer": "muon"}),
    "cooldown": ("bert", {"cooldown": 0.0}, "is for schedule trapezoid, and schedule is 'linear'",
                 {"schedule": "trapezoid"}),
    "first_tokens": ("bert", {"first_tokens": 512}, "and ramp is 0.0; leave it out, or say over which share",
                     {"ramp": 0.4}),
    "ramp": ("smith", {"ramp": 0.4, "tokens": 4096}, "and first_tokens is not given; leave it out, or give the size",
             {"first_tokens": 512}),
    "epochs": ("bert", {"epochs": 2, "max_steps": 9}, "and max_steps is 9; leave it out, or max_steps",
               {"max_steps": None}),
}  # fmt: skip
FRESH = {"preset": "bert-tiny", "depth": 2, "width": 64, "heads": 2, "inner": 64, "positions": 64, "zero_outputs": True}


def test_each_setting_says_what_it_is_for():
    """A new one that does not is found here; one that some runs do not read must have its case."""
    assert set(PURPOSES) == set(KINDS)
    assert {name for name, purposes in PURPOSES.items() if purposes} == {*IDLE, *FRESH}


@pytest.mark.parametrize("name", IDLE)
def test_a_setting_that_nothing_reads_is_refused(name):
    recipe, given, sentence, more = IDLE[name]
    with pytest.raises(BertsmithError) as caught:
        refuse_unread(given, find_recipe(recipe, given))
    said = str(caught.value)
    assert said.startswith(f"{name} is for ") and sentence in said and said.count(".") - said.count("0.") == 1
    served = {**given, **more}
    refuse_unread(served, find_recipe(recipe, served))
    others = {key: value for key, value in given.items() if key != name}
    refuse_unread(others, find_recipe(recipe, others))


@pytest.mark.parametrize("name", FRESH)
def test_sizes_are_for_a_fresh_encoder(name):
    given = {name: FRESH[name], "lengths": "32"}
    refuse_unread(given, find_recipe("bert", given))
    with pytest.raises(BertsmithError, match=f"^{name} is for a fresh encoder, and model is 'm'; leave it out, or the"):
        refuse_unread(given, find_recipe("bert", given), "m")


def test_what_is_off_and_what_a_recipe_brings_is_never_refused():
    off = {"static": False, "z_loss": 0.0, "stay_hidden": 0.0, "phrases": None, "teacher": None, "ramp": 0.0,
           "first_tokens": None, "depth": None, "zero_outputs": False}  # fmt: skip
    for name in RECIPES:
        refuse_unread({"asks": "causal", **off}, find_recipe(name, {"asks": "causal", **off}), "m")
    refuse_unread({"optimizer": "adamw", "schedule": "linear"}, find_recipe("smith", {}))


class Watched:
    """Settings that remember which of them were asked for."""

    def __init__(self, settings):
        self.settings, self.read = settings, set()

    def __getattr__(self, name):
        self.read.add({"rates": "mask_rate", "losses_of_distillation": "distil_weights"}.get(name, name))
        return getattr(self.settings, name)


def says(name, recipe):
    values = {**vars(recipe.training), **vars(recipe.asking), "model": None}
    return all(purpose.is_there(values) for purpose in PURPOSES[name])


@pytest.mark.parametrize("asks", HEADS)
def test_objectives_read_what_the_table_says(corpus, tmp_path, asks):
    """Words and phrases are looked up before anything is asked, and `asks` is read by all."""
    taught = {"teacher": str(pretrain(corpus, tmp_path / "t", asks="masked", max_steps=1).folder)}
    given = {**SMALL, "asks": asks, **(taught if asks in ("distilled", "relations") else {})}
    recipe = find_recipe("bert", given)
    watched = Watched(recipe.asking)
    prepare(corpus, replace(recipe, asking=watched), Ranks())
    alike = {"asks", "whole_words", "spans", "phrases", "stay_hidden", "causal_share"}
    for name in {field.name for field in fields(Asking)} - alike:
        assert says(name, recipe) == (name in watched.read), name


def test_what_tells_replaced_tokens_learns_as_heads_do(corpus):
    """ELECTRA has a head for it, other families a judge beside them."""
    for name, part in (("electra", "heads."), ("bert", "judge.")):
        recipe = find_recipe(name, {**SMALL, "asks": "replaced", "head_rate": 0.5})
        network = prepare(corpus, recipe, Ranks()).checkpoint.network
        names = {parameter: name for name, parameter in network.named_parameters()}
        groups = parameter_groups(network, recipe.training)
        slow = [names[p] for group in groups if group["share"] == 0.5 for p in group["params"]]
        assert slow and all(name.startswith(part) for name in slow), name


@pytest.mark.parametrize("optimizer", ["adamw", "lamb", "muon"])
@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "trapezoid"])
def test_training_reads_what_the_table_says(corpus, optimizer, schedule):
    recipe = find_recipe("bert", {**SMALL, "optimizer": optimizer, "schedule": schedule})
    watched = Watched(recipe.training)
    make_optimizer(prepare(corpus, recipe, Ranks()).checkpoint.network, watched)
    rate_share(3, 9, watched)
    for name in ("momentum", "adam_rate", "cooldown", "warmup", "beta1", "beta2", "eps", "head_rate"):
        assert says(name, recipe) == (name in watched.read), name
