"""`bertsmith sweep` and `bertsmith evaluate --benchmark` from words to tables: lists, the best, refusals."""

import json
import re
import shlex
import statistics

import pytest
from whole import tiny
from whole.glue import make_glue

import bertsmith
from bertsmith.cli.lists import parse_seeds, parse_values
from bertsmith.errors import BertsmithError
from bertsmith.sweep_results import name_folder


@pytest.fixture
def data(place, tmp_path):
    """Files to sweep over, and the words that are the same for all."""
    for name, start in (("train", "the"), ("dev", "a"), ("test", "this")):
        rows = [f"{record['text']},{record['label']}" for record in tiny.reviews(start)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    files = [part for name in ("train", "dev") for part in (f"--{name}", tmp_path / f"{name}.csv")]
    return ["sweep", *files, "--model", place / "encoder", "--device", "cpu", "--threads", 1, "--out", tmp_path / "out"]


@pytest.fixture
def terminal(monkeypatch):
    for verb in ("sweep", "benchmark"):
        monkeypatch.setattr(f"bertsmith.cli.{verb}.wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "120")


def test_medians_the_best_and_the_command_that_repeats_it(real, data, tmp_path):
    words = ["--rate", "1e-5,3e-3", "--epochs", "1,8", "--seeds", "3", "--batch", 8, "--test", tmp_path / "test.csv"]
    ran = real(*data, *words)
    assert ran.status == 0, ran.err
    (found,) = ran.records
    assert found["task"] == "classify" and found["runs"] == 12 and found["settings"] == {"batch": 8}
    grid = [{"epochs": epochs, "rate": rate} for epochs in (1, 8) for rate in (1e-5, 3e-3)]
    tried = [one["settings"] for one in found["combinations"]]
    assert sorted(tried, key=grid.index) == grid
    for one in found["combinations"]:
        values = [run["metrics"]["accuracy"] for run in one["runs"]]
        assert one["score"]["median"] == pytest.approx(statistics.median(values)) and one["score"]["values"] == values
    medians = [one["score"]["median"] for one in found["combinations"]]
    best = found["best"]
    assert medians == sorted(medians, reverse=True) and best["settings"] == tried[0] == {"epochs": 8, "rate": 3e-3}
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == found
    assert not list((tmp_path / "out").rglob("*.safetensors"))

    said = ran.err.splitlines()
    assert len(re.findall(r"(?m)^\[\d+/12\] epochs [18], rate \S+, seed [123]: accuracy ", ran.err)) == 12
    assert any(f"its median run (seed {best['seed']}) has accuracy" in line for line in said)
    assert f"to have that model: {best['command']}" in said
    repeated = [*shlex.split(best["command"])[1:-1], str(tmp_path / "model"), "--device", "cpu", "--threads", "1"]
    again = real(*repeated)
    assert again.status == 0, again.err
    metrics = again.records[0]["metrics"]
    middle = found["combinations"][0]["runs"][best["seed"] - 1]["metrics"]
    assert {name: one["value"] for name, one in metrics["dev"].items()} == pytest.approx(middle)
    assert metrics["test"] == best["test"]

    once_more = real(*data, *words)
    assert once_more.err.count("(finished before)") == 12 and once_more.records[0]["best"] == best


def test_a_table_for_people_and_a_draw(real, data, terminal):
    words = ["--batch", "8,16,32", "--schedule", "linear,cosine", "--samples", 2, "--seeds", "5,", "--max-steps", 1]
    ran = real(*data, *words)
    assert ran.status == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].startswith("classify: accuracy on the development set, in percent")
    assert lines[1].split() == ["batch", "schedule", "median", "low", "–", "high", "sd", "runs"] and len(lines) == 4
    assert "seed 5: accuracy" in ran.err and "so this score is optimistic" in ran.err and "2 runs in " in ran.err


def test_a_file_of_settings_has_arrays(real, data, tmp_path):
    (tmp_path / "s.toml").write_text('[training]\nbatch = [8, 16]\nmax_steps = 1\nschedule = ["cosine"]\n')
    ran = real(*data, "--settings", tmp_path / "s.toml", "--seeds", 1, "--max-steps", 2, "--jobs", 1)
    (found,) = ran.records
    assert found["settings"] == {"schedule": "cosine", "max_steps": 2}
    assert sorted(one["settings"]["batch"] for one in found["combinations"]) == [8, 16]


def test_optuna_proposes_and_the_same_command_finds_its_runs(real, data):
    pytest.importorskip("optuna")
    words = ["--rate", "1e-4:1e-2", "--batch", "8,16", "--search", "optuna", "--trials", 3]
    words += ["--seeds", 1, "--max-steps", 3]
    ran = real(*data, *words)
    assert ran.status == 0, ran.err
    rates = [one["settings"]["rate"] for one in ran.records[0]["combinations"]]
    assert len(set(rates)) == 3 and all(1e-4 <= rate <= 1e-2 for rate in rates)
    again = real(*data, *words)
    assert again.err.count("(finished before)") == 3 and again.records[0]["best"] == ran.records[0]["best"]


def test_a_failed_combination_is_a_line_and_status_1(real, data):
    ran = real(*data, "--length", "2,16", "--seeds", 1, "--max-steps", 1)
    assert ran.status == 1 and "failed" not in ran.out  # refused at once: the first combination is looked at first
    ran = real(*data, "--length", "16,2", "--seeds", 1, "--max-steps", 1)
    assert ran.status == 1 and ran.records[0]["failed"] == 1
    assert "length 2, seed 1: failed: length is 2, but 2 special tokens alone fill such a row" in ran.err
    assert ran.records[0]["best"]["settings"] == {"length": 16}


@pytest.mark.parametrize(
    "words, status, said",
    [
        (["--rate", "1e-4"], 1, "there is nothing to try: give at least one setting several values"),
        (["--rate", "1e-4,0"], 2, "rate is 0.0; it must be more than 0."),
        (["--rate", "1e-4,high"], 2, "--rate has 'high', which is not a number."),
        (["--batch", "8,1.5"], 2, "--batch has '1.5', which is not a whole number."),
        (["--rate", "1e-4,,1"], 2, "--rate has an empty value"),
        (["--recompute", "yes,maybe"], 2, "--recompute has 'maybe', which is not yes or no."),
        (["--recompute", "--batch", "8,16"], 2, "'--recompute': give yes or no, or yes,no to try both."),
        (["--schedule", "linear,cosin"], 2, "schedule is 'cosin', which is not a choice"),
        (["--rate", "1e-4:1e-3"], 1, "rate is a range, which a grid cannot try; list values, or use --search optuna."),
        (["--batch", "8,16", "--trials", "3"], 1, "trials is for --search optuna"),
        (["--batch", "8,16", "--search", "optuna"], 1, "--search optuna needs --trials"),
        (["--batch", "8,16", "--search", "optuna", "--samples", "2", "--trials", "2"], 1, "samples is for the grid"),
        (["--batch", "8,16", "--seeds", "some"], 2, "--seeds is 'some'; give how many, as in 5"),
        (["--batch", "8,16", "--seeds", "0"], 1, "seeds is 0; there must be at least one run."),
        (["--batch", "8,16", "--seeds", "1,1"], 1, "seeds has 1 more than once"),
        (["--batch", "8,16", "--jobs", "0"], 2, "--jobs"),
        (["--batch", "8,16", "--label", "mood"], 1, 'has no column "mood", which was chosen as label'),
        (["--batch", "8,16", "--metric", "f3"], 1, "metric='f3' is not a choice for classify"),
        (["--scheme", "iob1,iob2"], 1, "scheme is for tag and has no use in classify"),
        (["--batch", "8,16", "--train", "-"], 2, "give files, not standard input."),
        (["--batch", "8,16", "--model", "nowhere/at/all"], 1, "nowhere/at/all"),
        (["--batch", "8,16", "--task", "clasify"], 2, "task='clasify' is not a choice"),
        (["--learning-rate", "1e-4,1e-3"], 2, "No such option"),
    ],
)  # fmt: skip
def test_what_is_refused_before_any_run(real, data, tmp_path, words, status, said):
    ran = real(*data, *words)
    assert ran.status == status and said in " ".join(ran.err.split()), ran.err
    assert ran.out == "" and not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("name", ["train", "out"])
def test_what_a_sweep_needs(real, data, name):
    place = data.index(f"--{name}")
    ran = real(*data[:place], *data[place + 2 :], "--batch", "8,16")
    assert ran.status == 2 and f"--{name} is missing." in ran.err


def test_a_name_in_the_file_of_settings_that_is_none(real, data, tmp_path):
    (tmp_path / "s.toml").write_text("learning_rate = [1e-4, 1e-3]\n")
    ran = real(*data, "--settings", tmp_path / "s.toml")
    assert ran.status == 1 and "has learning_rate, which is not a setting; did you mean rate?" in ran.err


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("rate", "2e-5, 5e-5", [2e-5, 5e-5]),
        ("rate", "1e-5:1e-3", "1e-5:1e-3"),
        ("batch", "16", 16),
        ("epochs", "2,2.5", [2, 2.5]),
        ("recompute", "yes,no", [True, False]),
        ("schedule", "linear,cosine", ["linear", "cosine"]),
        ("separator", ",", ","),
        ("thresholds", "one,0.5", ["one", 0.5]),
    ],
)
def test_values_are_read_by_their_setting(name, text, value):
    assert parse_values(name, text) == value


