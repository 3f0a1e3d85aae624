"""A number for a text: the reference's loss and numbers, targets of any size and sign, filler that costs nothing."""

import numpy as np
import pytest
import torch
from tasks.made import bert_pieces, open_both, wordpiece_files

import bertsmith
from bertsmith.data.batch import Batch
from bertsmith.data.columns import find_columns
from bertsmith.data.doctor import diagnose
from bertsmith.data.examples import NumberExample
from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import save_checkpoint
from bertsmith.models.fitting import fit_head
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.losses import Criterion, find_known
from bertsmith.tasks.regress import Regress
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy

TEXTS = ["the fox is quick", "a lazy dog", "paris is the capital of france", "not good", "he walked"]
NUMBERS = [-3.5, 2.25, 0.0, -1000.0, 7.0]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("number")
    settings = {"num_labels": 1, "problem_type": "regression"}
    return open_both(folder, "bert", "classify", wordpiece_files(bert_pieces()), **settings)


def plain(both, **settings):
    """The task as a folder of others has it: the output is the number."""
    made = {**Regress.settings_from(["LABEL_0"], "regression"), **settings}
    return Regress(both.ours.tokenizer, 64, made["truncate"], made)


def read(records, gold=True, **columns):
    table = read_table(records, name="train")
    return Regress.examples(table, find_columns(table, Regress.roles, columns, required=Regress.required), {}, gold)


def reference_number(both, text, pair=None):
    with torch.no_grad():
        return both.reference(**both.tokenizer(text, pair, return_tensors="pt")).logits.item()


def test_numbers_are_the_references(both):
    for text in TEXTS:
        assert both.ours.score(text)[0]["score"] == pytest.approx(reference_number(both, text), abs=1e-5)
    found = both.ours.score(TEXTS, TEXTS[::-1])
    wanted = [reference_number(both, a, b) for a, b in zip(TEXTS, TEXTS[::-1], strict=True)]
    assert [result[0]["score"] for result in found] == pytest.approx(wanted, abs=1e-5)
    assert found[0].as_dict() == {"answers": [{"score": pytest.approx(wanted[0], abs=1e-5)}], "truncated": 0}


def test_the_loss_is_the_references(both):
    """Raw squared error, when mean and spread are those of nothing."""
    task, network = plain(both), both.ours.checkpoint.network
    rows = [row for some in task.rows(list(map(NumberExample, TEXTS, [None] * 5, NUMBERS))) for row in some]
    batch, gold = Batch.of([r.ids for r in rows], [r.segments for r in rows]), torch.from_numpy(task.gold(rows))
    with torch.no_grad():
        ours = task.loss(task.read(network, batch, None), gold, batch, Criterion())
        given = both.tokenizer(TEXTS, return_tensors="pt", padding=True)
        theirs = both.reference(**given, labels=torch.tensor(NUMBERS)).loss
    assert ours.mean().item() == pytest.approx(theirs.item(), rel=1e-5)


def test_standardised_numbers_are_folded_into_the_output_layer(both):
    examples = list(map(NumberExample, TEXTS, [None] * 5, NUMBERS))
    settings = Regress.settle(examples, {})
    assert settings["mean"] == np.mean(NUMBERS) and settings["spread"] == np.std(NUMBERS)
    task, network = plain(both, **settings), both.ours.checkpoint.network
    gold = task.gold([row for some in task.rows(examples) for row in some])
    assert gold.dtype == np.float32 and abs(gold.mean()) < 1e-6 and gold.std() == pytest.approx(1)
    before = [result[0]["score"] for result in both.ours.predictor.predict(task, examples)]
    out = network.heads["classify"].out
    kept = out.weight.detach().clone(), out.bias.detach().clone()
    folded = task.tuned(task.fold(network))
    after = [result[0]["score"] for result in both.ours.predictor.predict(folded, examples)]
    assert after == pytest.approx(before, rel=1e-5) and folded.mean == 0 and folded.spread == 1
    task.unfold(network)
    assert torch.allclose(out.weight, kept[0], atol=1e-6) and torch.allclose(out.bias, kept[1], atol=1e-5)


