"""The compact form: what it may lose, what it must not, and what is refused."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from oracle import make_reference
from safetensors.torch import load_file, save_file

from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint, save_checkpoint
from bertsmith.models.compact import LEVELS, NOTHING, dequantize, pack_tensors, quantize, read_compact, write_compact
from bertsmith.models.files import COMPACT, WEIGHTS

SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 40))
NUMBERS = st.floats(-1.0, 1.0, width=32)
EXPONENTS = st.sampled_from([-45, -38, -31, -20, -3, 0, 5, 30, 38])


def matrices():
    """Rows of very different sizes, up to the ends of float32, and rows of zeros."""

    def stretch(given, powers):
        wide = given.astype(np.float64) * 10.0 ** powers[:, None]
        return np.clip(wide, -3.4e38, 3.4e38).astype(np.float32)

    return arrays.arrays(np.float32, SHAPES, elements=NUMBERS).flatmap(
        lambda given: arrays.arrays(np.int32, (len(given),), elements=EXPONENTS).map(
            lambda powers: stretch(given, powers)
        )
    )


def squared(numbers):
    return (numbers.double() ** 2).sum(1)


@settings(max_examples=150)
@given(matrices())
def test_no_row_is_further_off_than_rounding_to_its_largest_number(given):
    matrix = torch.from_numpy(given)
    levels, scales = quantize(matrix)
    assert levels.dtype == torch.int8 and scales.dtype == torch.bfloat16 and levels.shape == matrix.shape
    assert levels.abs().max() <= LEVELS
    again = dequantize(levels, scales)
    assert again.isfinite().all()
    largest = matrix.double().abs().amax(1)
    # Half a step for each number; the scale's own 8 bits cost the largest number at most as much again.
    most = matrix.shape[1] * (largest / LEVELS / 2 * 1.01) ** 2
    lost = squared(again.double() - matrix.double())
    assert (lost <= torch.where(largest < NOTHING, matrix.shape[1] * NOTHING**2, most)).all()


@settings(max_examples=80)
@given(matrices())
def test_what_was_read_is_stored_as_it_was(given):
    levels, scales = quantize(torch.from_numpy(given))
    once = dequantize(levels, scales)
    assert torch.equal(dequantize(*quantize(once)), once)
    assert torch.equal(once.double(), levels.double() * scales.double()[:, None])  # no rounding on the way


def test_a_tall_matrix_has_a_scale_a_column(tmp_path):
    """As an adapter's second matrix: exact there and back, and no further off than rounding by its columns."""
    tall = torch.randn(640, 8, generator=torch.Generator().manual_seed(0)) * 10.0 ** torch.arange(-4, 4)
    levels, scales = quantize(tall)
    assert levels.shape == (640, 8) and scales.shape == (1, 8)
    once = dequantize(levels, scales)
    assert torch.equal(once.double(), levels.double() * scales.double())
    assert torch.equal(dequantize(*quantize(once)), once)
    steps = tall.abs().amax(0) / LEVELS
    assert (((once - tall) ** 2).sum(0) <= 640 * (steps / 2 * 1.01) ** 2).all()
    write_compact(tmp_path / "x", {"a": tall}, "int8")
    assert torch.equal(read_compact(tmp_path / "x")[0]["a"], once)
    assert quantize(torch.randn(2000, 100))[1].shape == (2000,)  # a word table is no such matrix


def test_zeros_and_no_numbers():
    for shape in ((3, 9), (0, 9), (4, 0)):
        levels, scales = quantize(torch.zeros(shape))
        assert torch.equal(dequantize(levels, scales), torch.zeros(shape))


def test_a_far_number_is_cut_where_that_is_better():
    """A row with one outlier loses less as a whole than by its largest number."""
    row = torch.cat([torch.linspace(-1, 1, 4000), torch.tensor([1.6])])[None]
    scale = 1.6 / LEVELS
    plain = (row / scale).round() * scale
    assert squared(dequantize(*quantize(row)) - row) < squared(plain - row)


