"""`bertsmith.benchmark` over a folder laid out as GLUE: medians, subsets, the mean, resuming, refusals."""

import json
import os
import re
import signal
import statistics
import subprocess
import sys

import pytest
from whole.glue import make_glue, write

import bertsmith
from bertsmith.errors import BertsmithError

LEARN = {"batch": 8, "rate": 2e-3, "max_steps": 4, "device": "cpu"}

pytestmark = pytest.mark.usefixtures("one_thread")  # as the workers have it


@pytest.fixture
def glue(tmp_path):
    return make_glue(tmp_path / "glue")


@pytest.fixture
def whole(monkeypatch):
    """CoLA and STS-B are complete as they are made."""
    from bertsmith.evaluation import benchmarks

    small = [benchmarks.BenchmarkTask(row.name, row.title, row.kind, (18, 18), row.metrics, row.settings)
             if row.name in ("cola", "stsb") else row for row in benchmarks.GLUE]  # fmt: skip
    monkeypatch.setitem(benchmarks.BENCHMARKS, "glue", small)


def test_each_task_is_what_finetune_gives_and_the_rest_is_medians(glue, encoder, tmp_path, whole):
    said = []
    found = bertsmith.benchmark("glue", glue, encoder, seeds=[3, 8], out=tmp_path / "out", say=said.append, **LEARN)
    assert [task["title"] for task in found["tasks"]] == ["CoLA", "SST-2", "STS-B", "MNLI"]
    assert said[0].startswith("RTE is left out: ") and len([line for line in said if line.startswith("[")]) == 8
    tasks = {task["task"]: task for task in found["tasks"]}
    for task, kind, metrics in (("cola", "classify", ("matthews",)), ("stsb", "regress", ("pearson", "spearman"))):
        folder = glue / tasks[task]["title"]
        runs = [
            bertsmith.finetune(kind, folder / "train.tsv", folder / "dev.tsv", out=tmp_path / f"{task}{seed}",
                               model=encoder, metric=metrics[0], check=False, seed=seed, **LEARN)
            for seed in (3, 8)
        ]  # fmt: skip
        for metric in metrics:
            values = [run.metrics["dev"][metric]["value"] for run in runs]
            spread = tasks[task]["metrics"][metric]
            assert spread["values"] == values and spread["median"] == pytest.approx(statistics.median(values))
            assert spread["sd"] == pytest.approx(statistics.stdev(values))
    score = [statistics.fmean(run["metrics"][m] for m in ("pearson", "spearman")) for run in tasks["stsb"]["runs"]]
    assert tasks["stsb"]["score"]["values"] == pytest.approx(score)  # GLUE's: the mean of both

    assert tasks["cola"]["subset"] is None and tasks["mnli"]["subset"] == "train 18 of 392,702, dev 18 of 9,815"
    assert tasks["mnli"]["train"] == {"file": "train.subset10k.tsv", "examples": 18, "of": 392_702}
    complete, everything = found["means"]
    assert complete["tasks"] == ["CoLA", "STS-B"] and complete["complete"] and not everything["complete"]
    for mean in found["means"]:
        medians = [task["score"]["median"] for task in found["tasks"] if task["title"] in mean["tasks"]]
        assert mean["value"] == pytest.approx(statistics.fmean(medians))

    assert json.loads((tmp_path / "out" / "results.json").read_text()) == json.loads(json.dumps(found))
    table = (tmp_path / "out" / "results.md").read_text()
    assert "subset: train 18 of 392,702" in table and "best score on the development set" in table
    assert not list((tmp_path / "out").rglob("*.safetensors"))
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"cola-seed3", "mnli-seed8"}

    again = bertsmith.benchmark("glue", glue, encoder, seeds=[3, 8], out=tmp_path / "out", **LEARN)
    assert again["tasks"] == found["tasks"]
    whole_only = bertsmith.benchmark("glue", glue, encoder, seeds=[3], complete=True, out=tmp_path / "out", **LEARN)
    assert [task["task"] for task in whole_only["tasks"]] == ["cola", "stsb"] and len(whole_only["means"]) == 1


