"""The TensorFlow reader against checkpoints that TensorFlow wrote, and against damaged ones."""

import runpy
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from bertsmith.errors import BertsmithError
from bertsmith.models import checksum, tensorflow

DATA = Path(__file__).parent / "data" / "tensorflow"
MADE = runpy.run_path(str(DATA.parent / "make_tensorflow.py"))
INDEX = "bert_model.ckpt.index"
SHARD = "bert_model.ckpt.data-00000-of-00001"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(DATA, tmp_path / "copy")
    return tmp_path / "copy"


def refusal(prefix: Path) -> str:
    with pytest.raises(BertsmithError) as caught:
        tensorflow.read(prefix)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_every_tensor_of_the_tiny_bert_is_the_one_saved():
    prefix = tensorflow.find_prefix(DATA)
    assert prefix == DATA / "bert_model.ckpt"
    tensors, expected = tensorflow.read(prefix), MADE["tensors"]()
    assert tensors.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(tensors[name], torch.tensor(value)), name
        assert tensors[name].dtype == torch.tensor(value).dtype


def test_two_shards_and_every_type():
    prefix = tensorflow.find_prefix(DATA / "two_shards")
    assert prefix is not None
    tensors, expected = tensorflow.read(prefix), MADE["others"]()
    assert tensors.keys() == expected.keys()  # the string tensor is left out
    for name, value in expected.items():
        assert tuple(tensors[name].shape) == value.shape
        if name == "g_bfloat16":
            assert tensors[name].dtype == torch.bfloat16
            assert np.array_equal(tensors[name].float().numpy(), value)
        else:
            assert np.array_equal(tensors[name].numpy(), value), name
        assert tensors[name].data_ptr() % tensors[name].itemsize == 0


def test_changing_a_tensor_leaves_the_file_alone(copy: Path):
    before = (copy / SHARD).read_bytes()
    tensorflow.read(copy / "bert_model.ckpt")["cls/seq_relationship/output_bias"].zero_()
    assert (copy / SHARD).read_bytes() == before


def test_the_last_step_is_found(tmp_path: Path):
    for name in ("model.ckpt-900.index", "model.ckpt-1000.index", "model.ckpt-0.index", "._model.ckpt-2000.index"):
        (tmp_path / name).touch()
    assert tensorflow.find_prefix(tmp_path) == tmp_path / "model.ckpt-1000"


def test_a_foreign_index_is_no_checkpoint(tmp_path: Path):
    (tmp_path / "vectors.index").touch()
    assert tensorflow.find_prefix(tmp_path) is None
    (tmp_path / "electra_small.index").touch()
    (tmp_path / "electra_small.data-00000-of-00001").touch()
    assert tensorflow.find_prefix(tmp_path) == tmp_path / "electra_small"


def test_two_checkpoints_in_one_folder(tmp_path: Path):
    (tmp_path / "one.ckpt.index").touch()
    (tmp_path / "two.ckpt.index").touch()
    with pytest.raises(BertsmithError, match=r"more than one TensorFlow checkpoint \(one.ckpt, two.ckpt\)"):
        tensorflow.find_prefix(tmp_path)


@pytest.mark.parametrize("keep", [0, 1, 40, 48, 1000, -1])
def test_truncated_index(copy: Path, keep: int):
    index = copy / INDEX
    index.write_bytes(index.read_bytes()[:keep])
    message = refusal(copy / "bert_model.ckpt")
    assert str(index) in message
    assert "get the file again" in message
    assert ("empty" in message) == (keep == 0)


def test_any_flipped_byte_of_the_index_is_noticed(copy: Path):
    index = copy / INDEX
    whole = index.read_bytes()
    metaindex_and_padding = 0
    for at in range(len(whole)):
        index.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            tensorflow.read(copy / "bert_model.ckpt")
            metaindex_and_padding += 1
        except BertsmithError as error:
            assert str(index) in str(error)
    assert metaindex_and_padding < 60  # the empty meta index and the footer's filling, which hold nothing


def test_truncated_data(copy: Path):
    shard = copy / SHARD
    for keep in (0, 1000, -1):
        shard.write_bytes((DATA / SHARD).read_bytes()[:keep])
        message = refusal(copy / "bert_model.ckpt")
        assert str(shard) in message
        assert "cut short" in message


def test_flipped_byte_in_the_data(copy: Path):
    shard = copy / SHARD
    data = bytearray(shard.read_bytes())
    data[50_000] ^= 1
    shard.write_bytes(data)
    message = refusal(copy / "bert_model.ckpt")
    assert str(shard) in message
    assert "checksum" in message


