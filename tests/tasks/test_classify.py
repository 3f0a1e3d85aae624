"""Classifiers against the reference's pipeline: one label, several, pairs, long texts; losses against torch."""

import numpy as np
import pytest
import torch
import transformers
from sklearn import metrics
from tasks.made import CLOSE, SENTENCES, bert_pieces, bytelevel_files, open_both, sentencepiece_files, wordpiece_files
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.data.examples import TextExample
from bertsmith.errors import BertsmithError
from bertsmith.tasks.classes import confusion, label_table
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.losses import Criterion
from bertsmith.tasks.result import Result

LABELS = ["anger", "fear", "joy", "love", "none"]
WORDS = ["the", "quick", "fox", "is", "lazy", "paris", "good", "of", "dog"]
LONG = " ".join(WORDS[i * i % 7] for i in range(150))  # 152 tokens where 64 fit
KINDS = {"softmax": None, "sigmoid": "multi_label_classification"}
FILES = {"bert": lambda: wordpiece_files(bert_pieces()), "roberta": bytelevel_files, "albert": sentencepiece_files}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    return {
        (family, kind): open_both(
            tmp_path_factory.mktemp(kind), family, "classify", files(), problem_type=problem_type, **names
        )
        for family, files in FILES.items()
        for kind, problem_type in KINDS.items()
        if family == "bert" or kind == "softmax"
    }


def make(both, kind="softmax", truncate="head", top_k=None, **settings):
    settings = {**Classify.settings_from(LABELS, KINDS[kind]), **settings}
    return Classify(both.ours.tokenizer, both.ours.limit, truncate, settings, top_k=top_k)


def classify(both, task, *examples):
    return both.ours.predictor.predict(task, [TextExample(*example) for example in examples])


def pipeline(both, given):
    made = transformers.pipeline("text-classification", model=both.reference, tokenizer=both.tokenizer, device="cpu")
    return made(given, top_k=None, return_token_type_ids=True)  # else it forgets ALBERT's


def same(ours, theirs):
    assert [answer["label"] for answer in ours] == [answer["label"] for answer in theirs]
    scores = [answer["score"] for answer in theirs]
    assert [answer["score"] for answer in ours] == pytest.approx(scores, abs=CLOSE)


@pytest.mark.parametrize(
    "case", [("bert", "softmax"), ("bert", "sigmoid"), ("roberta", "softmax"), ("albert", "softmax")]
)
def test_pipeline(models, case):
    both = models[case]
    task = make(both, case[1], top_k=len(LABELS))
    texts = [*SENTENCES, "", "dog"]
    for ours, theirs in zip(classify(both, task, *((t,) for t in texts)), pipeline(both, texts), strict=True):
        same(ours, theirs)
        assert ours.truncated == 0
    pairs = [("Paris is good.", "London is not."), ("", "dog"), ("the dog", " ")]  # "" is no pair to the reference
    given = [{"text": a, "text_pair": b} for a, b in pairs]
    for ours, theirs in zip(classify(both, task, *pairs), [pipeline(both, one) for one in given], strict=True):
        same(ours, theirs)


def test_texts_and_pairs_together(models):
    both = models["bert", "softmax"]
    mixed = [("it is",), ("it is", "not"), ("dog", "")]
    alone = [classify(both, make(both), one)[0] for one in mixed]
    for ours, single in zip(classify(both, make(both), *mixed), alone, strict=True):
        same(ours, single)


def test_top_k_and_thresholds(models):
    both = models["bert", "sigmoid"]
    everything = pipeline(both, SENTENCES)
    for text, theirs in zip(SENTENCES, everything, strict=True):
        same(classify(both, make(both, "sigmoid"), (text,))[0], [a for a in theirs if a["score"] >= 0.5])
        bounds = [0.9, 0.2, 0.99999, 0.0, 0.5]
        taken = [a for a in theirs if a["score"] >= bounds[LABELS.index(a["label"])]]
        same(classify(both, make(both, "sigmoid", thresholds=bounds), (text,))[0], taken)
        same(classify(both, make(both, "sigmoid", top_k=2, thresholds=bounds), (text,))[0], theirs[:2])
    one = models["bert", "softmax"]
    assert len(classify(one, make(one, top_k=1), ("dog",))[0]) == 1
    assert classify(both, make(both, "sigmoid", thresholds=[1.1] * 5), ("dog",))[0] == Result([])


def test_temperature(models):
    both = models["bert", "softmax"]
    with torch.no_grad():
        scores = both.reference(torch.tensor([both.tokenizer("dog")["input_ids"]])).logits[0]
    found = {answer["label"]: answer["score"] for answer in classify(both, make(both, temperature=2.5), ("dog",))[0]}
    expected = (scores / 2.5).softmax(dim=0).tolist()
    assert [found[label] for label in LABELS] == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("policy", ["head", "tail", "head+tail"])
