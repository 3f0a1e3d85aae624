"""Model folders as they lie about in the world: read to the reference's numbers, or refused in one sentence."""

import json
import logging
import os
import runpy
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from oracle import as_batch, distance, load_saved, make_reference, make_rows, run_reference, unpad
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Engine
from tokenizers import models, normalizers, pre_tokenizers, processors
from whole.tiny import make_encoder

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.models import checkpoint as checkpoints
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

CLOSE = 1e-5
DATA = Path(__file__).parent / "data" / "tensorflow"
MADE = runpy.run_path(str(DATA.parent / "make_tensorflow.py"))


def ours(checkpoint: Checkpoint, reference, head: str) -> torch.Tensor:
    batch = as_batch(*make_rows(reference))
    with torch.no_grad():
        return checkpoint.network.score(checkpoint.network(batch), batch, head)


def same_hidden(reference, checkpoint: Checkpoint) -> bool:
    ids, segments = make_rows(reference)
    with torch.no_grad():
        hidden = checkpoint.network(as_batch(ids, segments))
    return distance(hidden, unpad(run_reference(reference, ids, segments).last_hidden_state, ids)) < CLOSE


def same_mask(reference, checkpoint: Checkpoint) -> bool:
    ids, segments = make_rows(reference)
    logits = run_reference(reference, ids, segments)
    logits = logits.prediction_logits if hasattr(logits, "prediction_logits") else logits.logits
    return distance(ours(checkpoint, reference, "mask"), unpad(logits, ids)) < CLOSE


def settings_of(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text())


def change(folder: Path, **settings) -> Path:
    """The folder with other settings; None takes one away."""
    known = {**settings_of(folder), **settings}
    (folder / "config.json").write_text(json.dumps({name: value for name, value in known.items() if value is not None}))
    return folder


