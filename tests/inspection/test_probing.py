"""Probes: scikit-learn's accuracy on the same features, the model's own hidden states, a control that knows nothing."""

import json

import numpy as np
import pytest
import sklearn.metrics
from sklearn.linear_model import LogisticRegression
from whole import tiny

import bertsmith
from bertsmith.data.examples import TagExample, TextExample
from bertsmith.errors import BertsmithError
from bertsmith.inspection import probing
from bertsmith.inspection.layer_features import read_texts, read_words
from bertsmith.inspection.probes import Standard, fit, fit_mix
from bertsmith.inspection.probing import probe


@pytest.fixture(scope="module", autouse=True)
def small_and_alone(one_thread):
    """These models are so small that a second thread only waits."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    tiny.make_encoder(folder / "encoder", limit=32)
    (folder / "train.conll").write_text(tiny.as_conll(tiny.sentences()))
    (folder / "dev.conll").write_text(tiny.as_conll(tiny.sentences("works")))
    return folder


@pytest.fixture(scope="module")
def model(place):
    return bertsmith.load(place / "encoder", device="cpu")


@pytest.fixture(scope="module")
def tagged(model, place):
    return probe(model, place / "train.conll", place / "dev.conll")


def make_features(items=400, width=12, classes=4, seed=0):
    chance = np.random.default_rng(seed)
    gold = chance.integers(classes, size=items)
    centres = chance.normal(size=(classes, width))
    return (centres[gold] + 1.5 * chance.normal(size=(items, width))).astype(np.float32) * 3 + 5, gold


def test_the_probe_is_scikit_learns():
    features, gold = make_features()
    standard = Standard.of(features[:300])
    train, dev = standard(features[:300]), standard(features[300:])
    weights, bias = fit(train, gold[:300], 4)
    theirs = LogisticRegression(C=1.0, max_iter=2000, tol=1e-8).fit(train, gold[:300])
    ours = (dev @ weights + bias).argmax(axis=1)
    assert abs((ours == gold[300:]).mean() - theirs.score(dev, gold[300:])) <= 0.011
    chances = np.exp(dev @ weights + bias)
    np.testing.assert_allclose(chances / chances.sum(1, keepdims=True), theirs.predict_proba(dev), atol=2e-3)


def test_the_mix_finds_the_layer_that_knows():
    features, gold = make_features()
    noise = np.random.default_rng(1).normal(size=(400, 3, 12))
    layers = np.stack([noise[:, 0], Standard.of(features)(features), noise[:, 1], noise[:, 2]], axis=1)
    shares, weights, bias = fit_mix(layers, gold, 4)
    assert shares.argmax() == 1 and shares.sum() == pytest.approx(1, abs=1e-5) and shares[1] > 0.6
    found = (np.einsum("l,nlw->nw", shares, layers) @ weights + bias).argmax(axis=1)
    assert (found == gold).mean() > 0.7


def test_features_are_the_models_hidden_states(model):
    texts = ["the film was very good", "a dull plot"]
    items = read_texts(model, [TextExample(text, labels=("a",)) for text in texts], "mean", 10)
    firsts = read_texts(model, [TextExample(text, labels=("a",)) for text in texts], "first", 10)
    assert items.features.shape == (2, 3, 32)
    for number, text in enumerate(texts):
        states = model.hidden(text, layers="all")
        np.testing.assert_allclose(items.features[number], states.mean(axis=1), atol=1e-5)
        np.testing.assert_allclose(firsts.features[number], states[:, 0], atol=1e-5)
    long = "xyz is in the town " * 12  # more than 32 tokens; xyz is three pieces
    spans, start = [], 0
    for word in long.split():
        spans.append((long.index(word, start), long.index(word, start) + len(word)))
        start = spans[-1][1]
    words = read_words(model, [TagExample("xyz is good", ((0, 3), (4, 6), (7, 11)), ("N", "V", "A"))], 10)
    states = model.hidden("xyz is good", layers="all")
    np.testing.assert_allclose(words.features, states[:, [1, 4, 5]].transpose(1, 0, 2), atol=1e-5)
    assert words.labels == ["N", "V", "A"] and words.types == ["xyz", "is", "good"]
    windows = read_words(model, [TagExample(long, tuple(spans), ("X",) * len(spans))], 100)
    assert len(windows.labels) == len(spans) and sorted(windows.types) == sorted(long.split())


def test_words_are_probed_layer_by_layer(model, place, tagged):
    assert tagged.task == "tag" and [each.layer for each in tagged.layers] == [0, 1, 2]
    gold = [tag for sentence in tiny.sentences("works") for _, tag in sentence]
    common = max(set(gold), key=gold.count)
    assert tagged.sizes == (len(gold), len(gold)) and tagged.majority == pytest.approx(gold.count(common) / len(gold))
    for each in tagged.layers:
        assert each.low <= each.accuracy <= each.high and each.macro_low <= each.macro_f1 <= each.macro_high
        assert each.selectivity == each.accuracy - each.control
    assert tagged.layers[0].accuracy > 0.9 > tagged.majority  # a name is a name by its spelling
    assert tagged.shares.sum() == pytest.approx(1, abs=1e-5)


def test_scores_are_those_of_scikit_learn_on_the_same_features(model, place, tagged):
    sides = []
    for verb in ("lives", "works"):
        sentences = tiny.sentences(verb)
        made = []
        for sentence in sentences:
            words, spans, start = [word for word, _ in sentence], [], 0
            for word in words:
                spans.append((start, start + len(word)))
                start += len(word) + 1
            made.append(TagExample(" ".join(words), tuple(spans), tuple(tag for _, tag in sentence)))
        sides.append(read_words(model, made, 10_000))
    train, dev = sides
    for each in tagged.layers:
        scale = Standard.of(train.features[:, each.layer])
        learnt = scale(train.features[:, each.layer])
        theirs = LogisticRegression(C=1.0, max_iter=3000, tol=1e-7).fit(learnt, train.labels)
        found = theirs.predict(scale(dev.features[:, each.layer]))
        assert abs((found == np.array(dev.labels)).mean() - each.accuracy) <= 0.02
        macro = sklearn.metrics.f1_score(dev.labels, found, average="macro", zero_division=0)
        assert abs(macro - each.macro_f1) <= 0.06


def test_texts_are_probed_and_the_same_twice(model, tmp_path):
    train, dev = tiny.reviews(), tiny.reviews("a")
    one = probe(model, train, dev, reads="first")
    two = probe(model, train, dev, reads="first")
    assert one.data() == two.data() and one.task == "classify" and one.labels == ["neg", "pos"]
    assert one.accuracy.max() > 0.9 and one.majority == 0.5
    assert all(0.2 < each.control < 0.8 for each in one.layers)  # shuffled labels of 48 texts
    few = probe(model, train, dev, most=20)
    assert few.sizes == (20, 20)


def test_of_many_words_some_are_drawn(model, monkeypatch):
    """From all sentences, although there are fewer of these than words are wanted."""
    read = []
    watched = lambda model, some, most: read.append(some) or read_words(model, some, most)  # noqa: E731
    monkeypatch.setattr(probing, "read_words", watched)
    sentences = [{"tokens": [w for w, _ in one], "tags": [t for _, t in one]} for one in tiny.sentences()]
    most = len(sentences) + 1
    for seed in (0, 0, 1):
        found = probe(model, sentences, sentences, most=most, seed=seed)
        assert most <= found.sizes[0] < most + max(len(one["tokens"]) for one in sentences)
    texts = [[example.text for example in some] for some in read[::2]]
    assert texts[0] == texts[1] != texts[2] and sorted(texts[0]) == sorted(texts[2])
    assert texts[0] != [" ".join(one["tokens"]) for one in sentences]


def test_a_label_that_train_does_not_have_is_never_right(model):
    dev = [*tiny.reviews("a")[:4], {"text": "the film was odd", "label": "odd"}]
    found = probe(model, tiny.reviews(), dev)
    assert found.labels == ["neg", "pos"] and found.accuracy.max() <= 0.8


@pytest.mark.parametrize(
    "given, more, says",
    [
        ((tiny.reviews(),), {}, "give them as dev"),
        ((tiny.reviews(), tiny.reviews("a")), {"task": "span"}, "use one of classify, tag"),
        ((tiny.reviews(), tiny.reviews("a")), {"reads": "last"}, "use one of mean, first"),
        ((tiny.reviews()[:3], tiny.reviews("a")), {}, "a probe needs two or more"),
        ((tiny.reviews(), tiny.reviews("a")), {"label": "mood"}, "mood"),
        ((tiny.reviews(), tiny.reviews("a")), {"most": 0}, "most"),
        (("absent.csv", "absent.csv"), {}, "does not exist"),
    ],
)
def test_mistakes_end_in_a_sentence(model, given, more, says):
    with pytest.raises(BertsmithError, match=says):
        probe(model, *given, **more)


def test_files(tagged, tmp_path):
    drawn = tagged.save(tmp_path / "p.svg").read_text()
    assert drawn.startswith("<svg ") and "majority" in drawn and "control" in drawn
    kept = json.loads(tagged.save(tmp_path / "p.json").read_text())
    assert kept == tagged.data() and len(kept["layers"]) == 3