def test_seeds_are_how_many_or_which():
    assert [parse_seeds(text) for text in ("5", "5,", "3,1")] == [5, [5], [3, 1]]


def test_python_takes_data_that_is_in_no_file(place, tmp_path):
    asked = {"model": place / "encoder", "out": tmp_path / "out", "device": "cpu", "threads": 1}
    asked |= {"seeds": 1, "batch": [8, 16], "max_steps": 2}
    found = bertsmith.sweep("classify", tiny.reviews(), tiny.reviews("a"), **asked)
    assert found["best"]["command"] is None and found["failed"] == 0
    with pytest.raises(BertsmithError, match="the content of dev is another than it was"):
        bertsmith.sweep("classify", tiny.reviews(), tiny.reviews("this"), **asked)


def test_scores_of_other_weights_are_not_told_again(tmp_path):
    """An encoder that was pretrained anew into the same folder."""
    usual = {"seeds": 1, "max_steps": 1, "device": "cpu", "threads": 1}
    tiny.make_encoder(tmp_path / "encoder")
    data = tiny.reviews(), tiny.reviews("a")
    swept = {"model": tmp_path / "encoder", "out": tmp_path / "swept", "batch": [8, 16], **usual}
    scored = {"model": tmp_path / "encoder", "out": tmp_path / "scored", "tasks": ["cola"], **usual}
    make_glue(tmp_path / "glue")
    bertsmith.sweep("classify", *data, **swept)
    bertsmith.benchmark("glue", tmp_path / "glue", **scored)
    tiny.make_encoder(tmp_path / "encoder", seed=1)
    with pytest.raises(BertsmithError, match=r"the weights of the model are others than they were"):
        bertsmith.sweep("classify", *data, **swept)
    with pytest.raises(BertsmithError, match=r"the weights of the model are others than they were"):
        bertsmith.benchmark("glue", tmp_path / "glue", **scored)