def change_tensors(folder: Path, change) -> Path:
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors")
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(BertsmithError) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def add_tokenizer(folder: Path, size: int = 97) -> Path:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
    pieces += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    pieces += [f"word{number}" for number in range(size - len(pieces))]
    engine = Engine(models.WordPiece({piece: id for id, piece in enumerate(pieces)}, unk_token="[UNK]"))
    engine.normalizer, engine.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    engine.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=60,
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A whole folder of the reference: masked-LM weights and a tokenizer."""
    make_reference("bert", "mask").save_pretrained(tmp_path / "saved")
    return add_tokenizer(tmp_path / "saved")


# The forms that weights come in.


def test_safetensors_in_shards(tmp_path: Path):
    reference = make_reference("bert", "mask")
    reference.save_pretrained(tmp_path, max_shard_size="50KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    assert same_mask(reference, load_checkpoint(tmp_path))


@pytest.mark.parametrize("shards", [0, 2])
@pytest.mark.parametrize("wrapped", [False, True])
def test_pickles(shards: int, wrapped: bool, tmp_path: Path):
    reference = make_reference("bert", "mask")
    reference.config.save_pretrained(tmp_path)
    state = reference.state_dict()
    if shards:
        places = {name: f"pytorch_model-{i % shards + 1}-of-{shards}.bin" for i, name in enumerate(state)}
        for file in set(places.values()):
            torch.save({name: state[name] for name in state if places[name] == file}, tmp_path / file)
        (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    else:
        torch.save({"state_dict": state} if wrapped else state, tmp_path / "pytorch_model.bin")
    assert same_mask(reference, load_checkpoint(tmp_path))


def test_a_pickle_of_the_first_torch_releases(tmp_path: Path):
    reference = make_reference("bert", "mask")
    reference.config.save_pretrained(tmp_path)
    torch.save(reference.state_dict(), tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    assert same_mask(reference, load_checkpoint(tmp_path))


def test_old_names_of_norms(tmp_path: Path):
    reference = make_reference("bert", "mask")
    reference.config.save_pretrained(tmp_path)
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    state = dict(reference.state_dict())
    for today, once in old.items():
        state = {name.replace(today, once): tensor for name, tensor in state.items()}
    assert sum("gamma" in name for name in state) == 8
    torch.save(state, tmp_path / "pytorch_model.bin")
    assert same_mask(reference, load_checkpoint(tmp_path))


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "distilbert", "electra", "modernbert"])
def test_a_bare_encoder_with_and_without_its_prefix(family: str, tmp_path: Path):
    reference = make_reference(family, "")
    checkpoint = load_saved(reference, tmp_path)
    assert same_hidden(reference, checkpoint) and not checkpoint.left_out
    change_tensors(tmp_path, lambda t: {f"{checkpoint.family.prefix}.{name}": tensor for name, tensor in t.items()})
    checkpoint = load_checkpoint(tmp_path)
    assert same_hidden(reference, checkpoint) and not checkpoint.left_out


@pytest.mark.parametrize("architectures", [["BertForMaskedLM"], ["BertForPreTraining"], ["BertModel"], [], None])
def test_both_pretraining_heads_whatever_the_class_name(architectures, tmp_path: Path):
    """bert-base-uncased says BertForMaskedLM and holds the next-sentence head too; others say nothing."""
    reference = make_reference("bert", "pretraining")
    reference.save_pretrained(tmp_path)
    checkpoint = load_checkpoint(change(tmp_path, architectures=architectures))
    theirs = run_reference(reference, *make_rows(reference))
    assert set(checkpoint.heads) == {"mask", "follows"} and not checkpoint.left_out
    assert same_mask(reference, checkpoint)
    assert distance(ours(checkpoint, reference, "follows"), theirs.seq_relationship_logits) < CLOSE


@pytest.mark.parametrize(("head", "found"), [("classify", "classify"), ("tag", "tag"), ("span", "span"), ("", "pool")])
def test_without_a_class_name_the_tensors_decide(head: str, found: str, tmp_path: Path):
    make_reference("bert", head).save_pretrained(tmp_path)
    assert list(load_checkpoint(change(tmp_path, architectures=None)).heads) == [found]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_float32(dtype, tmp_path: Path):
    make_reference("bert", "mask").to(dtype).save_pretrained(tmp_path)
    reference = transformers.BertForMaskedLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    checkpoint = load_checkpoint(tmp_path)
    assert all(p.dtype == torch.float32 for p in checkpoint.network.parameters())
    assert same_mask(reference, checkpoint)
    assert load_checkpoint(tmp_path, torch.bfloat16).network.embed.tokens.weight.dtype == torch.bfloat16


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "distilbert", "electra", "modernbert"])
def test_an_untied_decoder_both_ways(family: str, tmp_path: Path):
    """Matrix and bias of its own. The reference computes with the decoder's bias, not with the head's."""
    reference = make_reference(family, "mask", tie_word_embeddings=False)
    checkpoint = load_saved(reference, tmp_path / "theirs")
    assert same_mask(reference, checkpoint) and not checkpoint.left_out
    (tmp_path / "ours").mkdir()
    save_checkpoint(checkpoint, tmp_path / "ours")
    again = type(reference).from_pretrained(tmp_path / "ours").eval()
    rows = make_rows(reference)
    assert torch.equal(run_reference(again, *rows).logits, run_reference(reference, *rows).logits)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "modernbert"])
def test_a_decoder_of_its_own_counts_where_the_settings_say_it_is_tied(family: str, tmp_path: Path):
    make_reference(family, "mask", tie_word_embeddings=False).save_pretrained(tmp_path / "theirs")
    change(tmp_path / "theirs", tie_word_embeddings=True)
    reference = getattr(transformers, settings_of(tmp_path / "theirs")["architectures"][0])
    reference = reference.from_pretrained(tmp_path / "theirs").eval()
    checkpoint = load_checkpoint(tmp_path / "theirs")
    assert same_mask(reference, checkpoint)
    (tmp_path / "ours").mkdir()
    save_checkpoint(checkpoint, tmp_path / "ours")
    assert settings_of(tmp_path / "ours")["tie_word_embeddings"] is False
    assert same_mask(reference, load_checkpoint(tmp_path / "ours"))


@pytest.mark.parametrize("family", ["roberta", "modernbert", "albert"])
def test_of_two_tied_matrices_the_other_one_is_in_the_file(family: str, tmp_path: Path):
    """Whoever writes only the first name of a matrix keeps lm_head.decoder.weight, and not the word table."""
    reference = make_reference(family, "mask")
    reference.save_pretrained(tmp_path)
    words, decoder = {
        "roberta": ("roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
        "modernbert": ("model.embeddings.tok_embeddings.weight", "decoder.weight"),
        "albert": ("albert.embeddings.word_embeddings.weight", "predictions.decoder.weight"),
    }[family]
    change_tensors(tmp_path, lambda tensors: {decoder if n == words else n: t for n, t in tensors.items()})
    checkpoint = load_checkpoint(tmp_path)
    assert checkpoint.config.tied and same_mask(reference, checkpoint)


def test_an_untied_decoder_without_a_bias_of_its_own(tmp_path: Path):
    reference = make_reference("bert", "mask", tie_word_embeddings=False)
    with torch.no_grad():
        reference.cls.predictions.decoder.bias.copy_(reference.cls.predictions.bias)
    reference.save_pretrained(tmp_path)
    change_tensors(tmp_path, lambda t: {n: v for n, v in t.items() if n != "cls.predictions.decoder.bias"})
    assert same_mask(reference, load_checkpoint(tmp_path))


# What is left over, and what is lacking.


def test_surplus_tensors_are_named_once(saved: Path, caplog: pytest.LogCaptureFixture):
    more = {
        "my_head.weight": torch.ones(3),
        "bert.embeddings.position_ids": torch.arange(64)[None],
        "cls.predictions.decoder.weight": torch.ones(97, 48),
        "cls.predictions.decoder.bias": torch.ones(97),
    }
    change_tensors(saved, lambda tensors: {**tensors, **more})
    with caplog.at_level(logging.INFO, "bertsmith"):
        model = bertsmith.load(saved)
    assert model.info()["left_out"] == ["my_head.weight"]
    (record,) = [record for record in caplog.records if record.name == "bertsmith"]
    assert "my_head.weight" in record.getMessage() and "position_ids" not in record.getMessage()


def test_nothing_left_over_says_nothing(saved: Path, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "bertsmith"):
        assert bertsmith.load(saved).info()["left_out"] == []
    assert not caplog.records


def test_a_missing_tensor_is_named(saved: Path):
    lost = "bert.encoder.layer.1.attention.self.key.weight"
    change_tensors(saved, lambda tensors: {n: t for n, t in tensors.items() if n != lost})
    assert lost in refusal(saved)


def test_a_missing_head_is_named(saved: Path):
    assert "lack bert.pooler.dense.weight" in refusal(change(saved, architectures=["BertForSequenceClassification"]))


def test_a_tensor_of_another_shape_is_named_with_both(saved: Path):
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    change_tensors(saved, lambda tensors: {**tensors, name: torch.zeros(81, 48)})
    message = refusal(saved)
    assert name in message and "[81, 48]" in message and "[80, 48]" in message


def test_integers_are_no_weights(saved: Path):
    name = "bert.encoder.layer.0.output.dense.bias"
    change_tensors(saved, lambda tensors: {**tensors, name: torch.zeros(48, dtype=torch.int32)})
    assert name in refusal(saved)


@pytest.mark.parametrize("shape", [(), (0, 48), (0,)])
def test_a_classifier_without_outputs(shape: tuple[int, ...], tmp_path: Path):
    make_reference("bert", "classify").save_pretrained(tmp_path)
    change_tensors(tmp_path, lambda tensors: {**tensors, "classifier.weight": torch.zeros(shape)})
    assert "classifier.weight" in refusal(tmp_path)


FROM_1 = {str(i): "x" for i in range(1, 6)}


@pytest.mark.parametrize("labels", [{"0": "a"}, {str(i): "x" for i in range(9)}, {"a": "b"}, ["a"], "abc", FROM_1])
def test_labels_at_odds_with_the_classifier(labels, tmp_path: Path):
    make_reference("bert", "classify").save_pretrained(tmp_path)
    assert "id2label" in refusal(change(tmp_path, id2label=labels))


# Settings that are not read.


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model_type": "t5"}, "model_type = 't5'"),
        ({"model_type": None}, "model_type"),
        ({"model_type": ["bert"]}, "model_type"),
        ({"auto_map": {"AutoModel": "evil.Model"}}, "auto_map"),
        ({"quantization_config": {"bits": 4}}, "quantiz"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"is_decoder": True}, "is_decoder"),
        ({"hidden_act": "os.system"}, "os.system"),
        ({"hidden_act": ["gelu"]}, "config.json"),
        ({"hidden_size": "abc"}, "hidden_size"),
        ({"hidden_size": 48.5}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": -48}, "width"),
        ({"hidden_size": 0}, "width"),
        ({"hidden_size": 52}, "tensor"),
        ({"hidden_size": 10**12}, "width"),
        ({"num_attention_heads": 5}, "5 attention heads"),
        ({"num_attention_heads": 0}, "heads"),
        ({"num_hidden_layers": 10**12}, "depth"),
        ({"num_hidden_layers": 10**6}, "1000000 layers"),
        ({"num_hidden_layers": 4}, "encoder.layer.3"),
        ({"vocab_size": 10**12}, "vocabulary"),
        ({"vocab_size": 10**7}, "word_embeddings"),
        ({"intermediate_size": -1}, "inner"),
        ({"max_position_embeddings": 10**15}, "positions"),
        ({"type_vocab_size": -2}, "segments"),
        ({"layer_norm_eps": -1.0}, "eps"),
        ({"layer_norm_eps": 1e300}, "eps"),
        ({"layer_norm_eps": "tiny"}, "layer_norm_eps"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"tie_word_embeddings": False}, "decoder.weight"),
    ],
)
def test_a_setting_that_cannot_be_read(settings: dict, says: str, saved: Path):
    assert says in refusal(change(saved, **settings))


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("roberta", {"pad_token_id": "one"}),
        ("roberta", {"pad_token_id": 65}),
        ("roberta", {"pad_token_id": -5}),
        ("albert", {"num_hidden_layers": 10**9}),
        ("albert", {"embedding_size": -16}),
        ("albert", {"num_hidden_groups": 10**9}),
        ("modernbert", {"local_attention": "wide"}),
        ("modernbert", {"layer_types": 3}),
        ("modernbert", {"rope_parameters": ["x"]}),
        ("modernbert", {"rope_parameters": {"full_attention": {"type": "linear", "factor": 2.0}}}),
        ("modernbert", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}),
        ("modernbert", {"rope_scaling": "linear"}),
        ("modernbert", {"layer_types": None, "global_attn_every_n_layers": 0}),
    ],
)
def test_a_setting_of_a_family_that_cannot_be_read(family: str, settings: dict, tmp_path: Path):
    make_reference(family, "").save_pretrained(tmp_path)
    assert "config.json" in refusal(change(tmp_path, **settings))


@pytest.mark.parametrize("architectures", ["BertModel", {"a": 1}, 7, [None], [["x"]]])
def test_odd_class_names_do_no_harm(architectures, saved: Path):
    assert list(load_checkpoint(change(saved, architectures=architectures)).heads) == ["mask"]


# The first TensorFlow release.


def make_tensorflow_reference():
    """transformers' BertForPreTraining filled by hand; the names here are written apart from those in the package."""
    config = transformers.BertConfig(**MADE["CONFIG"])
    model = transformers.BertForPreTraining(config).eval()
    parts = {"kernel": "weight", "gamma": "weight", "beta": "bias", "output_weights": "weight"}
    with torch.no_grad():
        for name, value in MADE["tensors"]().items():
            if name == "global_step":
                continue
            *path, leaf = name.split("/")
            leaf = {"output_bias": "bias", **parts}.get(leaf, leaf)
            place = model
            for step in path:
                for part in ["layer", step[6:]] if step.startswith("layer_") else [step]:
                    place = getattr(place, part)
            target = getattr(place, leaf)
            target = target.weight if isinstance(target, torch.nn.Module) else target
            target.copy_(torch.tensor(value).T if name.endswith("kernel") else torch.tensor(value))
    return model


