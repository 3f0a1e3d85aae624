"""A head on the features of a frozen encoder: kept ones give the losses of the network, whatever happens to files."""

import json
import resource
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from oracle import as_batch, distance, load_saved, make_reference, run_reference, unpad
from oracle import make_rows as make_tokens
from training.made import LABELS, make_folder, make_rows, make_task

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.layers.mixing import LAYERS, FeatureShape
from bertsmith.models.checkpoint import load_checkpoint, save_checkpoint
from bertsmith.models.featured import ENCODER
from bertsmith.models.fitting import fit_head
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.task import Row
from bertsmith.training import features as module
from bertsmith.training.devices import Ranks
from bertsmith.training.feature_files import HEAD, FeatureFile
from bertsmith.training.features import Features, find_key, fingerprint_encoder
from bertsmith.training.folder import RunFolder
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy, refuse_unfit
from bertsmith.training.ways import FeatureWay, Way, choose_way

TASKS = ("tag", "classify", "span")
SETTINGS = Training(features="last", batch=6, dropout=0.0)


@pytest.fixture(scope="module")
def deep_model(tmp_path_factory):
    """A BERT of four layers with a pooler."""
    return make_folder(tmp_path_factory.mktemp("deep") / "model", num_hidden_layers=4)


def start(model, task, settings):
    checkpoint, _ = choose_way(model, task, settings).start(None)
    return checkpoint


def keep(folder, checkpoint, task, settings):
    said: list[str] = []
    run = RunFolder(folder)
    run.claim({}, overwrite=False)
    run.lock.release()
    return Features(checkpoint.network, task, settings, run, Ranks(), said.append), said


@pytest.mark.parametrize("recurrent", [0, 5])
@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("name", TASKS)
def test_kept_features_cost_what_the_network_says(deep_model, tmp_path, name, layers, recurrent):
    task, rows = make_task(deep_model, name), make_rows(name, 13)
    settings = replace(SETTINGS, features=layers, recurrent=recurrent)
    checkpoint = start(deep_model, task, settings)
    features, _ = keep(tmp_path, checkpoint, task, settings)
    kept, plain = features.study(rows), TaskStudy(task, rows, settings)
    checkpoint.network.train()
    for step in range(3):
        for mine, theirs in zip(kept.works(step, 0, 1, 40), plain.works(step, 0, 1, 40), strict=True):
            assert mine.lengths == theirs.lengths and mine.counts == theirs.counts
            found = kept.losses(checkpoint.network, *mine.on(torch.device("cpu")))["loss"]
            wanted = plain.losses(checkpoint.network, *theirs.on(torch.device("cpu")))["loss"]
            assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layers", ["last", "mix"])