def test_python_may_give_paths_columns_and_nothing(place, tmp_path):
    """A path among the settings is written as words, a tuple of columns is known again, and None is not told."""
    rows = "".join(f"{record['text']},{record['label']}\n" for record in tiny.reviews("the"))
    (tmp_path / "train.data").write_text(f"text,label\n{rows}")
    given = {"rate": [1e-3, 2e-3], "seeds": 1, "batch": 8, "max_steps": 1, "device": "cpu", "threads": 1,
             "format": "csv", "features": "last", "cache": tmp_path / "kept", "label": ("label",),
             "length": None}  # fmt: skip
    said = []
    for _ in range(2):
        found = bertsmith.sweep("classify", tmp_path / "train.data", out=tmp_path / "out", model=place / "encoder",
                                say=said.append, **given)  # fmt: skip
        assert found["failed"] == 0 and found["settings"]["cache"] == str(tmp_path / "kept")
    assert said[-1].endswith("(finished before)")
    words = shlex.split(found["best"]["command"])
    told = {name: words[words.index(f"--{name}") + 1] for name in ("format", "label", "cache")}
    assert told == {"format": "csv", "label": "label", "cache": str(tmp_path / "kept")}
    assert "--length" not in words


def test_folders_of_combinations_are_readable_and_never_one():
    assert name_folder({"rate": 5e-5, "batch": 16}) == "rate5e-05-batch16"
    assert len({name_folder({"cache": cache}) for cache in ("a/b", "a_b", "a b", "a:b")}) == 4


