"""Reads a TensorFlow checkpoint ("tensor bundle", V2) without TensorFlow, so that Google's own BERT releases load.

In: the prefix of a checkpoint, `…/bert_model.ckpt` for `bert_model.ckpt.index` and `bert_model.ckpt.data-*-of-*`.
Out: every tensor under its TensorFlow name, memory-mapped; what the names mean is the caller's business.

The index is a LevelDB table (github.com/google/leveldb, doc/table_format.md) of protocol buffers
(tensorflow/core/protobuf/tensor_bundle.proto); the data files are the tensors' bytes one after the other.
"""

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bertsmith.errors import BertsmithError
from bertsmith.models.checksum import checksum, masked
from bertsmith.text.protobuf import Damaged, as_bytes, as_int, read_fields, read_varint, take

# tensorflow/core/framework/types.proto, less what no encoder's weights are stored in.
DTYPES = {
    1: torch.float32,
    2: torch.float64,
    3: torch.int32,
    4: torch.uint8,
    5: torch.int16,
    6: torch.int8,
    9: torch.int64,
    10: torch.bool,
    14: torch.bfloat16,
    19: torch.float16,
}
STRING = 7  # TensorFlow 2 keeps its object graph in one of these; it holds no weights

FOOTER = 48
MAGIC = 0xDB4775248B80FB57
TRAILER = 5  # after each block: one byte of compression type, four of checksum


AGAIN = "get the file again"


class _Refused(Damaged):
    """What is wrong inside a file, and what helps."""

    def __init__(self, reason: str, advice: str = AGAIN):
        super().__init__(reason)
        self.advice = advice


@dataclass
class _Entry:
    """Where one tensor lies: a BundleEntryProto, with the defaults that protocol buffers leave out."""

    dtype: int = 0
    shape: tuple[int, ...] = ()
    shard: int = 0
    offset: int = 0
    size: int = 0
    checksum: int = 0
    sliced: bool = False


def find_prefix(folder: Path) -> Path | None:
    """The checkpoint in `folder`: `…/bert_model.ckpt`, of `model.ckpt-1000` and `model.ckpt-2000` the last; or None."""
    prefixes = [path.with_suffix("") for path in folder.glob("*.index") if not path.name.startswith(".")]
    # ELECTRA's releases have no ".ckpt" in their names; a ".index" of another kind has no data file beside it.
    prefixes = [p for p in prefixes if ".ckpt" in p.name or any(folder.glob(f"{p.name}.data-?????-of-?????"))]
    if not prefixes:
        return None
    series = sorted({re.sub(r"-\d+$", "", prefix.name) for prefix in prefixes})
    if len(series) > 1:
        raise BertsmithError(
            f"{folder} holds more than one TensorFlow checkpoint ({', '.join(series)}): leave only one of them there."
        )
    return max(prefixes, key=_step)


def _step(prefix: Path) -> int:
    match = re.search(r"-(\d+)$", prefix.name)
    return int(match[1]) if match else -1


def read(prefix: Path) -> dict[str, torch.Tensor]:
    """Every tensor of the checkpoint, optimizer slots and `global_step` included; strings are left out."""
    index = prefix.with_name(prefix.name + ".index")
    shards, entries = _read_index(index)
    files: dict[int, tuple[Path, np.ndarray]] = {}
    tensors = {}
    for name, entry in entries.items():
        if entry.dtype == STRING:
            continue
        if not 0 <= entry.shard < shards:
            raise BertsmithError(
                f"cannot read {index} (it puts tensor {name} into part {entry.shard} of {shards}): get the file again."
            )
        if entry.shard not in files:
            path = prefix.with_name(f"{prefix.name}.data-{entry.shard:05d}-of-{shards:05d}")
            files[entry.shard] = path, _map_file(path)
        path, data = files[entry.shard]
        try:
            tensors[name] = _tensor(entry, data)
        except _Refused as damage:
            raise BertsmithError(f"cannot read tensor {name} from {path} ({damage}): {damage.advice}.") from None
    return tensors


def _map_file(path: Path) -> np.ndarray:
    try:
        if path.stat().st_size == 0:  # which no system maps
            return np.empty(0, np.uint8)
        # "c", copy on write: torch wants memory it may write to, and the file must stay as it is.
        return np.memmap(path, np.uint8, mode="c")
    except FileNotFoundError:
        raise BertsmithError(
            f"{path} is missing, a part of the checkpoint: put it beside the .index file it came with."
        ) from None
    except OSError as error:
        raise BertsmithError(f"cannot open {path}: {error.strerror or error}.") from None


