"""The rows of the benchmarks, their files, medians over runs, and the tables made of them."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError
from bertsmith.evaluation.benchmarks import BENCHMARKS, GLUE, choose_tasks, find_benchmark, find_tasks
from bertsmith.evaluation.spreading import middle_run, spread_of
from bertsmith.evaluation.tables import as_markdown, benchmark_notes, benchmark_rows
from bertsmith.tasks.catalog import find_task
from bertsmith.training.choices import sort_choices

SCORES = st.lists(st.floats(-1, 1), min_size=1, max_size=9)


@given(SCORES)
def test_medians_and_scatter_are_those_of_numpy_and_statistics(values):
    spread = spread_of(values)
    assert spread.median == pytest.approx(np.median(values), abs=1e-12)
    assert (spread.low, spread.high) == (min(values), max(values)) and list(spread.values) == values
    if len(values) == 1:
        assert spread.sd is None
    else:
        assert spread.sd == pytest.approx(np.std(values, ddof=1), abs=1e-9)


def test_no_run_has_no_median():
    assert spread_of([]) is None


@given(SCORES)
def test_the_run_in_the_middle_has_the_low_median(values):
    assert values[middle_run(values)] == statistics.median_low(values)


@pytest.mark.parametrize("row", [row for rows in BENCHMARKS.values() for row in rows], ids=lambda row: row.name)
def test_each_row_is_a_fine_tuning_that_can_be_asked_for(row):
    """Its settings are settings, its metrics are ones that the task gives."""
    kind = find_task(row.kind)
    _, training, _ = sort_choices({**row.settle({}), **row.columns})
    assert training.metric == row.metrics[0] and training.epochs and training.rate
    made = {"classify": {"accuracy", "matthews", "f1"}, "regress": {"pearson", "spearman"}}[kind.name]
    assert set(row.metrics) <= made
    assert "rate" not in row.settle({"lora": 8}) and row.settle({"lora": 8, "rate": 1e-3})["rate"] == 1e-3


def test_the_sizes_are_those_that_glue_publishes():
    """Table 1 of the paper, in thousands; dev as its files have it."""
    published = {"cola": 8.5, "sst2": 67, "mrpc": 3.7, "stsb": 5.7, "qqp": 364, "mnli": 393, "qnli": 105, "rte": 2.5,
                 "wnli": 0.634}  # fmt: skip
    assert {row.name for row in GLUE} == set(published)
    for row in GLUE:
        assert row.sizes[0] / 1000 == pytest.approx(published[row.name], rel=0.03)


def make_files(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("sentence\tlabel\na\t1\n")


def test_folders_are_found_by_name_and_whole_files_before_parts(tmp_path):
    make_files(tmp_path, "sst_2/train.tsv", "sst_2/dev.tsv", "sst_2/train.subset9.tsv", "CoLA/train.some.tsv")
    make_files(tmp_path, "CoLA/validation-00000-of-00001.parquet")
    make_files(tmp_path, "MNLI/train.subset10k.tsv", "MNLI/dev_mismatched.tsv")
    found, notes = find_tasks("glue", tmp_path)
    assert {one.task.name: (one.train.name, one.dev.name) for one in found} == {
        "sst2": ("train.tsv", "dev.tsv"),
        "cola": ("train.some.tsv", "validation-00000-of-00001.parquet"),
    }
    assert len(notes) == 1 and notes[0].startswith("MNLI is left out: ") and "dev_matched.tsv" in notes[0]


def test_tasks_come_in_the_order_of_the_table():
    assert [row.name for row in choose_tasks("glue", ["RTE", "sst-2", "cola"])] == ["cola", "sst2", "rte"]


@pytest.mark.parametrize(
    "names, said",
    [
        (["sst3"], "glue has no task 'sst3' (its tasks are cola,"),
        (["rte", "RTE"], "rte is named twice"),
        ([], "no task is named"),
        (["qnli"], "has no folder QNLI, where qnli should be."),
        (["rte"], "RTE has no train file; looked for train.tsv,"),
        (["mrpc"], "has several files that may be its train: train.a.tsv, train.b.tsv"),
        (None, "holds no task of glue; looked for the folders CoLA,"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, names, said):
    (tmp_path / "RTE").mkdir()
    make_files(tmp_path, "MRPC/train.a.tsv", "MRPC/train.b.tsv", "MRPC/dev.tsv")
    with pytest.raises(BertsmithError) as error:
        find_tasks("glue", tmp_path, names)
    assert said in str(error.value)


def test_other_refusals(tmp_path):
    with pytest.raises(BertsmithError, match=r"'gleu' is not a benchmark \(there is glue.*\); did you mean glue\?"):
        find_benchmark("gleu")
    with pytest.raises(BertsmithError, match="is not a folder; give the one that holds the tasks"):
        find_tasks("glue", tmp_path / "nowhere")


def task_result(title, values, subset=None, errors=(), in_mean=True):
    spread = spread_of(values)
    runs = [{"error": None} for _ in values] + [{"error": error} for error in errors]
    metrics = {"accuracy": spread.as_json()} if spread else {}
    return {"title": title, "model": "m", "subset": subset, "metrics": metrics, "runs": runs, "in_mean": in_mean}


def test_the_table_tells_of_subsets_and_failures():
    result = {
        "seeds": [1, 2, 3], "runs": 6, "failed": 4, "seconds": 61.0,
        "tasks": [task_result("A", [0.5, 0.75], "train 10 of 20", ["it | broke."]),
                  task_result("B", [], errors=["it | broke."] * 3, in_mean=False)],
        "means": [{"value": 0.625, "tasks": ["A"], "complete": False}],
    }  # fmt: skip
    first, second, mean = benchmark_rows(result)
    assert first == {"task": "A", "metric": "accuracy", "median": "62.50", "low – high": "50.00 – 75.00", "sd": "17.68",
                     "runs": "2 of 3", "remark": "subset: train 10 of 20; failed: it | broke."}  # fmt: skip
    assert second["median"] == "–" and second["remark"] == "failed: it | broke."
    assert mean["metric"] == "of 1 task" and mean["remark"] == "A"
    lines = as_markdown([first, second, mean]).splitlines()
    assert len(lines) == 5 and all(line.replace("\\|", "").count("|") == 8 for line in lines)
    notes = benchmark_notes(result)
    assert "B is not in the mean." in notes and notes[-1] == "6 runs in 1 min, 4 of them failed."
    assert any("best score on the development set" in note for note in notes)
