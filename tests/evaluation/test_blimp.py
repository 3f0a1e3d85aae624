"""BLiMP on a made folder: each pair as its sentences alone tell, means of sets, ties, what is left out, mistakes."""

import json
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from whole import tiny

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.blimp import Judged, PairSet, find_sets, macro, read_set, summarize
from bertsmith.evaluation.intervals import interval
from bertsmith.evaluation.unlabelled_tables import blimp_notes, blimp_rows

SETS = {
    "agreement_1": ("morphology", "subject_verb_agreement", [("the film is good", "the film are good"),
                    ("ann lives in oslo", "ann live in oslo"), ("bob runs", "bob run")]),
    "agreement_2": ("morphology", "subject_verb_agreement", [("it was fine", "it were fine"), ("it is", "it are")]),
    "selection": ("syntax/semantics", "s-selection", [("ann sees the town", "the town sees ann")]),
    "structure": ("syntax_semantics", "argument_structure", [("dan met eve", "dan met"), ("eve met dan", "met dan")]),
}  # fmt: skip


def as_lines(name: str, field: str, term: str, pairs: list[tuple[str, str]]) -> list[str]:
    return [
        json.dumps({"sentence_good": good, "sentence_bad": bad, "field": field, "linguistics_term": term, "UID": name,
                    "pairID": str(number)})
        for number, (good, bad) in enumerate(pairs)
    ]  # fmt: skip


def write_sets(folder, sets=SETS):
    folder.mkdir(parents=True, exist_ok=True)
    for name, one in sets.items():
        (folder / f"{name}.jsonl").write_text("\n".join(as_lines(name, *one)) + "\n")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny.make_encoder(tmp_path_factory.mktemp("masks"), head="ForMaskedLM", limit=24)
    return bertsmith.load(folder, device="cpu")


@pytest.mark.parametrize("way", ["plain", "within-word"])
def test_a_pair_is_right_where_the_good_sentence_alone_is_likelier(model, tmp_path, way):
    found = bertsmith.evaluate_blimp(write_sets(tmp_path), model, way=way)
    by_set = {}
    for name, (_, _, pairs) in SETS.items():
        scores = [[bertsmith.pseudo_likelihood(model, text, way=way)[0]["score"] for text in pair] for pair in pairs]
        by_set[name] = statistics.fmean(good > bad for good, bad in scores)
    assert {one["set"]: one["value"] for one in found["sets"]} == pytest.approx(by_set)
    assert 0 < statistics.fmean(by_set.values()) < 1, "a made model that is always right would show nothing"
    assert found["accuracy"]["value"] == pytest.approx(statistics.fmean(by_set.values()))
    phenomena = {one["phenomenon"]: one for one in found["phenomena"]}
    assert set(phenomena) == {"subject_verb_agreement", "argument_structure"}  # the paper has s-selection under it
    two = [by_set["selection"], by_set["structure"]]
    assert phenomena["argument_structure"]["value"] == pytest.approx(statistics.fmean(two))
    assert phenomena["argument_structure"]["sets"] == 2 and phenomena["argument_structure"]["n"] == 3
    assert [one["field"] for one in found["fields"]] == ["morphology", "syntax_semantics"]
    assert found["way"] == way and found["pairs"] == 8 and found["ties"] == found["skipped"] == 0
    assert found["subset"] == "4 of 67 sets, 1 to 3 of 1,000 pairs each"
    json.dumps(found, allow_nan=False)


def test_a_tie_is_wrong(model, tmp_path):
    pairs = [("the film is good", "the film is good"), ("it was", "it was")]
    found = bertsmith.evaluate_blimp(write_sets(tmp_path, {"same": ("syntax", "binding", pairs)}), model)
    assert found["ties"] == 2 and found["accuracy"]["value"] == 0.0
    assert any(note == "2 ties of 2 pairs count as wrong." for note in blimp_notes(found))


def test_one_is_told_as_one():
    found = {"way": "plain", "ties": 1, "pairs": 1, "sets": [], "skipped": 1, "subset": None, "seconds": 2.0}
    notes = " ".join(blimp_notes(found))
    assert "1 tie of 1 pair counts as wrong. 1 pair is left out: a sentence" in notes and "1 pair in " in notes


def test_a_pair_that_is_too_long_is_left_out_and_counted(model, tmp_path):
    pairs = [("the film is good", "the film are good"), ("the film is " + "very " * 30 + "good", "the film are good")]
    sets = {"long": ("syntax", "binding", pairs), "gone": ("syntax", "binding", pairs[1:])}
    found = bertsmith.evaluate_blimp(write_sets(tmp_path, sets), model)
    assert found["skipped"] == 2 and found["pairs"] == 1 and [one["set"] for one in found["sets"]] == ["long"]
    assert any("2 pairs are left out" in note for note in blimp_notes(found))
    with pytest.raises(BertsmithError, match="nothing is left to judge"):
        bertsmith.evaluate_blimp(tmp_path, model, sets=["gone"])


