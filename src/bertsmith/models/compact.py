"""Weights in a quarter or half of their bytes: matrices as int8 with a scale a row, or everything in bfloat16.

In: tensors by name. Out: a file of our own form, and from it float tensors again. It has a name of its own, so that
other libraries say that a folder holds no weights rather than read numbers that are none.

The form: a safetensors file whose notes say `compact`, its version. An int8 tensor `X` stands for `X` times
`X:scale`, which has a bfloat16 number for each row, or, of a matrix as tall and narrow as an adapter's second one, in
one row a number for each column; every other tensor is what it is. Both factors have 8 bits, so their product is exact
in float32, and storing what was read from such a file gives the same file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.models.files import COMPACT, has_tensors, read_noted, read_tensors, write_tensors

Array = np.ndarray
Store = Literal["int8", "bf16", "fp32"]
NOTE, VERSION = "compact", "1"
SCALE = ":scale"  # behind the name of a matrix; no library has a colon in such a name
LEVELS = 127
FACTORS = [1 - 0.025 * step for step in range(17)]  # of the largest number of a row: what lies beyond is cut
NOTHING = 1e-30  # rows whose largest number is smaller are zeros: no sum of the model would notice
MOST = 2.0**121  # a scale beyond it would make infinity of a level
NARROW, TALL = 64, 16  # at most as wide, and as many times as high: scales of its rows would be a fifth of its bytes
SHORTEST = 8  # numbers in a row, from which on its scale is worth the two bytes
CHUNK = 1 << 16  # numbers that are looked at together: they stay in cache


def quantize(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix as int8 and a bfloat16 scale a row: of several scales the one that leaves the least squared error.

    Of a tall one a scale a column: (1, columns).
    """
    if matrix.ndim == 2 and matrix.shape[1] <= NARROW and matrix.shape[0] >= TALL * max(1, matrix.shape[1]):
        across, scales_across = quantize_rows(matrix.T)
        return across.T, scales_across[None]
    return quantize_rows(matrix)


def quantize_rows(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The same with a scale a row, whatever the matrix is like."""
    rows = matrix.detach().float().cpu().flatten(1).numpy()  # numpy: threads of torch would wait for each other
    levels, scales = np.zeros(rows.shape, np.int8), np.zeros(len(rows), np.float32)
    height = max(1, CHUNK // max(1, rows.shape[1]))
    for start in range(0, len(rows), height):
        some = slice(start, start + height)
        levels[some], scales[some] = _quantize(rows[some])
    return torch.from_numpy(levels).reshape(matrix.shape), torch.from_numpy(scales).bfloat16()


def _quantize(rows: Array) -> tuple[Array, Array]:
    largest = np.abs(rows).max(axis=1, initial=0.0)
    is_nothing = largest < NOTHING
    unit = np.where(is_nothing, np.float32(1), largest)  # errors are compared by this measure: squares stay in range
    shares = rows / unit[:, None]
    best, scales = np.full_like(largest, np.inf), np.zeros_like(largest)
    for factor in FACTORS:
        scale = _round_scale(np.minimum(unit / LEVELS * factor, MOST))
        step = (scale / unit)[:, None]
        error = np.square(_find_levels(shares, step) * step - shares).sum(axis=1)
        better = error < best
        best, scales = np.where(better, error, best), np.where(better, scale, scales)
    levels = _find_levels(shares, (scales / unit)[:, None])
    levels[is_nothing], scales[is_nothing] = 0, 0
    return levels.astype(np.int8), scales


def _find_levels(shares: Array, step: Array) -> Array:
    found = shares / step
    np.rint(found, out=found)
    return np.clip(found, -LEVELS, LEVELS, out=found)


def _round_scale(scale: Array) -> Array:
    rounded: Array = torch.from_numpy(scale.astype(np.float32)).bfloat16().float().numpy()
    return rounded


def dequantize(levels: Tensor, scales: Tensor) -> Tensor:
    """The float32 matrix that levels and scales stand for."""
    shape = (-1, *[1] * (levels.ndim - 1)) if scales.ndim == 1 else tuple(scales.shape)
    return levels.float().mul_(scales.float().reshape(shape))


def pack_tensors(tensors: Mapping[str, Tensor], store: Store) -> dict[str, Tensor]:
    """The tensors as they are stored; vectors are few, and stay float32 beside int8 matrices."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise BertsmithError(f"the tensor {name} holds {tensor.dtype}, and only floating-point numbers are packed.")
        if not tensor.isfinite().all():
            raise BertsmithError(f"the tensor {name} holds numbers that are not finite; mend the model first.")
        if store == "bf16":
            found[name] = tensor.bfloat16()
        elif store == "int8" and tensor.ndim > 1 and tensor.shape[1:].numel() >= SHORTEST:
            found[name], found[name + SCALE] = quantize(tensor)
        else:
            found[name] = tensor.bfloat16() if store == "int8" and tensor.ndim > 1 else tensor.float()
    return {name: tensor.contiguous() for name, tensor in found.items()}


def write_compact(
    path: Path, tensors: Mapping[str, Tensor], store: Store, notes: Mapping[str, str] | None = None
) -> None:
    write_tensors(path, pack_tensors(tensors, take_store(store)), {**(notes or {}), NOTE: VERSION})


def read_compact(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors as floats, and what the file notes of itself."""
    stored, notes = read_noted(path)
    version = notes.pop(NOTE, None)
    if version != VERSION:
        what = "does not say its version" if version is None else f"is of version {version!r:.20}"
        raise BertsmithError(
            f"{path} {what}, and this bertsmith reads version {VERSION} of the compact form; install the bertsmith "
            "that wrote it, or export the model again."
        )
    scales = {name.removesuffix(SCALE): tensor for name, tensor in stored.items() if name.endswith(SCALE)}
    tensors: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if name.endswith(SCALE):
            continue
        if tensor.dtype == torch.int8:
            scale = scales.pop(name, None)
            if scale is None or not _fits(scale, tensor):
                raise BertsmithError(f"{path} has no scale for each row of {name}; copy it again.")
            tensor = dequantize(tensor, scale)
        tensors[name] = tensor
    if scales:
        raise BertsmithError(f"{path} has scales for {min(scales)}, which is no matrix of it; copy it again.")
    return tensors, notes


def _fits(scale: Tensor, levels: Tensor) -> bool:
    """Whether it has a number for each row, or in one row for each column."""
    of_rows = levels.ndim > 0 and scale.shape == levels.shape[:1]
    of_columns = levels.ndim == 2 and scale.shape == (1, levels.shape[1])
    return scale.is_floating_point() and (of_rows or of_columns)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All weights of a folder in whichever form it has them; the plain one first, as others would read that."""
    if (folder / COMPACT).exists() and not has_tensors(folder):
        return read_compact(folder / COMPACT)[0]
    return read_tensors(folder)


def take_store(store: str) -> Store:
    if store not in get_args(Store):
        raise BertsmithError(f"store={store!r} is not a choice; use one of {', '.join(get_args(Store))}.")
    return store  # type: ignore[return-value]