def test_the_first_release_equals_the_reference(tmp_path: Path):
    reference = make_tensorflow_reference()
    model = bertsmith.load(DATA)
    generator = torch.Generator().manual_seed(3)
    ids = [torch.randint(5, 99, (n,), generator=generator) for n in (7, 30, 2)]
    segments = [(torch.arange(len(row)) > 3).long() for row in ids]
    theirs = run_reference(reference, ids, segments)
    batch = as_batch(ids, segments)
    with torch.no_grad():
        hidden = model.checkpoint.network(batch)
        mask = model.checkpoint.network.score(hidden, batch, "mask")
        follows = model.checkpoint.network.score(hidden, batch, "follows")
    assert model.info()["left_out"] == [] and model.info()["limit"] == 40
    assert distance(mask, unpad(theirs.prediction_logits, ids)) < CLOSE
    assert distance(follows, theirs.seq_relationship_logits) < CLOSE
    model.save(tmp_path / "ours")
    again = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "ours").eval()
    found = run_reference(again, ids, segments)
    assert torch.equal(found.prediction_logits, theirs.prediction_logits)
    assert torch.equal(found.seq_relationship_logits, theirs.seq_relationship_logits)
    text = "the man was at the bank"
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")(text)["input_ids"] == model.tokenize(text).ids


