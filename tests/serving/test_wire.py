"""Frames between processes: whatever is packed comes out the same, and garbage is known as such."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.serving.processes.wire import MARK, PREFIX, BrokenFrame, Frames, TooLarge, pack

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
headers = st.dictionaries(st.text().filter(lambda key: key != "shapes"), plain, max_size=4)
shapes = st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3)
frames = st.tuples(headers, st.none() | shapes, st.randoms(use_true_random=False))


def make_arrays(sizes, chance):
    if sizes is None:
        return None
    return [np.random.default_rng(chance.randrange(99)).standard_normal(size).astype("float32") for size in sizes]


@given(st.lists(frames, max_size=4), st.integers(1, 40))
def test_what_is_packed_comes_out_however_it_is_cut(made, step):
    sent = [(header, make_arrays(sizes, chance)) for header, sizes, chance in made]
    stream = b"".join(pack(header, arrays) for header, arrays in sent)
    reader = Frames()
    got = [frame for start in range(0, len(stream), step) for frame in reader.feed(stream[start : start + step])]
    assert [header for header, _ in got] == [header for header, _ in sent] and not reader.buffer
    for (_, found), (_, arrays) in zip(got, sent, strict=True):
        assert (found is None) == (arrays is None)
        for one, other in zip(found or [], arrays or [], strict=True):
            assert one.dtype == np.float32 and one.shape == other.shape and one.tobytes() == other.tobytes()


@given(st.binary(min_size=PREFIX.size, max_size=200))
def test_garbage_ends_in_a_broken_frame_or_in_waiting(data):
    for start in (b"", MARK):
        try:
            list(Frames(most=64).feed(start + data))
        except BrokenFrame:
            continue
        assert start == MARK  # lengths that may still come


@pytest.mark.parametrize(
    "header, body",
    [
        (b"{", b""),
        (b"[]", b""),
        (b"\xff", b""),
        (b"{}", b"1234"),
        (b'{"shapes": [[2]]}', b"1234"),
        (b'{"shapes": [[-1], [2]]}', b"1234"),
        (b'{"shapes": [[1.0]]}', b"1234"),
        (b'{"shapes": 1}', b"1234"),
        (b'{"shapes": [[1, 1, 1, 1, 1, 1, 1, 1, 1]]}', b"1234"),
    ],
)
def test_a_frame_that_contradicts_itself_is_broken(header, body):
    with pytest.raises(BrokenFrame):
        list(Frames().feed(PREFIX.pack(MARK, len(header), len(body)) + header + body))


def test_a_frame_beyond_the_bound_is_neither_made_nor_read():
    arrays = [np.zeros(100, "float32")]
    with pytest.raises(TooLarge):
        pack({}, arrays, most=100)
    with pytest.raises(BrokenFrame):  # as soon as its lengths are known, before it lies in memory
        list(Frames(most=100).feed(pack({}, arrays)[: PREFIX.size]))


def test_numbers_of_numpy_keep_their_value():
    (frame,) = Frames().feed(pack({"a": np.float32(0.1), "b": [np.int64(3)], "c": (1, 2)}))
    assert frame[0] == {"a": float(np.float32(0.1)), "b": [3], "c": [1, 2]}
