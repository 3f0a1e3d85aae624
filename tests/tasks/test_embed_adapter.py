"""An adapter that learns vectors: a few numbers beside a base, which scores what its folder gives when it is opened."""

import numpy as np
import pytest

import bertsmith

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "one", "small", "dog", "home"]


def write_pairs(path, count, seed):
    chance = np.random.default_rng(seed)
    lines = ["text,pair"]
    for number in range(count):
        some = chance.choice(WORDS, 6).tolist()
        lines.append(f"{' '.join(some[:4])} {number},{' '.join(some[1:5])} {number}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def run(bert, tmp_path_factory):
    place = tmp_path_factory.mktemp("adapter")
    files = write_pairs(place / "train.csv", 48, 1), write_pairs(place / "dev.csv", 24, 2)
    return bertsmith.finetune("embed", *files, model=bert.ours.folder, lora=4, rate=1e-2, batch=8, epochs=2,
                              out=place / "run", device="cpu", check=False)  # fmt: skip


def test_it_is_an_adapter_and_gives_other_vectors_than_its_base(run, bert):
    assert (run.folder / "adapter_model.safetensors").exists() and not (run.folder / "model.safetensors").exists()
    base, adapted = bertsmith.load(bert.ours.folder, device="cpu"), bertsmith.load(run.folder, device="cpu")
    texts = ["the cat sat", "a dog"]
    assert not np.allclose(base.embed(texts), adapted.embed(texts), atol=1e-3)
    assert np.array_equal(base.use(run.folder).embed(texts), adapted.embed(texts))


def test_its_folder_scores_what_training_said(run):
    again = bertsmith.evaluate(run.folder, run.folder.parent / "dev.csv", device="cpu")
    assert again["metrics"]["mrr@10"]["value"] == pytest.approx(run.metrics["dev"]["mrr@10"]["value"], abs=1e-6)