@pytest.fixture
def glue(place, tmp_path):
    words = ["--model", place / "encoder", "--device", "cpu", "--threads", 1, "--max-steps", 2, "--rate", "1e-3"]
    return ["evaluate", "--benchmark", "glue", make_glue(tmp_path / "glue"), *words]


def test_a_benchmark_as_a_table(real, glue, terminal, tmp_path):
    ran = real(*glue, "--tasks", "mnli,stsb", "--seeds", "2,4", "--out", tmp_path / "out")
    assert ran.status == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[1].split()[:4] == ["task", "metric", "median", "low"]
    assert [line.split()[0] for line in lines[2:5]] == ["STS-B", "STS-B", "MNLI"] and "subset: train 18 of" in ran.out
    assert "medians over 2 seeds (2, 4)" in ran.err and ran.err.splitlines()[-1].startswith("4 runs in ")


def test_a_benchmark_in_a_pipe_and_a_failure(real, glue, tmp_path):
    path = tmp_path / "glue" / "CoLA" / "train.tsv"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "\t1\t" in line))
    ran = real(*glue, "--tasks", "cola,sst2", "--seeds", 1)
    (found,) = ran.records
    assert ran.status == 1 and found["failed"] == 1 and found["tasks"][0]["runs"][0]["error"]
    assert "CoLA seed 1: failed: " in ran.err and found["tasks"][1]["score"] is not None


@pytest.mark.parametrize(
    "words, status, said",
    [
        (["--benchmark", "gleu", "glue"], 2, "; did you mean glue?"),
        (["--benchmark", "glue"], 2, "--benchmark glue needs the folder with its tasks"),
        (["--benchmark", "glue", "glue", "--data", "x.csv"], 2, "--data has no use with --benchmark"),
        (["--benchmark", "glue", "glue", "--text", "a"], 2, "--text has no use with --benchmark"),
        (["--benchmark", "glue", "glue", "--dtype", "bfloat16"], 2, "a fine-tuning takes --precision"),
        (["--benchmark", "glue", "glue", "--start", "rte"], 2, "--start is 'rte'; give a task and its model"),
        (["--benchmark", "glue", "glue", "--start", "a=b", "--start", "a=c"], 2, "--start names a twice"),
        (["--benchmark", "glue", "glue", "--rate", "-1"], 2, "rate is -1.0; it must be more than 0."),
        (["--benchmark", "glue", "nowhere"], 1, "nowhere is not a folder"),
        (["--data", "x.csv", "--jobs", "2"], 2, "--jobs is for --benchmark NAME DIR"),
        (["--data", "x.csv", "--rate", "1e-4"], 2, "--rate trains, which only --benchmark does."),
        (["--data", "x.csv", "glue"], 2, "glue is given as a benchmark's folder"),
        ([], 2, "--data is missing"),
    ],
)
def test_what_evaluate_refuses(real, tmp_path, monkeypatch, words, status, said):
    make_glue(tmp_path / "glue")
    monkeypatch.chdir(tmp_path)
    ran = real("evaluate", *words)
    assert ran.status == status and said in " ".join(ran.err.split()), ran.err


def test_help_shows_how(real):
    for verb, word in (("sweep", "--rate 5e-5,1e-4"), ("evaluate", "--benchmark glue GLUE")):
        ran = real(verb, "--help")
        assert ran.status == 0 and f"bertsmith {verb} " in ran.out and word in ran.out