def test_cut(models, policy):
    both = models["bert", "softmax"]
    words = LONG.split()
    head, tail = {"head": (62, 0), "tail": (0, 62), "head+tail": (31, 31)}[policy]
    kept = " ".join(words[:head] + words[len(words) - tail :])
    (found,) = classify(both, make(both, truncate=policy), (LONG,))
    same(found, pipeline(both, [kept])[0])
    assert found.truncated == 150 - 62
    (shorter,) = classify(both, make(both, truncate=policy, length=10), (LONG,))
    assert shorter.truncated == 150 - 8


@pytest.mark.parametrize("kind", KINDS)
def test_windows(models, kind):
    """62 words a window, neighbours share a quarter (15): [0, 62), [47, 109), [94, 150); the mean by tokens."""
    both = models["bert", kind]
    words = LONG.split()
    windows = [words[0:62], words[47:109], words[94:150]]
    rows = [both.tokenizer(" ".join(window), return_tensors="pt") for window in windows]
    with torch.no_grad():
        scores = [both.reference(**row).logits[0] for row in rows]
    mean = torch.stack([score * size for score, size in zip(scores, (64, 64, 58), strict=True)]).sum(dim=0) / 186
    expected = mean.softmax(dim=0) if kind == "softmax" else mean.sigmoid()
    (found,) = classify(both, make(both, kind, truncate="windows", top_k=5), (LONG,))
    assert {a["label"]: a["score"] for a in found} == pytest.approx(
        dict(zip(LABELS, expected.tolist(), strict=True)), abs=CLOSE
    )
    assert found.truncated == 0


def test_windows_are_a_geometric_mean(models):
    both = models["bert", "softmax"]
    task = make(both, truncate="windows")
    rows = task.rows([TextExample(LONG)])[0]
    scores = both.ours.predictor.run(task, rows)
    weights = np.array([len(row.ids) for row in rows]) / sum(len(row.ids) for row in rows)
    product = np.prod([score[0].softmax(dim=0).numpy() ** w for score, w in zip(scores, weights, strict=True)], axis=0)
    assert task.chances(task.combine(rows, scores)) == pytest.approx(product / product.sum(), abs=CLOSE)


def test_windows_of_a_pair_and_of_short_texts(models):
    both = models["bert", "softmax"]
    task = make(both, truncate="windows")
    short, pair = task.rows([TextExample("it is", "good"), TextExample("it is", LONG, ("joy",))])
    assert len(short) == 1
    first = both.tokenizer("it is")["input_ids"]
    assert len(pair) > 2 and all(list(row.ids[:4]) == first and len(row.ids) <= 64 for row in pair)
    assert pair[0].ids[-15:-1] == pair[1].ids[4:18]  # 59 words a window, a quarter of them shared
    assert [row.gold for row in pair] == [2] * len(pair) and all(row.dropped == 0 for row in pair)
    assert len(task.rows([TextExample(LONG)])[0]) == 3


def test_too_long(models):
    both = models["bert", "softmax"]
    with pytest.raises(BertsmithError, match=r"a.csv, row 3: the input has 152 tokens but at most 64 fit"):
        make(both, truncate="error").rows([TextExample("dog"), TextExample(LONG, where="a.csv, row 3")])
    with pytest.raises(BertsmithError, match=r"row 3: special tokens and the first text take 153 of 64 tokens"):
        make(both, truncate="windows").rows([TextExample(LONG, "dog", where="row 3")])
    assert len(make(both, truncate="error").rows([TextExample("dog")])) == 1


def test_gold(models):
    both = models["bert", "softmax"]
    rows = [
        row
        for rows in make(both).rows([TextExample("a", labels=("joy",)), TextExample("b", labels=("anger",))])
        for row in rows
    ]
    assert make(both).gold(rows).tolist() == [2, 0]
    task = make(both, "sigmoid")
    rows = [
        row
        for rows in task.rows([TextExample("a", labels=("joy", "fear")), TextExample("b", labels=())])
        for row in rows
    ]
    assert task.gold(rows).tolist() == [[0, 1, 1, 0, 0], [0, 0, 0, 0, 0]] and task.gold(rows).dtype == np.float32
    assert task.rows([TextExample("a")])[0][0].gold is None
    with pytest.raises(BertsmithError, match=r"a.csv, row 2: the label 'Joy' is not one of .*did you mean 'joy'\?"):
        make(both).rows([TextExample("a", labels=("Joy",), where="a.csv, row 2")])
    with pytest.raises(BertsmithError, match="row 2 has 2 labels, but this model gives one a text"):
        make(both).rows([TextExample("a", labels=("joy", "fear"), where="row 2")])