def test_what_is_stored_how():
    tensors = {"matrix": torch.randn(16, 32), "thin": torch.randn(16, 4), "vector": torch.randn(16)}
    kinds = {store: {name: t.dtype for name, t in pack_tensors(tensors, store).items()}
             for store in ("int8", "bf16", "fp32")}  # fmt: skip
    whole, half = torch.float32, torch.bfloat16
    assert kinds["int8"] == {"matrix": torch.int8, "matrix:scale": half, "thin": half, "vector": whole}
    assert set(kinds["bf16"].values()) == {half} and set(kinds["fp32"].values()) == {whole}


@pytest.mark.parametrize("store", ["int8", "bf16", "fp32"])
def test_a_file_there_and_back(store, tmp_path):
    tensors = {"a": torch.randn(64, 96), "b": torch.randn(7)}
    write_compact(tmp_path / "x", tensors, store, {"head": "tag"})
    found, notes = read_compact(tmp_path / "x")
    assert notes == {"head": "tag"} and set(found) == {"a", "b"}
    near = {"int8": 0.01, "bf16": 0.003, "fp32": 0.0}[store]
    for name, tensor in tensors.items():
        assert (found[name].float() - tensor).norm() <= near * tensor.norm()


@pytest.mark.parametrize("family", ["bert", "modernbert", "albert", "distilbert"])
def test_a_folder_in_that_form_is_loaded(family, tmp_path):
    make_reference(family, "mask").save_pretrained(tmp_path / "plain")
    plain = load_checkpoint(tmp_path / "plain")
    (tmp_path / "small").mkdir()
    save_checkpoint(plain, tmp_path / "small")
    write_compact(tmp_path / "small" / COMPACT, load_file(tmp_path / "small" / WEIGHTS), "int8")
    (tmp_path / "small" / WEIGHTS).unlink()
    small = load_checkpoint(tmp_path / "small")
    for name in plain.network.names:
        one, other = plain.network.tensor(name), small.network.tensor(name)
        assert other.dtype == torch.float32 and (one - other).norm() <= 0.01 * one.norm()


def refusal(path):
    with pytest.raises(BertsmithError) as caught:
        read_compact(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    return str(caught.value)


def test_other_versions_and_damaged_files(tmp_path):
    path = tmp_path / COMPACT
    for notes, told in ((None, "does not say its version"), ({"compact": "2"}, "is of version '2'")):
        about = {"format": "pt"} if notes is None else {"bertsmith": json.dumps(notes)}
        save_file({"a": torch.ones(2)}, path, about)
        assert told in refusal(path) and "reads version 1" in refusal(path)
    packed, about = pack_tensors({"a": torch.randn(8, 16)}, "int8"), {"bertsmith": '{"compact": "1"}'}
    for damaged in ({"a": packed["a"]}, {"a": packed["a"], "a:scale": packed["a:scale"][:5]}):
        save_file(damaged, path, about)
        assert "no scale for each row of a" in refusal(path)
    save_file({"a:scale": packed["a:scale"]}, path, about)
    assert "scales for a, which is no matrix" in refusal(path)
    path.write_bytes(path.read_bytes()[:-3])
    assert "not a whole safetensors file" in refusal(path)


def test_numbers_that_cannot_be_stored(tmp_path):
    with pytest.raises(BertsmithError, match="the tensor a holds numbers that are not finite"):
        write_compact(tmp_path / "x", {"a": torch.tensor([[1.0, float("nan")]])}, "int8")
    with pytest.raises(BertsmithError, match=r"the tensor a holds torch\.int64"):
        write_compact(tmp_path / "x", {"a": torch.ones(2, dtype=torch.long)}, "int8")
    with pytest.raises(BertsmithError, match="store='int4' is not a choice; use one of int8, bf16, fp32"):
        write_compact(tmp_path / "x", {"a": torch.ones(2)}, "int4")
    assert not (tmp_path / "x").exists()