def test_todays_files_beside_the_first_release_are_preferred(tmp_path: Path):
    shutil.copytree(DATA, tmp_path / "both")
    reference = make_reference("bert", "mask")
    reference.config.save_pretrained(tmp_path / "both")
    torch.save(reference.state_dict(), tmp_path / "both" / "pytorch_model.bin")
    assert same_mask(reference, load_checkpoint(tmp_path / "both"))


# Saving.


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_saved_folder_opens_elsewhere(saved: Path, tmp_path: Path):
    bertsmith.load(saved).save(tmp_path / "deep" / "ours")
    auto = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "deep" / "ours").eval()
    reference = transformers.BertForMaskedLM.from_pretrained(saved).eval()
    rows = make_rows(reference)
    assert torch.equal(run_reference(auto, *rows).logits, run_reference(reference, *rows).logits)
    transformers.AutoModel.from_pretrained(tmp_path / "deep" / "ours")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "deep" / "ours")
    before = transformers.AutoTokenizer.from_pretrained(saved)
    text = "A cab, [MASK] word3!"
    assert tokenizer(text)["input_ids"] == before(text)["input_ids"]
    assert tokenizer.model_max_length == before.model_max_length and tokenizer.mask_token == "[MASK]"


def test_saved_loaded_saved_are_the_same_bytes(saved: Path, tmp_path: Path):
    bertsmith.load(saved).save(tmp_path / "one")
    bertsmith.load(tmp_path / "one").save(tmp_path / "two")
    assert listing(tmp_path / "one") == listing(tmp_path / "two")
    files = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    assert set(listing(tmp_path / "one")) == files