def test_a_task_may_start_from_another_model(glue, encoder, tmp_path):
    """SST-2 from the model that CoLA made, as RTE is from MNLI's."""
    asked = {"seeds": 1, **LEARN}
    first = bertsmith.benchmark("glue", glue, encoder, tasks=["cola"], out=tmp_path / "a", keep_models=True, **asked)
    start = {"sst-2": tmp_path / "a" / "cola-seed1"}
    found = bertsmith.benchmark(
        "glue", glue, encoder, tasks=["sst2", "cola"], start=start, out=tmp_path / "b", **asked
    )  # fmt: skip
    cola, sst2 = found["tasks"]
    assert cola["metrics"] == first["tasks"][0]["metrics"] and cola["model"] == str(encoder.resolve())
    folder = glue / "SST-2"
    run = bertsmith.finetune("classify", folder / "train.tsv", folder / "dev.tsv", out=tmp_path / "c", seed=1,
                             model=start["sst-2"], metric="accuracy", check=False, **LEARN)  # fmt: skip
    assert sst2["metrics"]["accuracy"]["values"] == [run.metrics["dev"]["accuracy"]["value"]]
    assert f"from {sst2['model']}" in (tmp_path / "b" / "results.md").read_text()


def test_a_failed_task_leaves_the_others_and_nothing_stays_without_out(glue, encoder, tmp_path, monkeypatch):
    write(glue / "SST-2" / "dev.tsv", ("sentence", "label"), ("a film was good", "unheard"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    found = bertsmith.benchmark("glue", glue, encoder, tasks=["cola", "sst2"], seeds=2, **LEARN)
    cola, sst2 = found["tasks"]
    assert found["failed"] == 2 and found["runs"] == 4 and cola["score"] is not None
    assert sst2["score"] is None and all("unheard" in run["error"] for run in sst2["runs"])
    assert found["means"][0]["tasks"] == ["CoLA"] and not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize(
    "given, said",
    [
        ({"tasks": ["qnli"]}, "has no folder QNLI"),
        ({"seeds": 0}, "seeds is 0"),
        ({"jobs": 0}, "jobs"),
        ({"lr": 1e-4}, "lr is not a setting; did you mean rate?"),
        ({"rate": -1.0}, "rate is -1.0; it must be more than 0."),
        ({"metric": "f1"}, "metric cannot be chosen for a benchmark: the benchmark's own rows settle it"),
        ({"seed": 1}, "seed cannot be chosen for a benchmark: give seeds"),
        ({"text": "a"}, "text cannot be chosen for a benchmark"),
        ({"several": True}, "several cannot be chosen for a benchmark"),
        ({"swap": "no"}, "swap is 'no'; it must be true or false."),
        (
            {"swap": True, "tasks": ["mnli", "sst2"]},
            "those of mrpc, stsb, qqp, and has no use in SST-2, MNLI; leave it",
        ),
        ({"start": {"rtee": "x"}}, "start names rtee, which is not among the tasks here"),
        ({"start": {"cola": "nowhere/at/all"}}, "nowhere/at/all"),
        ({"model": "nowhere/at/all"}, "nowhere/at/all"),
        ({"device": "abacus"}, "abacus"),
        ({"keep_models": True, "out": None}, "keep_models needs a folder to keep them in: give out."),
        ({"complete": True}, "holds no task in full; leave complete out"),
    ],
)
def test_what_is_refused_before_any_run(glue, encoder, tmp_path, given, said):
    with pytest.raises(BertsmithError) as error:
        bertsmith.benchmark("glue", glue, **{"model": encoder, "out": tmp_path / "out", **LEARN, **given})
    assert said in str(error.value) and not list(tmp_path.glob("out/*"))


def test_a_file_without_its_column_is_named_before_any_run(glue, encoder, tmp_path):
    write(glue / "STS-B" / "dev.tsv", ("index", "sentence1", "sentence2"), (0, "a film", "a plot"))
    with pytest.raises(BertsmithError, match=r"STS-B/dev\.tsv has no column known as label"):
        bertsmith.benchmark("glue", glue, encoder, out=tmp_path / "out", **LEARN)
    assert not list((tmp_path / "out").iterdir())


def test_a_file_in_the_place_of_the_folder(glue, encoder, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(BertsmithError, match="out cannot be used as a folder for the runs"):
        bertsmith.benchmark("glue", glue, encoder, out=tmp_path / "out", **LEARN)


def start_command(glue, encoder, out, *words):
    """`bertsmith evaluate --benchmark` as a terminal starts it: the leader of a group of processes."""
    line = [sys.executable, "-m", "bertsmith", "evaluate", "--benchmark", "glue", glue, "--model", encoder]
    line += ["--tasks", "cola,sst2", "--seeds", "2", "--jobs", "2", "--device", "cpu", "--rate", "2e-3", "--out", out]
    there = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*map(str, line), *words], env=there, start_new_session=True, **pipes)


def test_ctrl_c_ends_all_and_the_same_command_goes_on(glue, encoder, tmp_path):
    words = ("--batch", "1", "--epochs", "3")
    process = start_command(glue, encoder, tmp_path / "out", *words)
    said = [process.stderr.readline()]
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of the group
    _, rest = process.communicate(timeout=600)
    assert said[0].startswith("[1/4] ") and process.returncode == 130, rest
    assert "Traceback" not in rest
    assert re.search(r"stopped; [123] of 4 runs are finished, and the same command goes on\.$", rest.strip())
    assert not (tmp_path / "out" / "results.json").exists()

    process = start_command(glue, encoder, tmp_path / "out", *words)
    out, rest = process.communicate(timeout=600)
    assert process.returncode == 0, rest
    assert "(finished before)" in rest and rest.splitlines()[-1].startswith("4 runs in ")
    found = json.loads(out)
    settings = {"batch": 1, "epochs": 3, "rate": 2e-3, "device": "cpu"}
    alone = bertsmith.benchmark("glue", glue, encoder, tasks=["cola", "sst2"], seeds=2, **settings)
    assert [task["metrics"] for task in found["tasks"]] == [task["metrics"] for task in alone["tasks"]]


def test_a_script_without_a_guard_is_told_of_it(glue, encoder, tmp_path):
    """A fresh process runs the script again, and would start others without end; that is told once, and not done."""
    script = tmp_path / "mine.py"
    asked = f"{str(glue)!r}, {str(encoder)!r}, tasks=['cola'], seeds=2, jobs=2, device='cpu'"
    script.write_text(f"import bertsmith\nbertsmith.benchmark('glue', {asked})\nprint('went on')\n")
    ran = run_script(script)
    last = ran.stderr.splitlines()[-1]
    assert ran.returncode == 1 and last.endswith('under `if __name__ == "__main__":`, or leave jobs at 1.')
    assert ran.stderr.count("Traceback") == 1 and "freeze_support" not in ran.stderr and "went on" not in ran.stdout


WATCHED = """
import os
import bertsmith

class Rows(list):
    def __iter__(self):
        print(os.getpid())
        return super().__iter__()

rows = Rows({"text": text, "label": text == "a"} for text in "abababab")
"""


def test_a_sweep_without_a_guard_is_not_begun_again(encoder, tmp_path):
    """The workers run the script up to the sweep, and none of them reads the data."""
    script = tmp_path / "mine.py"
    asked = f"out={str(tmp_path / 'out')!r}, model={str(encoder)!r}, rate=[1e-3, 1e-4], jobs=2, device='cpu'"
    script.write_text(f"{WATCHED}bertsmith.sweep('classify', rows, rows, check=False, {asked})\n")
    ran = run_script(script)
    last = ran.stderr.splitlines()[-1]
    assert ran.returncode == 1 and last.endswith('under `if __name__ == "__main__":`, or leave jobs at 1.'), ran.stderr
    assert ran.stderr.count("Traceback") == 1 and "freeze_support" not in ran.stderr
    assert len(set(ran.stdout.split())) == 1


def run_script(script):
    there = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, script], env=there, capture_output=True, text=True, timeout=600)


