"""A report does not flatter: a model that learned nothing is called so, and tiles do not say one thing twice."""

from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, f1_score

from bertsmith.evaluation.report import RunFacts
from bertsmith.evaluation.report.card import make_card
from bertsmith.evaluation.report.caveats import find_caveats, tell_baseline
from bertsmith.evaluation.report.page import make_page
from bertsmith.evaluation.report.sections import choose_tiles
from bertsmith.evaluation.report.wording import describe_cutting
from bertsmith.tasks.entities import measure_tags, type_table
from bertsmith.tasks.measures import count_labels, tabulate

BLIND = "is no better than saying “b” to everything, which would give 0.7000"


@pytest.mark.parametrize("counts, told", [
    ([[0, 3], [0, 7]], "On dev, the accuracy of 0.7000 " + BLIND),
    ([[2, 1], [3, 4]], "On dev, the accuracy of 0.6000 " + BLIND),
    ([[1, 2], [0, 7]], ""),
])  # fmt: skip
def test_a_model_no_better_than_the_majority_is_told(counts: list[list[int]], told: str) -> None:
    gold = [i for i, row in enumerate(counts) for n in row for _ in range(n)]
    said = [j for row in counts for j, n in enumerate(row) for _ in range(n)]
    blind = DummyClassifier(strategy="most_frequent").fit(np.zeros((10, 1)), gold)
    assert bool(told) == (accuracy_score(gold, said) <= blind.score(np.zeros((10, 1)), gold))
    facts = RunFacts("classify", confusion={"labels": ["a", "b"], "counts": counts})
    facts.metrics = {"dev": {"accuracy": {"value": accuracy_score(gold, said), "n": 10}}}
    assert tell_baseline(facts).removesuffix(".") == told
    for text in (make_page(facts), make_card(facts)):
        assert ("no better than saying" in text) == bool(told)


def test_of_several_labels_one_right_label_is_no_skill() -> None:
    rows = [{"label": name, "precision": 0.5, "recall": r, "f1": 0.5, "support": 9} for name, r in (("a", 1), ("b", 0))]
    facts = RunFacts("classify", several=True, metrics={"dev": {"micro_f1": {"value": 0.5}}}, per_label=rows)
    assert tell_baseline(facts).startswith("On dev, only the label “a” is ever rightly given")
    rows[1]["recall"] = 0.1
    assert tell_baseline(facts) == ""
    rows[0]["recall"] = rows[1]["recall"] = 0
    assert tell_baseline(facts).startswith("On dev, no label is ever rightly given")


@pytest.mark.parametrize("seed", range(12))
def test_of_several_labels_the_most_frequent_one_for_all_is_no_skill(seed: int) -> None:
    random = np.random.default_rng(seed)
    gold = random.random((40, 3)) < [0.7, 0.2, 0.1]
    found = np.where(random.random((40, 3)) < 0.05 * seed, gold, random.random((40, 3)) < 0.4)
    blind = np.zeros_like(gold)
    blind[:, gold.sum(axis=0).argmax()] = True
    value, expected = (f1_score(gold, some, average="micro", zero_division=0) for some in (found, blind))
    task = {"dev": {"micro_f1": {"value": value, "n": 40}}}
    rows = tabulate("abc", count_labels(gold, found).sum(axis=0))
    told = tell_baseline(RunFacts("classify", several=True, metrics=task, per_label=rows))
    if "ever rightly given" not in told:
        assert bool(told) == (value <= expected)
        assert not told or told.endswith(f"to everything, which would give {expected:.4f}.")


def test_taggers_that_learned_nothing() -> None:
    def tell(gold: list[str], found: list[str], scheme: str) -> str:
        measures = measure_tags([found], [gold], scheme)
        metrics = {"dev": {name: {"value": measure.point} for name, measure in measures.items()}}
        return tell_baseline(RunFacts("tag", metrics=metrics, per_label=type_table([found], [gold], scheme)))

    assert tell(["B-X", "O"], ["O", "O"], "iob2").startswith("On dev, no entity is ever found")
    assert tell(["B-X", "O"], ["B-X", "O"], "iob2") == tell(["O"], ["O"], "iob2") == ""
    blind = tell(["NN", "NN", "VB"], ["NN", "NN", "NN"], "plain")
    assert blind == (
        "On dev, the accuracy of 0.6667 is no better than saying “NN” to every word, which would give 0.6667."
    )
    assert tell(["NN", "NN", "VB"], ["NN", "NN", "VB"], "plain") == ""


def test_tiles_say_different_things() -> None:
    names = ["accuracy", "micro_f1", "macro_f1", "weighted_f1", "matthews", "f1", "ece"]
    two = RunFacts("classify", metrics={"dev": {name: {"value": 0.5} for name in names}})
    assert choose_tiles(two) == ["accuracy", "f1", "matthews", "macro_f1"]
    two.settings["metric"] = "matthews"
    assert choose_tiles(two)[:2] == ["matthews", "accuracy"]
    del two.metrics["dev"]["f1"], two.settings["metric"]
    assert choose_tiles(two) == ["accuracy", "macro_f1", "weighted_f1", "matthews"]
    few = RunFacts("classify", metrics={"dev": {name: {"value": 0.5} for name in names[:2]}})
    assert choose_tiles(few) == ["accuracy", "micro_f1"]
    tags = RunFacts("tag", metrics={"dev": {name: {"value": 0.5} for name in ("f1", "precision", "recall")}})
    assert choose_tiles(tags) == ["f1", "precision", "recall"]


def test_one_is_told_as_one() -> None:
    lengths: Any = {"examples_cut": 1, "examples": 1, "limit": 64, "policy": "head", "tokens_cut": 1}
    assert describe_cutting(lengths) == (
        "1 of 1 example (100 %) is longer than 64 tokens and is cut (policy head): 1 token is not seen."
    )
    facts = RunFacts("classify", metrics={"dev": {"accuracy": {"value": 1.0, "n": 1}}}, curves=[{"loss": None}])
    caveats = " ".join(find_caveats(facts))
    assert "1 example in dev is few: " in caveats and "in 1 record of the log." in caveats