def _tensor(entry: _Entry, data: np.ndarray) -> torch.Tensor:
    if entry.sliced:
        raise _Refused("stored in slices, as a partitioned variable", "save the checkpoint again without partitions")
    if entry.dtype not in DTYPES:
        raise _Refused(f"type {entry.dtype} of TensorFlow's types.proto", "save the checkpoint again as float32")
    dtype = DTYPES[entry.dtype]
    if min(entry.shape, default=0) < 0 or math.prod(entry.shape) * dtype.itemsize != entry.size:
        wrong = f"shape {list(entry.shape)} of {str(dtype)[6:]} does not take {entry.size} bytes"
        raise _Refused(wrong, "get the .index file again")
    end = entry.offset + entry.size
    if entry.offset < 0 or end > len(data):
        raise _Refused(f"the file is cut short, {len(data)} bytes where {end} are needed")
    raw = data[entry.offset : end]
    if masked(checksum(raw)) != entry.checksum:
        raise _Refused("its checksum is wrong, so the file is damaged or belongs to another .index")
    if not entry.size:  # which torch does not view as another type
        return torch.empty(entry.shape, dtype=dtype)
    if entry.offset % dtype.itemsize:  # a bundle packs its tensors without padding, torch wants them aligned
        raw = raw.copy()
    return torch.from_numpy(raw).view(dtype).reshape(entry.shape)


def _read_index(path: Path) -> tuple[int, dict[str, _Entry]]:
    """The number of data files, and every entry by name."""
    try:
        pairs = dict(_table(path.read_bytes()))
        if b"" not in pairs:
            raise _Refused("a table without the header of a checkpoint")
        header = dict(read_fields(pairs.pop(b"")))
        if header.get(2, 0) != 0:
            raise _Refused("it is big-endian", "save the checkpoint again on an ordinary machine")
        # The slices of a partitioned variable have keys that start with 0; the variable itself has its name.
        named = {
            key.decode(errors="replace"): _entry(value) for key, value in pairs.items() if not key.startswith(b"\0")
        }
        return as_int(header.get(1, 0)), named
    except OSError as error:
        raise BertsmithError(f"cannot open {path}: {error.strerror or error}.") from None
    except Damaged as damage:
        raise BertsmithError(
            f"cannot read {path} as the index of a TensorFlow checkpoint ({damage}): "
            f"{getattr(damage, 'advice', AGAIN)}."
        ) from None


def _entry(message: bytes) -> _Entry:
    entry = _Entry()
    for field, value in read_fields(message):
        if field == 2:
            entry.shape = _shape(as_bytes(value))
        elif field == 7:
            entry.sliced = True
        elif field == 6:
            entry.checksum = int.from_bytes(as_bytes(value), "little")
        elif field in (1, 3, 4, 5):
            setattr(entry, {1: "dtype", 3: "shard", 4: "offset", 5: "size"}[field], as_int(value))
    return entry


def _shape(message: bytes) -> tuple[int, ...]:
    dims = (as_bytes(value) for field, value in read_fields(message) if field == 2)
    return tuple(as_int(dict(read_fields(dim)).get(1, 0)) for dim in dims)


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of a LevelDB table, in the order of the keys."""
    if len(data) < FOOTER or struct.unpack_from("<Q", data, len(data) - 8)[0] != MAGIC:
        raise _Refused("it is empty" if not data else "its end is not that of one")
    footer = data[-FOOTER:]
    at = 0
    for _ in range(2):  # the two numbers of the meta index, which a checkpoint does not use
        _, at = read_varint(footer, at)
    for _, handle in _pairs(_block(data, footer[at:])):
        yield from _pairs(_block(data, handle))


def _block(data: bytes, handle: bytes) -> bytes:
    """The block that a handle (offset, size) names, its checksum tested."""
    offset, at = read_varint(handle, 0)
    size, _ = read_varint(handle, at)
    block = take(data, offset, size + TRAILER)
    kind, stored = struct.unpack_from("<BI", block, size)
    if masked(checksum(np.frombuffer(block, np.uint8, size + 1))) != stored:
        raise _Refused("a checksum is wrong")
    if kind != 0:
        raise _Refused("its blocks are compressed", "save the checkpoint again, TensorFlow does not compress")
    return block[:size]


def _pairs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of one block, where each key leaves out what it shares with the one before."""
    restarts = int.from_bytes(take(block, len(block) - 4, 4), "little")
    end = len(block) - 4 - 4 * restarts  # restart points serve a binary search; whoever reads all passes over them
    at, key = 0, b""
    while at < end:
        shared, at = read_varint(block, at)
        fresh, at = read_varint(block, at)
        length, at = read_varint(block, at)
        key = key[:shared] + take(block, at, fresh)
        yield key, take(block, at + fresh, length)
        at += fresh + length
