"""An adapter that learns vectors: a few numbers beside a base, which scores what its folder gives when it is opened."""

import json
import shutil

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from training.made import make_folder
from transformers import AutoModel, AutoTokenizer

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.inspect import attribute
from bertsmith.serving.residents import make_card

LEARN = {"rate": 1e-2, "batch": 8, "epochs": 2, "device": "cpu", "check": False}
LENGTH = 12  # of the texts that are learnt from
LONG = "the cat sat on a mat and saw one small dog " * 2
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
    chosen = {"model": bert.ours.folder, "length": LENGTH, **LEARN}
    return bertsmith.finetune("embed", *files, lora=4, out=place / "run", **chosen)


@pytest.fixture(scope="module")
def whole(run, bert):
    """The same training of all weights."""
    files = run.folder.parent / "train.csv", run.folder.parent / "dev.csv"
    place = run.folder.parent / "whole"
    return bertsmith.finetune("embed", *files, model=bert.ours.folder, out=place, length=LENGTH, **LEARN)


@pytest.fixture(scope="module")
def house(run, bert):
    """A base in whose folder the adapter is declared for vectors."""
    place = run.folder.parent / "house"
    bertsmith.export_model(bert.ours.folder, place, to="compact", store="fp32", adapters={"search": run.folder},
                           defaults={"embed": "search"})  # fmt: skip
    return bertsmith.load(place, device="cpu")