def test_development_rows_are_scored_as_the_network_does(deep_model, tmp_path, layers):
    task, rows = make_task(deep_model, "tag"), make_rows("tag", 9)
    settings = replace(SETTINGS, features=layers, recurrent=4)
    checkpoint = start(deep_model, task, settings)
    features, _ = keep(tmp_path, checkpoint, task, settings)
    flat = [row for some in rows for row in some]
    found = features.predictor(rows).run(task, flat)
    wanted = Predictor(checkpoint.network.eval(), torch.device("cpu"), 64).run(task, flat)
    for one, other in zip(found, wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_a_half_precision_run_keeps_half_of_the_bytes(deep_model, tmp_path):
    task, rows = make_task(deep_model, "tag"), make_rows("tag", 9)
    settings = replace(SETTINGS, features="mix", recurrent=4, precision="bf16")
    checkpoint = start(deep_model, task, settings)
    features, _ = keep(tmp_path, checkpoint, task, settings)
    study = features.study(rows)
    assert study.features.dtype == np.float16
    with torch.autocast("cpu", torch.bfloat16):
        for work in study.works(0, 0, 1, 4096):
            assert study.losses(checkpoint.network, *work.on(torch.device("cpu")))["loss"].isfinite()


def test_the_encoder_does_not_learn_and_the_rest_does(deep_model):
    settings = replace(SETTINGS, features="mix", recurrent=3)
    way = choose_way(deep_model, make_task(deep_model, "classify"), settings)
    assert isinstance(way, FeatureWay)
    checkpoint, said = way.start(None)
    learns = {name.split(".")[0]: parameter.requires_grad for name, parameter in checkpoint.network.named_parameters()}
    assert learns == {"embed": False, "blocks": False, "mix": True, "heads": True}
    count = sum(p.numel() for p in checkpoint.network.parameters() if p.requires_grad)
    assert f"{count:,} numbers learn" in said


def test_the_base_models_pooler_is_taken_where_it_reads_what_it_was_trained_on(deep_model):
    base = load_checkpoint(deep_model)
    pooler = base.network.tensor("heads.pool.dense.weight")
    for layers in LAYERS:
        shape = None if layers == "last" else FeatureShape(layers)
        fitted, _ = fit_head(base, "classify", LABELS, features=shape)
        dense = fitted.network.tensor("heads.classify.dense.weight")
        assert (dense.shape == pooler.shape and torch.equal(dense, pooler)) == (layers == "last")


@pytest.mark.parametrize("other", [None, FeatureShape("sum4"), FeatureShape("mix", 4)])
def test_a_head_made_for_other_features_is_replaced(deep_model, other):
    shape = FeatureShape("mix", 3)
    one, _ = fit_head(load_checkpoint(deep_model), "tag", LABELS, features=shape, seed=1)
    again, said = fit_head(one, "tag", LABELS, features=shape, seed=2)
    assert "goes on training" in said
    assert all(torch.equal(one.network.tensor(n), again.network.tensor(n)) for n in again.network.names)
    changed, said = fit_head(one, "tag", LABELS, features=other, seed=2)
    assert said.startswith("a fresh head for tag")
    assert torch.equal(changed.network.embed.tokens.weight, one.network.embed.tokens.weight)


@pytest.mark.parametrize("layers, recurrent", [("last", 4), ("sum4", 0), ("concat4", 4), ("mix", 0)])
def test_a_checkpoint_comes_back_to_the_bit(deep_model, tmp_path, layers, recurrent):
    shape = FeatureShape(layers, recurrent)
    fitted, _ = fit_head(load_checkpoint(deep_model), "classify", LABELS, features=shape)
    save_checkpoint(fitted, tmp_path)
    again = load_checkpoint(tmp_path)
    assert again.network.features == shape and again.labels == LABELS and again.left_out == []
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["BertModel"]
    for name in fitted.network.names:
        assert torch.equal(fitted.network.tensor(name), again.network.tensor(name))
    plain, _ = fit_head(again, "classify", LABELS)  # a full fine-tuning may start from it
    save_checkpoint(plain, tmp_path)
    assert "features" not in json.loads((tmp_path / "config.json").read_text())


@pytest.mark.parametrize(
    "block, said",
    [({"layers": "most"}, "known are last"), ({"layers": "mix", "recurrent": -1}, "must be 0 to"),
     ({"layers": "concat4"}, "has the shape"), ({"layers": "mix", "recurrent": 4}, "lack")],
)  # fmt: skip
def test_a_config_that_does_not_fit_ends_in_a_sentence(deep_model, tmp_path, block, said):
    fitted, _ = fit_head(load_checkpoint(deep_model), "tag", LABELS, features=FeatureShape("mix"))
    save_checkpoint(fitted, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "features": block}))
    with pytest.raises(BertsmithError, match=said):
        load_checkpoint(tmp_path)


def test_features_without_a_head_in_the_weights_end_in_a_sentence(deep_model, tmp_path):
    save_checkpoint(load_checkpoint(deep_model), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "features": {"layers": "mix"}}))
    with pytest.raises(BertsmithError, match="hold no such head"):
        load_checkpoint(tmp_path)


