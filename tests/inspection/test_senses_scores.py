"""Accuracy by the nearest use, on a made benchmark, against scikit-learn's nearest neighbour."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.inspection.senses_examples import EXAMPLES
from bertsmith.inspection.senses_scores import judge, read_benchmark


@pytest.fixture(scope="module")
def model(demo_model, one_thread):
    return bertsmith.load(demo_model, device="cpu")


def write_word(folder, word, rows):
    """Half of the rows for training, half for the test, as the dataset has them: lower case, words apart."""
    folder = folder / word
    folder.mkdir(parents=True)
    labels = list(dict.fromkeys(row["label"] for row in rows))
    (folder / "classes_map.txt").write_text(json.dumps({str(i): f"{word}_{name}" for i, name in enumerate(labels)}))
    for split, some in (("train", rows[::2]), ("test", rows[1::2])):
        texts = [row["text"].lower().replace(".", " .").replace(",", " ,").split() for row in some]
        lines = [f"{words.index(word)}\t{' '.join(words)}\n" for words in texts]
        (folder / f"{split}.data.txt").write_text("".join(lines))
        (folder / f"{split}.gold.txt").write_text("".join(f"{labels.index(row['label'])}\n" for row in some))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("senses")
    for word in ("apple", "bank"):
        write_word(folder, word, EXAMPLES[word])
    (folder / "README.txt").write_text("not a word")
    return folder


def vote(train, known, asked):
    cosines = train @ asked / np.linalg.norm(train, axis=1) / np.linalg.norm(asked)
    nearest = [label for label, cosine in zip(known, cosines, strict=True) if cosine > cosines.max() - 1e-6]
    return max(sorted(set(nearest)), key=nearest.count)


def test_equals_vote():
    cosines = np.array([[0.5, 0.9, 0.9 - 1e-8, 0.9, 0.1], [0.3, 0.2, 0.1, 0.0, 0.2999]])
    assert judge(cosines, np.array(["a", "b", "c", "c", "a"])).tolist() == ["c", "a"]


def test_as_the_nearest_neighbour_of_scikit_learn(model, folder):
    scores = bertsmith.inspect.score_senses(model, folder)
    sets = read_benchmark(folder)
    assert [one.word for one in sets] == ["apple", "bank"]
    rights = []
    for one, got in zip(sets, scores.words, strict=True):
        train, test = (
            bertsmith.inspect.word_vectors(model, one.word, [use.text for use in uses]).vectors
            for uses in (one.train, one.test)
        )
        known, gold = ([use.label for use in uses] for uses in (one.train, one.test))
        for layer in range(7):
            neighbour = KNeighborsClassifier(1, metric="cosine", algorithm="brute").fit(train[:, layer], known)
            right = neighbour.predict(test[:, layer]) == gold
            if layer == 0:  # there many are as near
                right = np.array([vote(train[:, 0], known, one) for one in test[:, 0]]) == gold
            assert got["accuracy"][layer] == pytest.approx(right.mean())
            each = [right[np.array(gold) == sense].mean() for sense in sorted(set(gold))]
            assert got["balanced"][layer] == pytest.approx(np.mean(each))
            rights.append((layer, right))
        assert got["frequent"] == pytest.approx(1 / len(one.senses))
    for layer in range(7):
        mine = [right for place, right in rights if place == layer]
        assert scores.micro[layer] == pytest.approx(np.concatenate(mine).mean())
        assert scores.macro[layer] == pytest.approx(np.mean([right.mean() for right in mine]))
    assert scores.micro[-1] > scores.micro[0]
    data = json.loads(json.dumps(scores.data()))
    assert (data["train"], data["test"], data["most"]) == (15, 15, None)
    ElementTree.fromstring(scores.svg())
    with pytest.raises(BertsmithError, match=r"save them as .svg or .json"):
        scores.html()


def test_some_uses_are_drawn_the_same_every_time(model, folder):
    told = []
    first = bertsmith.inspect.score_senses(model, folder, most=3, tell=lambda *what: told.append(what))
    again = bertsmith.inspect.score_senses(model, folder, most=3)
    assert first.data() == again.data()
    assert {(one["train"], one["test"]) for one in first.words} == {(3, 3)}
    assert told == [("words", 0, 2), ("words", 1, 2)]


def test_mistakes_in_a_folder(model, tmp_path):
    with pytest.raises(BertsmithError, match="no folder of a word"):
        bertsmith.inspect.score_senses(model, tmp_path)
    write_word(tmp_path, "bank", EXAMPLES["bank"])
    place = tmp_path / "bank" / "test.data.txt"
    lines = place.read_text().splitlines(keepends=True)
    for wrong in ("bank\ta bank\n", "9\ta bank\n", "1 a bank\n"):
        place.write_text("".join([wrong, *lines[1:]]))
        with pytest.raises(BertsmithError, match="test, line 1: needs the number of a word"):
            read_benchmark(tmp_path)
    place.write_text("".join(lines[1:]))
    with pytest.raises(BertsmithError, match="test has 8 sentences and 9 senses"):
        read_benchmark(tmp_path)
    place.unlink()
    with pytest.raises(BertsmithError, match=r"test.data.txt cannot be read: No such file"):
        read_benchmark(tmp_path)
