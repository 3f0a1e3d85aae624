"""Numbers and choices from a file to a folder that others open: fine-tuning, evaluating, asking, the command line."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file
from typer.testing import CliRunner
from whole.tiny import DISLIKED, LIKED, THINGS, make_encoder

import bertsmith
from bertsmith.cli.app import app
from bertsmith.errors import BertsmithError

pytestmark = pytest.mark.usefixtures("offline")
LEARN = {"epochs": 12, "batch": 8, "rate": 2e-3, "device": "cpu", "threads": 1}


def ratings(start="the", scale=1000.0, shift=-500.0):
    """Texts whose last word decides a number far from 0 and 1, below 0 too."""
    worth = {word: i for i, word in enumerate([*DISLIKED, *LIKED])}
    return [{"text": f"{start} {thing} was {word}", "target": shift + scale * value}
            for word, value in worth.items() for thing in THINGS]  # fmt: skip


def questions(start="who is"):
    """Two to four choices, one of them a word of praise."""
    found = []
    for i, thing in enumerate(THINGS * 6):
        wrong = [DISLIKED[(i + n) % 4] for n in range(1 + i % 3)]
        choices = [*wrong[: i % 2], LIKED[i % 4], *wrong[i % 2 :]]
        found.append({"prompt": f"{start} {thing} {i}", "choices": choices, "answer": LIKED[i % 4]})
    return found


def run_cli(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def rated(tmp_path_factory, encoder):
    place = tmp_path_factory.mktemp("rated")
    run = bertsmith.finetune("regress", ratings(), ratings("a"), test=ratings("this"), out=place / "model",
                             model=encoder, **{**LEARN, "epochs": 40})  # fmt: skip
    return run


@pytest.fixture(scope="module")
def chosen(tmp_path_factory, encoder):
    place = tmp_path_factory.mktemp("chosen")
    for side, start in (("train", "who is"), ("dev", "what is")):
        (place / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions(start)))
    return bertsmith.finetune("choose", place / "train.jsonl", place / "dev.jsonl", out=place / "model", model=encoder,
                              **LEARN), place  # fmt: skip


def test_numbers_of_any_size_and_sign_are_learnt(rated):
    found = rated.metrics["test"]
    assert list(found) == ["pearson", "spearman", "mse", "mae"]
    assert found["pearson"]["value"] > 0.9 and found["pearson"]["low"] <= found["pearson"]["value"]
    assert found["mae"]["value"] < 1000
    assert bertsmith.evaluate(rated.folder, ratings("this"), device="cpu")["metrics"] == found


def test_the_reference_gives_the_same_number(rated):
    tokenizer = transformers.AutoTokenizer.from_pretrained(rated.folder)
    reference = transformers.AutoModelForSequenceClassification.from_pretrained(rated.folder).eval()
    assert reference.config.problem_type == "regression" and reference.config.num_labels == 1
    texts = [row["text"] for row in ratings("a")][::7]
    with torch.no_grad():
        theirs = reference(**tokenizer(texts, padding=True, return_tensors="pt")).logits[:, 0].tolist()
    ours = [result[0]["score"] for result in rated.model.score(texts)]
    assert ours == pytest.approx(theirs, rel=1e-4, abs=0.5) and min(ours) < 0 < max(ours)


def test_a_head_of_numbers_goes_on_training_where_it_was(rated, tmp_path):
    """One step with hardly any rate leaves the model as it was, though it trains in other units."""
    said = []
    more = {**LEARN, "epochs": 1, "rate": 1e-9, "max_steps": 1}
    again = bertsmith.finetune("regress", ratings("a", scale=10.0), ratings("this"), out=tmp_path / "again",
                               model=rated.folder, say=said.append, **more)  # fmt: skip
    assert "The model's own head for classify goes on training." in said
    old, new = (load_file(run.folder / "model.safetensors") for run in (rated, again))
    for name in old:
        assert torch.allclose(old[name], new[name], rtol=1e-4, atol=1e-3 * float(old[name].abs().max())), name


def test_jobs_that_do_not_fit_say_so(rated, chosen):
    model = rated.model
    with pytest.raises(BertsmithError, match=r"gives a number .* not a class; use score"):
        model.classify("x")
    with pytest.raises(BertsmithError, match=r"no head to choose .*\(finetune, task 'choose'\)"):
        model.choose("x", ["a", "b"])
    with pytest.raises(BertsmithError, match=r"no head to give a number .*\(finetune, task 'regress'\)"):
        chosen[0].model.score("x")


def test_a_model_of_others_is_evaluated_by_its_problem_type(tmp_path):
    settings = {"num_labels": 1, "problem_type": "regression"}
    folder = make_encoder(tmp_path / "number", "ForSequenceClassification", **settings)
    found = bertsmith.evaluate(folder, ratings(), device="cpu")
    assert found["task"] == "regress" and list(found["metrics"]) == ["pearson", "spearman", "mse", "mae"]
    folder = make_encoder(tmp_path / "choose", "ForMultipleChoice")
    assert bertsmith.evaluate(folder, questions(), device="cpu")["task"] == "choose"


def test_only_metrics_of_which_more_is_better_choose(tmp_path, encoder):
    with pytest.raises(BertsmithError, match="metric='mse' is not a choice for regress; use one of pearson, spearman"):
        bertsmith.finetune("regress", ratings(), out=tmp_path / "x", model=encoder, metric="mse", **LEARN)


def test_choices_are_learnt(chosen):
    run, place = chosen
    assert run.metrics["dev"]["accuracy"]["value"] > 0.9
    assert bertsmith.evaluate(run.folder, place / "dev.jsonl", device="cpu")["metrics"] == run.metrics["dev"]
    best = run.model.choose("who is song", ["good", "bad", "dull"])
    assert best[0]["choice"] == "good" and best[0]["index"] == 0 and len(best) == 3


def test_the_reference_chooses_the_same(chosen):
    run, _ = chosen
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.folder)
    reference = transformers.AutoModelForMultipleChoice.from_pretrained(run.folder).eval()
    for row in questions("what is")[::7]:
        rows = tokenizer([row["prompt"]] * len(row["choices"]), row["choices"], padding=True, return_tensors="pt")
        with torch.no_grad():
            theirs = reference(**{name: some[None] for name, some in rows.items()}).logits[0].softmax(dim=-1)
        for answer in run.model.choose(row["prompt"], row["choices"]):
            assert answer["score"] == pytest.approx(theirs[answer["index"]].item(), abs=1e-5)


def test_a_small_budget_learns_the_same(chosen, tmp_path, encoder):
    """Passes of a few tokens each make the same steps."""
    _, place = chosen
    weights = []
    for budget in (40, 9999):
        settings = {**LEARN, "epochs": 2, "dropout": 0.0, "batch_tokens": budget, "out": tmp_path / str(budget)}
        run = bertsmith.finetune("choose", place / "train.jsonl", place / "dev.jsonl", model=encoder, **settings)
        weights.append(load_file(run.folder / "model.safetensors"))
    one, two = weights
    idle = ("classifier.bias", "key.bias")  # added to every choice, every key: their gradient is rounding alone
    for name in one:
        assert name.endswith(idle) or torch.allclose(one[name], two[name], atol=2e-3), name


def test_reports_and_cards(rated, chosen):
    for run, pipeline, title in ((rated, "text-classification", "A number for texts"),
                                 (chosen[0], "multiple-choice", "Choosing what goes with a text")):  # fmt: skip
        card = (run.folder / "README.md").read_text()
        assert f"pipeline_tag: {pipeline}" in card and title in card and "It answers with" not in card
        assert title in (run.folder / "report.html").read_text()


def test_verbs(rated, chosen, tmp_path):
    found = run_cli("score", "the film was good", "the film was bad", "--model", rated.folder, "--device", "cpu")
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert found.exit_code == 0 and [line["input"] for line in lines] == ["the film was good", "the film was bad"]
    assert lines[0]["answers"][0]["score"] > lines[1]["answers"][0]["score"]
    run, place = chosen
    found = run_cli("choose", "who is song", "good", "bad", "--model", run.folder, "--device", "cpu")
    line = json.loads(found.stdout)
    assert line["answers"][0] == {"index": 0, "choice": "good", "score": pytest.approx(line["answers"][0]["score"])}
    found = run_cli("choose", "--in", place / "dev.jsonl", "--model", run.folder, "--device", "cpu")
    assert len(found.stdout.splitlines()) == len(questions())
    csv = tmp_path / "texts.csv"
    csv.write_text("text,label\nthe film was good,7\nthe film was bad,1\n")
    found = run_cli("score", "--in", csv, "--model", rated.folder, "--device", "cpu")
    assert [json.loads(line)["answers"] for line in found.stdout.splitlines()] == [line["answers"] for line in lines]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["choose", "who"], "give a prompt and two choices or more, or --in FILE"),
        (["choose", "who", "a", "b", "--in", "x.csv"], "give a prompt with its choices or --in FILE, not both"),
        (["choose", "who", "a", "b", "--choices", "c"], "a column was named, but no file"),
        (["score"], "give a text, - for standard input, or --in FILE"),
        (["classify", "x", "--several"], "--hypothesis and --several say how --labels are judged"),
        (["classify", "x", "--labels", "a,b", "--pair", "y"], "--labels are judged for a text, not for a pair"),
    ],
)
def test_wrong_commands(words, why):
    found = run_cli(*words)
    assert found.exit_code == 2 and why in found.output


def test_one_choice_on_the_command_line(chosen):
    found = run_cli("choose", "who", "a", "--model", chosen[0].folder, "--device", "cpu")
    assert isinstance(found.exception, BertsmithError) and str(found.exception).startswith("one choice is no choice")


def test_labels_never_learnt_on_the_command_line(tmp_path):
    names = {"id2label": {0: "contradiction", 1: "neutral", 2: "entailment"}}
    folder = make_encoder(tmp_path / "nli", "ForSequenceClassification", **names)
    found = run_cli("classify", "the match was good", "--labels", "sport, news", "--hypothesis", "it is {}",
                    "--model", folder, "--device", "cpu")  # fmt: skip
    answers = json.loads(found.stdout)["answers"]
    wanted = bertsmith.load(folder).classify("the match was good", labels=["sport", "news"], hypothesis="it is {}")
    assert [a["label"] for a in answers] == [a["label"] for a in wanted] and len(answers) == 2
    assert [a["score"] for a in answers] == pytest.approx([a["score"] for a in wanted])