def test_saving_onto_itself(saved: Path):
    model = bertsmith.load(saved)
    before = model.fill("a [MASK] b")
    model.save(saved)
    again = bertsmith.load(saved)
    assert again.fill("a [MASK] b").answers == before.answers


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("fails", ["write_tensors", "write_json"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_nothing(there: bool, fails: str, error, saved: Path, tmp_path: Path, monkeypatch):
    model = bertsmith.load(saved)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "ours"
    if there:
        shutil.copytree(saved, target)
    before = listing(tmp_path / "out")
    written = getattr(checkpoints, fails)

    def fail(path: Path, content) -> None:
        written(path, content)
        raise error

    monkeypatch.setattr(checkpoints, fails, fail)
    with pytest.raises((BertsmithError, KeyboardInterrupt)) as caught:
        model.save(target)
    assert listing(tmp_path / "out") == before and len(list((tmp_path / "out").iterdir())) == there
    if isinstance(error, OSError):
        assert str(caught.value) == f"{target} cannot be written: No space left on device."


def test_saving_over_another_model(saved: Path, tmp_path: Path):
    """What would change how the new model is read goes; a person's own files stay."""
    shutil.copytree(saved, tmp_path / "out")
    (tmp_path / "out" / "modules.json").write_text("[]")
    (tmp_path / "out" / "added_tokens.json").write_text('{"[X]": 3}')
    (tmp_path / "out" / "bertsmith.json").write_text('{"task": "classify", "settings": {"labels": ["a", "b", "c"]}}')
    (tmp_path / "out" / "adapter_config.json").write_text("{}")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    bertsmith.load(saved).save(tmp_path / "out")
    found = bertsmith.load(tmp_path / "out")
    found.embed("a b")
    assert found.trained == {} and list(found.checkpoint.heads) == list(bertsmith.load(saved).checkpoint.heads)
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_a_kill_while_files_move_leaves_no_mixture(saved: Path, tmp_path: Path, monkeypatch):
    """The old model, none, or the new one: never the weights of one with the settings of the other."""
    model, moved = bertsmith.load(saved), os.replace
    files = len(list(saved.iterdir()))
    for done in range(files):
        out = tmp_path / f"out-{done}"
        shutil.copytree(saved, out)
        (out / "bertsmith.json").write_text('{"task": "classify", "settings": {"labels": ["a", "b", "c"]}}')
        left = iter([moved] * done)
        monkeypatch.setattr(os, "replace", lambda *paths, left=left: next(left, stop)(*paths))
        with pytest.raises(KeyboardInterrupt):
            model.save(out)
        monkeypatch.setattr(os, "replace", moved)
        with pytest.raises(BertsmithError, match=r"has no config\.json"):
            bertsmith.load(out)
        model.save(out)
        assert bertsmith.load(out).trained == {}


def stop(*paths):
    raise KeyboardInterrupt


def test_saving_where_no_folder_can_be(saved: Path, tmp_path: Path):
    model = bertsmith.load(saved)
    (tmp_path / "file").write_text("mine")
    for target in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BertsmithError, match="file"):
            model.save(target)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="no folder is closed to this user")