def test_a_base_with_a_pooler_learns_vectors_too(tmp_path):
    """As nearly all that sentence-transformers has: a bare BERT, whose pooler no vector reads."""
    base = make_folder(tmp_path / "base")
    files = write_pairs(tmp_path / "train.csv", 16, 1), write_pairs(tmp_path / "dev.csv", 8, 2)
    run = bertsmith.finetune("embed", *files, lora=4, model=base, out=tmp_path / "run", **LEARN)
    theirs = PeftModel.from_pretrained(AutoModel.from_pretrained(base), run.folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(base)
    with torch.no_grad():
        hidden = theirs(**tokenizer("good plain 7", return_tensors="pt")).last_hidden_state[0].mean(dim=0)
    wanted = (hidden / hidden.norm()).numpy()
    np.testing.assert_allclose(run.model.embed("good plain 7"), wanted, atol=1e-5)
    # An older version wrote the pooler too, by its name under a head.
    pooler = {f"base_model.model.bert.pooler.dense.{part}": tensor.contiguous()
              for part, tensor in AutoModel.from_pretrained(base).pooler.dense.state_dict().items()}  # fmt: skip
    file = run.folder / "adapter_model.safetensors"
    with safe_open(file, "pt") as known:
        notes = json.dumps({**json.loads(known.metadata()["bertsmith"]), "head": "pool"})
    save_file({**load_file(file), **pooler}, file, {"bertsmith": notes})
    np.testing.assert_allclose(bertsmith.load(run.folder, device="cpu").embed("good plain 7"), wanted, atol=1e-5)


def test_it_is_an_adapter_and_gives_other_vectors_than_its_base(run, bert):
    assert (run.folder / "adapter_model.safetensors").exists() and not (run.folder / "model.safetensors").exists()
    base, adapted = bertsmith.load(bert.ours.folder, device="cpu"), bertsmith.load(run.folder, device="cpu")
    texts = ["the cat sat", "a dog"]
    assert not np.allclose(base.embed(texts), adapted.embed(texts), atol=1e-3)
    assert np.array_equal(base.use(run.folder).embed(texts), adapted.embed(texts))


def test_its_folder_scores_what_training_said(run):
    again = bertsmith.evaluate(run.folder, run.folder.parent / "dev.csv", device="cpu")
    assert again["metrics"]["mrr@10"]["value"] == pytest.approx(run.metrics["dev"]["mrr@10"]["value"], abs=1e-6)


def test_it_cuts_and_measures_as_training_of_all_weights_does(run, whole, bert, house):
    base, expected = bertsmith.load(bert.ours.folder, device="cpu"), bertsmith.load(whole.folder, device="cpu")
    assert expected.limit == LENGTH < base.limit
    wanted = expected.embed([LONG, "a dog"])
    for model in (bertsmith.load(run.folder, device="cpu"), base.use(run.folder), house.use("search"), house):
        vectors = model.embed([LONG, "a dog"])
        assert np.allclose([np.linalg.norm(vectors, axis=1), np.linalg.norm(wanted, axis=1)], 1)
        assert vectors.truncated == wanted.truncated and wanted.truncated[0] > 0
        assert model.similar("a dog", [LONG]).truncated == wanted.truncated[0]
        told = {key: model.info()[key] for key in ("vector_limit", "normalize", "pooling")}
        assert told == {"vector_limit": LENGTH, "normalize": True, "pooling": "mean"}
    assert house.limit == base.limit and house.use("search").limit == LENGTH


def test_an_adapter_that_learnt_something_else_goes_on_as_its_base(bert, tmp_path):
    rows = [{"text": f"{name} {i}", "label": name} for name in ("cat", "dog") for i in range(4)]
    made = bertsmith.finetune("classify", rows, rows, model=bert.ours.folder, lora=2, length=LENGTH, out=tmp_path / "a",
                              **LEARN)  # fmt: skip
    base = bertsmith.load(bert.ours.folder, device="cpu")
    found = base.use(made.folder)
    assert found.limit == base.limit and found.embed(LONG).truncated == 0 and not found.info()["normalize"]


@pytest.mark.parametrize("head", ["embed", "search"])
def test_sentence_transformers_gives_its_vectors(house, run, head, tmp_path):
    exported = bertsmith.export_model(house, tmp_path / "plain", head=head).folder
    run.model.save(tmp_path / "saved")
    for folder in (exported, tmp_path / "saved"):
        theirs = SentenceTransformer(str(folder), device="cpu")
        assert theirs.max_seq_length == LENGTH
        assert np.allclose(theirs.encode([LONG, "a dog"]), run.model.embed([LONG, "a dog"]), atol=1e-5)


def test_the_server_tells_its_length_and_attribution_reads_it(house):
    card, own = make_card("house", house), make_card("house:search", house.adapters["search"])
    assert (card.limit, card.vector_limit) == (house.limit, LENGTH) and own.limit == own.vector_limit == LENGTH
    part = attribute(house, "similar", LONG, "a dog", steps=2).parts[0]
    assert part.score == pytest.approx(house.similar("a dog", [LONG])[0]["score"], abs=1e-5)


def test_a_search_cuts_passages_by_it_and_makes_an_older_index_anew(house, bert, run, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/one.txt").write_text(LONG)
    told = json.loads((run.folder / "bertsmith.json").read_text())
    del told["settings"]["length"]  # as it was read before: as far as its base reads
    shutil.copytree(run.folder, tmp_path / "far")
    (tmp_path / "far/bertsmith.json").write_text(json.dumps(told))
    before = bertsmith.index(tmp_path / "texts", bertsmith.load(bert.ours.folder).use(tmp_path / "far"))
    assert len(before) == 1 and not before.notes
    after = bertsmith.index(tmp_path / "texts", house)
    assert len(after) > 1 and len(after.notes) == 1
    assert after.notes[0].startswith(f"the index {after.place} was made anew: ")
    assert after.search(LONG, how="dense").truncated > 0
    with pytest.raises(BertsmithError, match=f"adapters/search reads at most {LENGTH} tokens"):
        bertsmith.index(tmp_path / "texts", house, passage_tokens=LENGTH + 1)


def test_a_file_of_vectors_knows_who_made_them(house, run, tmp_path):
    (tmp_path / "rows.csv").write_text(f"text\n{LONG}\na dog\n")
    bertsmith.predict_file("embed", tmp_path / "rows.csv", tmp_path / "out.npy", house)
    assert np.allclose(np.load(tmp_path / "out.npy"), house.embed([LONG, "a dog"]))
    with pytest.raises(BertsmithError, match=r"out.npy is there already, and the model was .*adapters/search"):
        bertsmith.predict_file("embed", tmp_path / "rows.csv", tmp_path / "out.npy", run.model)


@pytest.mark.parametrize(("field", "value", "told"), [
    ("length", 1, "has the length 1; that is a number of tokens"),
    ("length", "long", "has the length 'long'; that is a number of tokens"),
    ("pooling", ["sum"], "has the pooling 'sum'; known are cls"),
    ("prompts", ["query"], "must give each of its prompts a name and a text"),
])  # fmt: skip
def test_settings_that_are_none_are_named(run, bert, field, value, told, tmp_path):
    shutil.copytree(run.folder, tmp_path / "adapter")
    path = tmp_path / "adapter/bertsmith.json"
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "settings": {**known["settings"], field: value}}))
    with pytest.raises(BertsmithError, match=f"bertsmith.json {told}"):
        bertsmith.load(bert.ours.folder).use(tmp_path / "adapter")


def test_what_learns_is_told(run, bert, tmp_path):
    said = []
    files = run.folder.parent / "train.csv", run.folder.parent / "dev.csv"
    bertsmith.finetune("embed", *files, model=bert.ours.folder, lora=4, out=tmp_path / "a", say=said.append, **LEARN)
    assert [one for one in said if one.endswith(" numbers of an adapter learn.")]  # vectors have no head


def test_who_goes_on_from_it_reads_as_far(run):
    files = run.folder.parent / "train.csv", run.folder.parent / "dev.csv"
    on = bertsmith.finetune("embed", *files, model=run.folder, out=run.folder.parent / "on", dims=[48, 8], **LEARN)
    assert on.model.limit == LENGTH and on.model.info()["normalize"]