def test_the_key_tells_encoders_rows_and_layers_apart(deep_model):
    one, other = load_checkpoint(deep_model), load_checkpoint(deep_model)
    assert fingerprint_encoder(one.network) == fingerprint_encoder(other.network)
    dropped, _ = fit_head(one, "tag", LABELS, dropout=0.4)
    encoder = fingerprint_encoder(one.network)
    assert fingerprint_encoder(dropped.network) == encoder  # neither the head nor dropout changes a feature
    with torch.no_grad():
        other.network.blocks[1].feed.up.weight[0, 0] += 1e-6
    rows = [row for some in make_rows("tag", 5) for row in some]
    moved = [replace(rows[0], segments=[1 - kind for kind in rows[0].segments]), *rows[1:]]
    keys = [find_key(encoder, rows, "mix"), find_key(fingerprint_encoder(other.network), rows, "mix"),
            find_key(encoder, rows[::-1], "mix"), find_key(encoder, rows[:-1], "mix"), find_key(encoder, moved, "mix"),
            find_key(encoder, rows, "last")]  # fmt: skip
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("part", ["relative.", "convolution."])
def test_what_tells_layers_of_distances_and_neighbours_is_the_encoders(part, tmp_path):
    network = load_saved(make_reference("deberta-v2", ""), tmp_path).network
    encoder = fingerprint_encoder(network)
    found = {name: p for name, p in network.named_parameters() if name.startswith(part)}
    assert found and all(name.startswith(ENCODER) for name in found)
    with torch.no_grad():
        next(iter(found.values())).add_(1e-3)
    assert fingerprint_encoder(network) != encoder


def test_another_run_finds_the_features_of_the_first(deep_model, tmp_path, monkeypatch):
    task, rows = make_task(deep_model, "tag"), make_rows("tag", 9)
    settings = replace(SETTINGS, features="concat4", cache=str(tmp_path / "cache"))
    features, said = keep(tmp_path / "one", start(deep_model, task, settings), task, settings)
    first = features.study(rows).features
    features.forget()
    assert said[-1].startswith("The encoder reads train once")
    monkeypatch.setattr(module, "compute", None)
    again = replace(settings, seed=7, rate=0.1)
    features, said = keep(tmp_path / "two", start(deep_model, task, again), task, again)
    np.testing.assert_array_equal(features.study(rows).features, first)
    assert said[-1].startswith("The encoder's features of train are there already")
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".features"]


def test_without_a_cache_the_features_go_with_the_run(deep_model, tmp_path):
    task, settings = make_task(deep_model, "tag"), SETTINGS
    features, _ = keep(tmp_path, start(deep_model, task, settings), task, settings)
    features.study(make_rows("tag", 5))
    assert features.place.is_relative_to(tmp_path) and any(features.place.iterdir())
    features.forget()
    assert not features.place.exists()


def write(folder, shape=(6, 4), key="k" * 32, dtype="float32"):
    values = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    file, calls = FeatureFile(folder, key, shape, dtype), []

    def compute():
        calls.append(1)
        yield from np.array_split(values, 3)

    found, was_there = file.keep(compute)
    np.testing.assert_array_equal(found, values)
    assert was_there == (not calls)
    return file, was_there


def damage(kind, path):
    content = bytearray(path.read_bytes())
    if kind == "a bit":
        content[-3] ^= 4
    elif kind == "the head":
        content[5] ^= 4
    elif kind == "its end":
        content = content[:-4]
    elif kind == "all":
        content = bytearray()
    elif kind == "more":
        content += b"more"
    elif kind == "no checksum":
        about = json.loads(content[:HEAD])
        del about["sum"]
        content[:HEAD] = json.dumps(about).encode().ljust(HEAD)
    path.write_bytes(content)


