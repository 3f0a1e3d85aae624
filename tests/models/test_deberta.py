"""DeBERTa's files as its makers and others released them, and what of them is refused."""

import json

import pytest
import torch
from oracle import as_batch, distance, load_saved, make_reference, make_rows, run_reference, unpad
from safetensors.torch import load_file, save_file

from bertsmith.errors import BertsmithError
from bertsmith.layers.onednn import can_pack
from bertsmith.models.adapters import share_network
from bertsmith.models.checkpoint import load_checkpoint, save_checkpoint
from bertsmith.training.devices import Ranks
from bertsmith.training.passes import Passes, make_passes
from bertsmith.training.settings import Training


def masked(checkpoint, rows):
    batch = as_batch(*rows)
    with torch.no_grad():
        return checkpoint.network.score(checkpoint.network(batch), batch, "mask")


@pytest.mark.parametrize("legacy", [None, True, False])
def test_microsofts_own_head_for_masked_tokens_is_read(legacy, tmp_path):
    """Their files have it as `lm_predictions` and their config.json is silent; beside it is what nobody else reads."""
    reference = make_reference("deberta-v3", "mask", legacy=False)
    checkpoint = load_saved(reference, tmp_path / "reference")
    tensors = load_file(tmp_path / "reference/model.safetensors")
    assert "lm_predictions.lm_head.dense.weight" in tensors
    tensors |= {f"mask_predictions.{part}": torch.zeros(3) for part in ("dense.weight", "classifier.bias")}
    for name in ("position_embeddings.weight", "position_embeddings._weight", "word_embeddings._weight"):
        tensors[f"deberta.embeddings.{name}"] = torch.zeros(64, 48)
    settings = json.loads((tmp_path / "reference/config.json").read_text())
    settings = {name: value for name, value in settings.items() if name != "legacy"}
    settings |= {} if legacy is None else {"legacy": legacy}
    write(tmp_path / "theirs", settings, tensors)
    ours, rows = load_checkpoint(tmp_path / "theirs"), make_rows(reference)
    assert set(ours.heads) == {"mask"} and not ours.left_out
    scores = unpad(run_reference(reference, *rows).logits, rows[0])
    assert distance(masked(ours, rows), scores) < 1e-5
    assert torch.equal(masked(ours, rows), masked(checkpoint, rows))
    (tmp_path / "saved").mkdir()
    save_checkpoint(ours, tmp_path / "saved")
    again = type(reference).from_pretrained(tmp_path / "saved").eval()
    assert again.config.legacy == (legacy is not False)
    assert distance(scores, unpad(run_reference(again, *rows).logits, rows[0])) < 1e-6


def write(folder, settings, tensors):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(settings))
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"relative_attention": False}, "relative_attention = False: only True is read"),
        ({"share_att_key": None}, "share_att_key = False: only True is read"),
        ({"norm_rel_ebd": None}, "norm_rel_ebd = 'none': only 'layer_norm' is read"),
        ({"pos_att_type": "c2p"}, "pos_att_type = .*c2p.*; only p2c and c2p together are read"),
        ({"pos_att_type": None}, "pos_att_type = .*; only p2c and c2p together are read"),
        ({"max_relative_positions": 32}, "max_relative_positions = 32: only max_position_embeddings"),
        ({"embedding_size": 16}, "embedding_size = 16: only the width of the encoder is read"),
        ({"conv_groups": 2}, "conv_groups = 2: only 1 is read"),
        ({"conv_kernel_size": 4}, "a convolution over 4 tokens and a depth of 3; the first must be odd"),
        ({"position_buckets": "many"}, "a setting of the wrong kind"),
    ],
    ids=str,
)
def test_what_no_released_one_has_is_refused(changed, says, tmp_path):
    load_saved(make_reference("deberta-v3", ""), tmp_path / "whole")
    settings = json.loads((tmp_path / "whole/config.json").read_text())
    kept = {name: value for name, value in {**settings, **changed}.items() if value is not None}
    write(tmp_path / "changed", kept, load_file(tmp_path / "whole/model.safetensors"))
    with pytest.raises(BertsmithError, match=says):
        load_checkpoint(tmp_path / "changed")


@pytest.mark.parametrize("family", ["mpnet", "deberta-v3", "deberta-v2"])
def test_half_precision_stays_near(family, tmp_path):
    reference = make_reference(family, "")
    rows = make_rows(reference)
    theirs = unpad(run_reference(reference, *rows).last_hidden_state, rows[0])
    load_saved(reference, tmp_path)
    for packs in (False, True):
        network = load_checkpoint(tmp_path, torch.bfloat16).network
        if packs:
            network.pack()
        with torch.no_grad():
            assert distance(network(as_batch(*rows)).float(), theirs) < 0.1


@pytest.mark.skipif(not can_pack(torch.device("cpu"), torch.float32), reason="this machine packs no matrices")
def test_networks_on_one_encoder_keep_what_it_makes_of_distances_once(tmp_path):
    checkpoint = load_saved(make_reference("deberta-v3", ""), tmp_path)
    checkpoint.network.pack()
    rows = make_rows(make_reference("deberta-v3", ""))
    other = share_network(checkpoint.network, {})
    with torch.no_grad():
        assert torch.equal(checkpoint.network(as_batch(*rows)), other(as_batch(*rows)))
    assert other.relative.kept is checkpoint.network.relative.kept
    assert len(other.relative.kept) == checkpoint.config.depth


@pytest.mark.parametrize("family", ["bert", "mpnet", "deberta-v3"])
def test_passes_on_a_gpu_are_made_as_they_are(family, tmp_path, monkeypatch):
    """Neither compiled nor recorded: no kernel of ours adds what distances say."""
    network = load_saved(make_reference(family, ""), tmp_path).network
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(Passes, "__init__", lambda self, *_: None)
    made = []
    monkeypatch.setattr("bertsmith.training.compiled.TwinPasses.__init__", lambda self, *_: made.append(self))
    study = type("Study", (), {"names": ("loss",), "can_twin": True})()
    passes = make_passes(network, study, Training(), torch.device("cuda"), "bf16", Ranks())
    assert bool(made) == (family == "bert") and (type(passes) is Passes) == (family != "bert")