def test_loss(models):
    both = models["bert", "softmax"]
    torch.manual_seed(0)
    scores, other, gold = torch.randn(6, 5), torch.randn(6, 5), torch.tensor([0, 4, 2, 2, 1, 3])
    yes = (torch.rand(6, 5) < 0.4).float()
    weights, batch = torch.tensor([1.0, 2, 3, 4, 5]), Batch.of([[1]] * 6)
    one, several = make(both), make(both, "sigmoid")
    expected = F.cross_entropy(scores, gold, weights, reduction="none")
    assert torch.equal(one.loss(scores, gold, batch, Criterion(weights)), expected)
    expected = F.binary_cross_entropy_with_logits(scores, yes, pos_weight=weights, reduction="none").mean(dim=1)
    assert torch.allclose(several.loss(scores, yes, batch, Criterion(weights)), expected)
    p, q = (torch.distributions.Bernoulli(logits=x) for x in (scores, other))
    expected = 0.5 * (torch.distributions.kl_divergence(p, q) + torch.distributions.kl_divergence(q, p)).mean(dim=1)
    assert torch.allclose(several.diverge(scores, other, batch), expected, atol=1e-6)
    p, q = (torch.distributions.Categorical(logits=x) for x in (scores, other))
    expected = 0.5 * (torch.distributions.kl_divergence(p, q) + torch.distributions.kl_divergence(q, p))
    assert torch.allclose(one.diverge(scores, other, batch), expected, atol=1e-6)


def labelled(count, several, seed=0):
    """Made texts with labels by chance."""
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(WORDS, random.integers(1, 100))) for _ in range(count)]
    if several:
        return [TextExample(t, labels=tuple(np.array(LABELS)[random.random(5) < 0.3])) for t in texts]
    return [TextExample(t, labels=(LABELS[random.integers(4)],)) for t in texts]  # the last label never is gold


def test_scores_of_one_label(models):
    both = models["bert", "softmax"]
    examples = labelled(80, several=False)
    answers = classify(both, make(both), *((e.text,) for e in examples))
    gold, found = [e.labels[0] for e in examples], [result[0]["label"] for result in answers]
    scored = make(both).score(answers, examples)
    assert next(iter(scored)) == make(both).metric == "accuracy"
    expected = {
        "accuracy": metrics.accuracy_score(gold, found),
        "micro_f1": metrics.f1_score(gold, found, average="micro", zero_division=0),
        "macro_f1": metrics.f1_score(gold, found, average="macro", zero_division=0),
        "weighted_f1": metrics.f1_score(gold, found, average="weighted", zero_division=0),
        "matthews": metrics.matthews_corrcoef(gold, found),
    }
    assert {name: scored[name].point for name in expected} == pytest.approx(expected)
    assert set(scored) == {*expected, "ece"}
    assert (confusion(answers, examples, LABELS) == metrics.confusion_matrix(gold, found, labels=LABELS)).all()
    report = metrics.classification_report(gold, found, labels=LABELS, output_dict=True, zero_division=0)
    for row in label_table(answers, examples, LABELS):
        theirs = report[row["label"]]
        assert [row["precision"], row["recall"], row["f1"], row["support"]] == pytest.approx(
            [theirs["precision"], theirs["recall"], theirs["f1-score"], theirs["support"]]
        )
        assert row["given"] == found.count(row["label"])


def test_scores_of_several_labels(models):
    both = models["bert", "sigmoid"]
    examples = labelled(80, several=True)
    task = make(both, "sigmoid")
    answers = classify(both, task, *((e.text,) for e in examples))
    gold = np.array([[label in e.labels for label in LABELS] for e in examples])
    found = np.array([[label in [a["label"] for a in result] for label in LABELS] for result in answers])
    scored = task.score(answers, examples)
    assert next(iter(scored)) == task.metric == "micro_f1"
    averages = ("micro", "macro", "weighted")
    expected = {f"{a}_f1": metrics.f1_score(gold, found, average=a, zero_division=0) for a in averages}
    expected["subset_accuracy"] = metrics.accuracy_score(gold, found)
    assert {name: measure.point for name, measure in scored.items()} == pytest.approx(expected)


def test_tuning(models):
    both = models["bert", "sigmoid"]
    examples = labelled(60, several=True, seed=2)
    task = make(both, "sigmoid", truncate="windows")
    rows = task.rows(examples)
    scores = [both.ours.predictor.run(task, some) for some in rows]
    before = task.score(both.ours.predictor.predict(task, examples), examples)["micro_f1"].point
    found = task.tune(examples, rows, scores, {"calibrate": True})
    assert found.keys() == {"thresholds", "temperature"} and len(set(found["thresholds"])) == 1
    tuned = make(both, "sigmoid", truncate="windows", **found)
    assert tuned.score(both.ours.predictor.predict(tuned, examples), examples)["micro_f1"].point > before
    each = task.tune(examples, rows, scores, {"thresholds": "each"})
    assert each.keys() == {"thresholds"} and len(set(each["thresholds"])) > 1
    assert task.tune(examples, rows, scores, {"thresholds": 0.3}) == {}
    one = models["bert", "softmax"]
    assert make(one).tune(labelled(5, several=False), rows[:5], scores[:5], {}) == {}
    assert make(one).tune([], [], [], {"calibrate": True}) == {}
