"""Encoders to pretrain: sizes that follow the width, weights as BERT begins, and what the reference makes of them."""

from dataclasses import replace

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint, save_checkpoint
from bertsmith.models.families import FAMILIES, find_preset
from bertsmith.models.fresh import make_fresh, scale

TOKENS = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
PRESETS = [name for family in FAMILIES for name in family.presets]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PRESETS), st.integers(1, 2048))
def test_heads_and_inner_follow_the_width(preset, width):
    _, config = find_preset(preset)
    width *= 64 if config.position == "rotary" else 1  # whose heads must be of even size
    found = scale(config, {"width": width})
    assert found.width == width and width % found.heads == 0
    assert found.heads <= max(1, width * config.heads // config.width)
    assert abs(found.inner - config.inner * width / config.width) <= 8
    assert (found.embed_width == width) == (config.embed_width == config.width) or width == 1


def test_rotary_heads_of_odd_size_are_refused():
    _, config = find_preset("modernbert-base")
    for given_ in ({"width": 65}, {"width": 64, "heads": 64}):
        with pytest.raises(BertsmithError, match="rotary positions need an even number"):
            scale(config, given_)
    assert scale(find_preset("bert-base")[1], {"width": 64, "heads": 64}).heads == 64


def test_what_is_given_is_taken():
    _, config = find_preset("bert-base")
    found = scale(config, {"width": 96, "heads": 3, "inner": 100, "depth": 5})
    assert (found.width, found.heads, found.inner, found.depth, found.distinct) == (96, 3, 100, 5, 5)
    assert scale(find_preset("albert-base")[1], {"depth": 5}).distinct == 1


@pytest.mark.parametrize(
    "preset, width, heads", [
        ("bert-base", 32, ["mask", "follows"]), ("roberta-base", 32, ["mask"]),
        ("albert-base", 128, ["mask", "follows"]),
        ("electra-small", 128, ["replaced"]), ("distilbert-base", 32, ["mask"]), ("modernbert-base", 64, ["mask"]),
        ("mpnet-base", 32, ["mask"]), ("deberta-v3-base", 32, ["mask"]), ("deberta-v2-xlarge", 32, ["mask"]),
    ],
)  # fmt: skip
def test_a_fresh_encoder_is_saved_and_opened(tmp_path, preset, width, heads):
    tokens = {**TOKENS, "pad": 1, "unk": 0} if preset == "mpnet-base" else TOKENS
    made = make_fresh(preset, heads, {"vocabulary": 50, "positions": 40}, tokens, 3, {"depth": 2, "width": width})
    save_checkpoint(made, tmp_path)
    again = load_checkpoint(tmp_path)
    # What drops in a head for other tasks is theirs to say.
    assert replace(again.config, head_dropout=0.0) == replace(made.config, head_dropout=0.0)
    assert set(again.heads) == set(heads)
    assert all(torch.equal(again.network.tensor(name), made.network.tensor(name)) for name in made.network.names)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    model, said = getattr(transformers, config.architectures[0]).from_pretrained(tmp_path, output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"]
    assert config.pad_token_id == tokens["pad"] and model.num_parameters() > 0


def test_weights_begin_as_those_of_bert():
    """Normal with 0.02, norms 1, biases 0; the seed decides."""
    one, same, other = (make_fresh("bert-base", ["mask"], {"vocabulary": 500}, TOKENS, seed, {"depth": 1, "width": 128})
                        for seed in (0, 0, 1))  # fmt: skip
    for name in one.network.names:
        tensor = one.network.tensor(name)
        assert torch.equal(tensor, same.network.tensor(name)) and tensor.requires_grad
        if name.endswith("norm.weight"):
            assert (tensor == 1).all()
        elif name.endswith("bias"):
            assert (tensor == 0).all()
        else:
            assert tensor.std().item() == pytest.approx(0.02, rel=0.1)
            assert not torch.equal(tensor, other.network.tensor(name))


def test_blocks_may_begin_with_adding_nothing():
    sizes = {"vocabulary": 50, "width": 32, "depth": 2, "heads": 2, "inner": 64, "positions": 32}
    network = make_fresh("modernbert-base", ("mask",), sizes, {"pad": 0}, zero_outputs=True).network.eval()
    for block in network.blocks:
        assert not block.attention.out.weight.any() and not block.feed.down.weight.any()
        assert block.attention.qkv.weight.any() and block.feed.up.weight.any()
    batch = Batch.of([[2, 7, 9, 3]])
    first, *_, before, _ = network.states(batch)
    assert torch.equal(first, before)


def test_an_mpnet_counts_positions_from_behind_the_id_that_others_skip():
    with pytest.raises(BertsmithError, match="pad_token_id = 0: an MPNet's padding has the id 1"):
        make_fresh("mpnet-base", ["mask"], {"vocabulary": 50}, TOKENS, 0, {"depth": 1, "width": 32})


def test_a_family_without_the_head_is_refused():
    with pytest.raises(BertsmithError, match="the family roberta has no head for follows"):
        make_fresh("roberta-base", ["mask", "follows"], {}, TOKENS)