def test_rows_are_counted_once_on_their_way(monkeypatch):
    """Each row that waited was counted again for each that came: the square of their number."""

    class Counting(list):
        asked = 0

        def __len__(self):
            Counting.asked += 1
            return super().__len__()

    monkeypatch.setattr(module, "_run", lambda predictor, task, rows, dtype: rows)
    rows = [Row(Counting([1] * 10), [0] * 10) for _ in range(1000)]
    task = SimpleNamespace(mix=SimpleNamespace(collected=module.AT_ONCE // 4000))  # a thousand tokens at once
    parts = list(module.compute(Predictor(None, None, 100), task, rows, "float32"))
    assert [row for part in parts for row in part] == rows and len(parts) == 10
    assert Counting.asked <= 3 * len(rows)


@pytest.mark.parametrize("kind", ["a bit", "the head", "its end", "all", "more", "no checksum"])
def test_a_damaged_file_is_computed_anew(tmp_path, kind):
    file, _ = write(tmp_path)
    damage(kind, file.path)
    assert write(tmp_path)[1] is False
    assert write(tmp_path)[1] is True


def test_a_file_with_anothers_content_is_computed_anew(tmp_path):
    file, _ = write(tmp_path, key="a" * 32)
    file.path.rename(tmp_path / f"{'b' * 32}.features")
    assert write(tmp_path, key="b" * 32)[1] is False
    assert write(tmp_path, (4, 6), key="b" * 32)[1] is False  # the same bytes in another shape


def test_what_a_killed_process_left_is_no_obstacle(tmp_path):
    (tmp_path / f".{'k' * 32}.part").write_bytes(b"half of an array " * 1000)
    assert write(tmp_path)[1] is False
    assert [path.name for path in tmp_path.iterdir()] == [f"{'k' * 32}.features"]


def test_two_at_once_compute_it_once(tmp_path):
    file, calls, going, may_end = FeatureFile(tmp_path, "k" * 32, (2, 3), "float32"), [], threading.Event(), []

    def compute():
        calls.append(1)
        going.set()
        may_end[0].wait(300)
        yield np.ones((2, 3), np.float32)

    may_end.append(threading.Event())
    found = []
    threads = [threading.Thread(target=lambda: found.append(file.keep(compute)[0].sum())) for _ in range(3)]
    threads[0].start()
    assert going.wait(300)
    for thread in threads[1:]:
        thread.start()
    may_end[0].set()
    for thread in threads:
        thread.join(300)
    assert found == [6, 6, 6] and calls == [1]
    assert [path.suffix for path in tmp_path.iterdir()] == [".features"]


def test_a_full_disk_ends_in_a_sentence_and_leaves_nothing(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (HEAD + 40, before[1]))  # no file may grow larger: the write fails
    try:
        with pytest.raises(BertsmithError, match=r"cannot hold the features, which take 0\.00 GB: .*; give a folder"):
            write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_is_a_file_ends_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BertsmithError, match="cannot hold the features"):
        write(tmp_path / "file")


def test_numbers_that_are_none_are_not_kept(tmp_path):
    file = FeatureFile(tmp_path, "k" * 32, (1, 2), "float16")
    with pytest.raises(BertsmithError, match="not finite numbers here; give precision=fp32"):
        file.keep(lambda: [torch.tensor([[1e6, 1.0]]).half().numpy()])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name, value", [("recompute", True), ("layer_decay", 0.9), ("spread", "fsdp"), ("lora", 4), ("unfreeze", 1.0)]
)
def test_settings_for_an_encoder_that_learns_are_refused(deep_model, name, value):
    with pytest.raises(BertsmithError, match=f"{name}.* leave (it|{name}) out|leave {name} out"):
        refuse_unfit(make_task(deep_model, "tag"), replace(SETTINGS, **{name: value}))


def test_a_task_without_a_head_has_nothing_that_could_learn(deep_model):
    task = make_task(deep_model, "tag")
    task.head = None
    with pytest.raises(BertsmithError, match="features has no meaning for the task tag"):
        refuse_unfit(task, SETTINGS)


def test_without_features_nothing_changes(deep_model):
    task = make_task(deep_model, "tag")
    way = choose_way(deep_model, task, Training())
    assert type(way) is Way
    network = way.start(None)[0].network.eval()
    assert network.mix is None and all(p.requires_grad for p in network.parameters())
    batch = Batch.of([[2, 7, 9, 3]])
    with torch.no_grad():
        assert torch.equal(network(batch), network.encode(batch))


FAMILIES = ["bert", "roberta", "albert", "distilbert", "electra", "modernbert", "mpnet", "deberta-v2"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_keeps_its_encoder_where_others_find_it(family, tmp_path):
    reference = make_reference(family, "")
    base = load_saved(reference, tmp_path / "base")
    fitted, _ = fit_head(base, "tag", LABELS, features=FeatureShape("mix", 3))
    (tmp_path / "out").mkdir()
    save_checkpoint(fitted, tmp_path / "out")
    again = load_checkpoint(tmp_path / "out")
    ids, segments = make_tokens(reference)
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "out").eval()
    found = run_reference(theirs, ids, segments).last_hidden_state
    assert torch.equal(unpad(found, ids), unpad(run_reference(reference, ids, segments).last_hidden_state, ids))
    batch = as_batch(ids, segments)
    with torch.no_grad():
        hidden = run_reference(reference, ids, segments, output_hidden_states=True).hidden_states
        wanted = torch.stack([unpad(state, ids) for state in hidden]).mean(dim=0)
        mix = again.network.mix
        assert mix is not None and mix.recurrent is not None
        mix.recurrent = None
        assert distance(again.network(batch), wanted) < 1e-5