def test_negative_targets_count_and_filler_does_not(both):
    task = plain(both)
    study = TaskStudy(task, task.rows(list(map(NumberExample, TEXTS, [None] * 5, NUMBERS))), Training(batch=5))
    (work,) = study.works(0, 0, 1, 1000)
    assert work.counts == {"loss": 5.0} and np.isnan(work.given["gold"].filler)
    assert sorted(work.given["gold"].values.tolist()) == sorted(NUMBERS)
    (idle,) = study.works(0, 7, 8, 1000)
    assert idle.counts == {"loss": 0.0} and np.isnan(idle.given["gold"].values).all()
    scores = torch.randn(4, 1, requires_grad=True)
    cost = task.loss(scores, torch.tensor([-5.0, torch.nan, 2.0, torch.nan]), None, Criterion())
    cost.sum().backward()
    assert cost[[1, 3]].tolist() == [0, 0] and (cost[[0, 2]] > 0).all()
    assert scores.grad[[1, 3]].tolist() == [[0], [0]] and (scores.grad[[0, 2]] != 0).all()


def test_filler_among_several_labels_has_no_slope():
    scores = torch.randn(3, 2, requires_grad=True)
    gold = torch.tensor([[1.0, 0.0], [torch.nan, torch.nan], [0.0, 0.0]])
    for criterion in (Criterion(), Criterion(focal=2.0, smoothing=0.1)):
        cost = criterion.several(scores, gold)
        (grad,) = torch.autograd.grad(cost.sum(), scores)
        assert cost[1] == 0 and grad[1].tolist() == [0, 0] and grad.isfinite().all()
    assert find_known(gold).tolist() == [True, False, True]
    assert find_known(torch.tensor([0, -1, 3, -100])).tolist() == [True, False, True, False]


def test_long_texts_are_read_in_windows(both):
    task = plain(both, truncate="windows", length=12)
    long = " ".join(TEXTS)
    (windows,) = task.rows([NumberExample(long)])
    assert len(windows) > 1 and all(len(row.ids) <= 12 for row in windows)
    scores = [torch.tensor([[float(i)]]) for i in range(len(windows))]
    weights = [len(row.ids) for row in windows]
    assert task.answer(NumberExample(long), windows, scores)[0]["score"] == pytest.approx(
        np.average(range(len(windows)), weights=weights)
    )


@pytest.mark.parametrize("value", ["4.75", 4.75, " 4.75 ", 475e-2])
def test_numbers_are_read_however_they_are_written(value):
    (found,) = read([{"sentence1": "a", "sentence2": "b", "score": value}])
    assert found == NumberExample("a", "b", 4.75, "train, row 1")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("high", "a finite number is needed here, not a text (high)"),
        ("nan", "a finite number is needed here, not a text (nan)"),
        (float("nan"), "a finite number is needed here, not one that does not exist (NaN)"),
        (float("inf"), "a finite number is needed here, not a number (inf)"),
        ("-Infinity", "a finite number is needed here, not a text (-Infinity)"),
        ("1_000", "a finite number is needed here, not a text (1_000)"),
        (True, "a finite number is needed here, not true or false (True)"),
        ([1], "a finite number is needed here, not a list ([1])"),
        ("", "the number is missing"),
        (None, "the number is missing"),
    ],
)
def test_what_is_no_number_is_refused_by_row_and_column(value, why):
    with pytest.raises(BertsmithError) as error:
        read([{"text": "a", "label": 1}, {"text": "b", "label": value}])
    assert str(error.value).startswith(f'train, row 2, column "label": {why}')
    assert [e.number for e in read([{"text": "a", "label": value}], gold=False)] == [None]