def test_pairs_without_an_order_are_learnt_both_ways_round(glue, encoder, tmp_path):
    """STS-B as `finetune(swap=True)` learns it; MNLI's premise and hypothesis, and CoLA's lone texts, as they are."""
    said: list[str] = []
    given = {**LEARN, "seeds": [3], "tasks": ["cola", "stsb", "mnli"]}
    found = bertsmith.benchmark("glue", glue, encoder, swap=True, say=said.append, **given)
    plain = bertsmith.benchmark("glue", glue, encoder, **given)
    assert said[0] == "learnt both ways round (swap): STS-B."
    tasks, others = ({task["task"]: task for task in each["tasks"]} for each in (found, plain))
    alone = bertsmith.finetune("regress", glue / "STS-B" / "train.tsv", glue / "STS-B" / "dev.tsv", out=tmp_path / "a",
                               model=encoder, metric="pearson", check=False, seed=3, swap=True, **LEARN)  # fmt: skip
    assert tasks["stsb"]["metrics"]["pearson"]["values"] == [alone.metrics["dev"]["pearson"]["value"]]
    assert tasks["stsb"]["metrics"] != others["stsb"]["metrics"] and tasks["stsb"]["settings"]["swap"] is True
    for name in ("cola", "mnli"):
        assert tasks[name]["metrics"] == others[name]["metrics"] and tasks[name]["settings"] == others[name]["settings"]