def test_sets_and_pairs_can_be_few(model, tmp_path):
    write_sets(tmp_path / "blimp" / "data")
    whole = bertsmith.evaluate_blimp(tmp_path, model)
    few = bertsmith.evaluate_blimp(tmp_path, model, sets=["structure", "agreement_1"], limit=2)
    assert [one["set"] for one in few["sets"]] == ["agreement_1", "structure"] and few["pairs"] == 4
    assert few["subset"] == "2 of 67 sets, 2 of 1,000 pairs each"
    assert [one for one in whole["sets"] if one["set"] == "structure"] == few["sets"][1:]


RIGHT = st.lists(st.lists(st.booleans(), min_size=1, max_size=12).map(np.array), min_size=1, max_size=5)


@given(RIGHT)
def test_the_mean_of_sets_is_that_of_their_shares_and_lies_in_its_interval(parts):
    measure = macro(parts)
    assert measure.point == pytest.approx(statistics.fmean(part.mean() for part in parts))
    assert len(measure.counts) == sum(map(len, parts))
    low, high = interval(measure, samples=200)
    assert 0 <= low <= high <= 1
    if np.concatenate(parts).all():
        assert low < high == 1.0


def test_an_interval_of_the_mean_has_the_width_that_theory_gives():
    """Of k sets of n pairs each the standard error is the root of sum p(1 - p) / n, divided by k."""
    random = np.random.default_rng(0)
    parts = [random.random(1000) < p for p in (0.5, 0.7, 0.9)]
    low, high = interval(macro(parts))
    error = np.sqrt(sum(part.var() / len(part) for part in parts)) / 3
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_the_whole_benchmark_is_not_a_subset():
    judged = [Judged(PairSet(str(n), "p", "f", []), np.ones(1000, dtype=bool), 0, 0) for n in range(67)]
    found = summarize(judged)
    assert found["subset"] is None and found["accuracy"]["n"] == 67_000
    assert blimp_rows({**found, "way": "plain", "seconds": 1.0})[-1]["%"] == "100.00"


def test_results_are_kept_and_not_lost(model, tmp_path):
    out = tmp_path / "out"
    found = bertsmith.evaluate_blimp(write_sets(tmp_path / "sets"), model, out=out)
    assert json.loads((out / "results.json").read_text()) == found
    table = (out / "results.md").read_text()
    assert all(name in table for name in SETS) and "each token masked alone" in table
    with pytest.raises(BertsmithError, match=r"results\.json is there already"):
        bertsmith.evaluate_blimp(tmp_path / "sets", model, out=out)
    assert bertsmith.evaluate_blimp(tmp_path / "sets", model, out=out, overwrite=True)["sets"] == found["sets"]


def test_a_folder_without_files_and_sets_that_are_not_there(model, tmp_path):
    with pytest.raises(BertsmithError, match="is not a folder"):
        find_sets(tmp_path / "none")
    with pytest.raises(BertsmithError, match=r"holds no file of BLiMP; looked for \*\.jsonl"):
        find_sets(tmp_path)
    write_sets(tmp_path)
    with pytest.raises(BertsmithError, match="no set 'structur'; did you mean structure"):
        find_sets(tmp_path, ["structur"])
    with pytest.raises(BertsmithError, match="named twice"):
        find_sets(tmp_path, ["structure", "structure"])
    with pytest.raises(BertsmithError, match="no set is named"):
        find_sets(tmp_path, [])
    with pytest.raises(BertsmithError, match="limit is 0"):
        bertsmith.evaluate_blimp(tmp_path, model, limit=0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"sentence_good": "a", "field": "f", "linguistics_term": "t", "UID": "x"}',
         'line 2: has no text in "sentence_bad"'),
        ('{"sentence_good": " ", "sentence_bad": "b", "field": "f", "linguistics_term": "t", "UID": "x"}',
         'line 2: has no text in "sentence_good"'),
        ('{"sentence_good": "a", "sentence_bad": "b", "field": "f", "linguistics_term": "t", "UID": "y"}',
         "line 2: \"UID\" is 'y', but 'x' above"),
        ("{broken", "line 2: not JSON"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(tmp_path, line, message):
    path = tmp_path / "x.jsonl"
    path.write_text(as_lines("x", "f", "t", [("a", "b")])[0] + "\n" + line + "\n")
    with pytest.raises(BertsmithError, match=f"x.jsonl, {message}"):
        read_set(path)


def test_the_fine_tuning_benchmark_points_to_it(tmp_path):
    with pytest.raises(BertsmithError, match=r"blimp needs no fine-tuning; call bertsmith\.evaluate_blimp"):
        bertsmith.benchmark("blimp", tmp_path)