@pytest.mark.parametrize(("setting", "value"), [("class_weights", "balanced"), ("focal", 1.0), ("smoothing", 0.1)])
def test_what_only_classes_have_is_refused(both, setting, value):
    task = plain(both)
    with pytest.raises(BertsmithError, match=f"{setting} has no meaning for the task regress; leave it out"):
        TaskStudy(task, task.rows([NumberExample("a", None, 1.0)]), Training(**{setting: value}))


def test_a_cross_encoder_opens_a_saved_one_and_gives_its_numbers(both, tmp_path):
    """Of one output it would else take the sigmoid, as it does of what learns to rerank from that model then."""
    from sentence_transformers import CrossEncoder

    made = both.ours.checkpoint
    fitted, _ = fit_head(made, "classify", ["score"], problem="regression")
    save_checkpoint(fitted, tmp_path)
    both.ours.tokenizer.save(tmp_path)
    model, pair = bertsmith.load(tmp_path), ("the dog", "a cat in paris")
    found = CrossEncoder(str(tmp_path), device="cpu").predict([pair])
    assert model.score(*pair).answers[0]["score"] == pytest.approx(float(found[0]), abs=1e-5)
    again, _ = fit_head(model.checkpoint, "classify", ["score"])
    assert "sentence_transformers" not in again.settings


def test_a_model_of_several_numbers_is_not_sent_from_one_verb_to_the_other():
    for task in (Regress, Classify):
        with pytest.raises(BertsmithError, match="gives 3 numbers for a text; heads that give one are read"):
            task.settings_from(["valence", "arousal", "dominance"], "regression")


def test_a_model_of_classes_gives_no_number():
    with pytest.raises(BertsmithError, match=r"This model tells classes \(a, b\), not a number; use classify"):
        Regress.settings_from(["a", "b"], None)
    with pytest.raises(BertsmithError, match="not a number"):
        Regress.settings_from(["a"], "multi_label_classification")
    with pytest.raises(BertsmithError, match=r"cannot be learned, for all 3 of train are 2"):
        Regress.settle([NumberExample("a", None, 2.0)] * 3, {})
    with pytest.raises(BertsmithError, match=r"cannot be learned, for they are too large"):  # and no warning of numpy's
        Regress.settle([NumberExample("a", None, number) for number in (1e300, -1e300, 1.5e308, 1.6e308)], {})


def test_a_share_of_one_number_is_told():
    ((level, sentence),) = told(numbers([0.0] * 98 + [1.0, 2.0]))
    assert (level, sentence) == ("warning", "98 of 100 numbers of train are 0.")


def told(train, dev=None):
    return [(f.level, f.sentence) for f in diagnose(train, dev, "regress", lengths=None, limit=None).findings]


def numbers(values):
    return [NumberExample(f"text {i}", None, value, f"train.csv, row {i + 2}") for i, value in enumerate(values)]


def test_the_doctor_on_numbers():
    fine = [n / 7 for n in range(40)]
    assert told(numbers(fine)) == []
    assert told(numbers([2.5] * 40)) == [
        ("error", "All 40 numbers of train are 2.5: there is nothing to learn (train.csv, row 2).")
    ]
    ((level, sentence),) = told(numbers([*fine, 9999.0]))
    assert level == "warning" and sentence.startswith("1 number of train such as 9999, far from the others")
    assert sentence.endswith("(train.csv, row 42).")
    unknown = [NumberExample("x", None, None, "d.csv, row 3")]
    assert ("error", "1 dev example without a number (d.csv, row 3).") in told(numbers(fine), unknown)
    far = [NumberExample("y", None, value, f"d.csv, row {i}") for i, value in enumerate((1.0, 99.0), 2)]
    ((level, sentence),) = told(numbers(fine), far)
    assert level == "warning" and "outside of 0 to 5.57143" in sentence and "d.csv, row 3" in sentence