def test_missing_files(copy: Path):
    (copy / "two_shards" / "model.ckpt-7.data-00001-of-00002").unlink()
    message = refusal(copy / "two_shards" / "model.ckpt-7")
    assert "model.ckpt-7.data-00001-of-00002 is missing" in message
    assert "nothing.ckpt.index" in refusal(copy / "nothing.ckpt")


def test_foreign_files(copy: Path):
    (copy / INDEX).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n" * 3)
    assert "its end is not that of one" in refusal(copy / "bert_model.ckpt")
    (copy / INDEX).unlink()
    (copy / INDEX).mkdir()
    assert "cannot open" in refusal(copy / "bert_model.ckpt")


def test_slices_are_refused():
    assert "partitioned" in refusal(DATA / "sliced" / "model.ckpt")


def test_checksum_is_the_standard_one():
    for text in (b"", b"\0", b"123456789", bytes(32), bytes(range(251)) * 9):
        assert checksum.checksum(np.frombuffer(text, np.uint8)) == crc32c(text)
    assert crc32c(b"123456789") == 0xE3069283  # the check value in the catalogue of CRCs


# A writer of its own, bit by bit, for tables that TensorFlow does not write.


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def write_table(path: Path, blocks: list[dict[bytes, bytes]], kind: int = 0) -> None:
    out = b""

    def add(pairs: dict[bytes, bytes]) -> bytes:
        nonlocal out
        body, last = b"", b""
        for key, value in pairs.items():
            shared = next(
                (i for i, (a, b) in enumerate(zip(last, key, strict=False)) if a != b), min(len(last), len(key))
            )
            body += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
            last = key
        body += struct.pack("<II", 0, 1)
        handle = varint(len(out)) + varint(len(body))
        crc = crc32c(body + bytes([kind]))
        out += body + bytes([kind]) + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
        return handle

    handles = {list(block)[-1]: add(block) for block in blocks}
    footer = add({}) + add(handles)
    path.write_bytes(out + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57))


def entry(dtype: int, shape: list[int], size: int, data: bytes = b"", offset: int = 0) -> bytes:
    dims = b"".join(b"\x12" + varint(len(dim)) + dim for dim in (b"\x08" + varint(n) for n in shape))
    crc = crc32c(data)
    mask = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    start = b"\x08" + varint(dtype) + b"\x12" + varint(len(dims)) + dims
    return start + b"\x20" + varint(offset) + b"\x28" + varint(size) + b"\x35" + struct.pack("<I", mask)


HEADER = {b"": b"\x08\x01\x1a\x02\x08\x01"}


def test_a_table_of_many_blocks(tmp_path: Path):
    data = np.arange(6, dtype=np.float32)
    (tmp_path / "m.ckpt.data-00000-of-00001").write_bytes(data.tobytes())
    blocks = [HEADER, *({b"layer_%d" % i: entry(1, [1], 4, data[i].tobytes(), 4 * i)} for i in range(6))]
    write_table(tmp_path / "m.ckpt.index", blocks)
    tensors = tensorflow.read(tmp_path / "m.ckpt")
    assert {name: value.tolist() for name, value in tensors.items()} == {f"layer_{i}": [float(i)] for i in range(6)}


@pytest.mark.parametrize(
    ("blocks", "kind", "says"),
    [
        ([HEADER], 1, "compressed"),
        ([{b"": b"\x08\x01\x10\x01"}], 0, "big-endian"),
        ([{b"a": b""}], 0, "without the header"),
        ([HEADER | {b"a": entry(1, [2, 3], 20)}], 0, r"shape \[2, 3\] of float32 does not take 20 bytes"),
        ([HEADER | {b"a": entry(1, [2**64 - 1], 2**64 - 4)}], 0, "does not take"),
        ([HEADER | {b"a": entry(8, [1], 8)}], 0, "type 8"),
        ([HEADER | {b"a": entry(1, [1], 4, offset=2**64 - 8)}], 0, "cut short"),
        ([HEADER | {b"a": b"\x18\x05"}], 0, "part 5 of 1"),
        ([HEADER | {b"a": b"\x12\xff"}], 0, "cut short"),
        ([HEADER | {b"a": b"\x0a\x01x"}], 0, "bytes stand where a number belongs"),
        ([HEADER | {b"a": b"\x10\x01"}], 0, "a number stands where bytes belong"),
        ([HEADER | {b"a": b"\x0b"}], 0, "no protocol buffer"),
        ([HEADER | {b"a": b"\x08" + b"\xff" * 11}], 0, "does not end"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, blocks: list[dict[bytes, bytes]], kind: int, says: str):
    write_table(tmp_path / "m.ckpt.index", blocks, kind)
    (tmp_path / "m.ckpt.data-00000-of-00001").write_bytes(bytes(16))
    with pytest.raises(BertsmithError, match=says):
        tensorflow.read(tmp_path / "m.ckpt")