def test_saving_below_a_read_only_folder(saved: Path, tmp_path: Path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(BertsmithError, match="Permission denied"):
        bertsmith.load(saved).save(tmp_path / "closed" / "ours")


def test_saving_where_the_system_refuses(saved: Path, tmp_path: Path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    model = bertsmith.load(saved)
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(BertsmithError) as caught:
        model.save(tmp_path / "ours")
    assert str(caught.value) == f"{tmp_path / 'ours'} cannot be written: Permission denied."


# Names instead of folders.


def test_a_name_in_the_cache(saved: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    snapshot = tmp_path / "cache" / "models--owner--name" / "snapshots" / ("0" * 40)
    shutil.copytree(saved, snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0" * 40)
    assert (bertsmith.load("owner/name").embed("a b") == bertsmith.load(saved).embed("a b")).all()
    with pytest.raises(BertsmithError, match="no such model") as caught:
        bertsmith.load("owner/other")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "pytorch_model.bin", "tokenizer.json", "spiece.model", "onnx/model.onnx"]
)
def test_a_pointer_in_the_place_of_a_large_file(name: str, tmp_path: Path):
    """A clone without Git LFS, written as its specification says; "copy it again" would give the same pointer."""
    folder = make_encoder(tmp_path / "cloned")
    if name == "spiece.model":
        (folder / "tokenizer.json").unlink()
    elif name != "tokenizer.json":
        (folder / "model.safetensors").unlink()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
    )
    with pytest.raises(BertsmithError) as error:
        bertsmith.load(folder, device="cpu").tokenize("a film")
    assert (
        str(error.value)
        == f"{folder / name} is a pointer of Git LFS, not the file itself; fetch it with `git lfs pull`."
    )
