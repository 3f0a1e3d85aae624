"""What is foretold of a request's wait, beside threads that are played through batch by batch."""

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.serving.waits import foretell

BATCH, SPEED = 100, 1000.0  # tokens, tokens a second: a batch takes 0.1 seconds
FREE = st.lists(st.floats(0, BATCH / SPEED), min_size=1, max_size=4)
SIZES = st.integers(1, 3 * BATCH)


def make_busy(free):
    """So long that a batch fills before the first thread is free."""
    return [seconds + BATCH / SPEED / len(free) for seconds in free]


def play(batches, free):
    """When the last of so many full batches has been read, each by the thread that is free first."""
    free = list(free)
    heapq.heapify(free)
    end = 0.0
    for _ in range(batches):
        end = heapq.heappop(free) + BATCH / SPEED
        heapq.heappush(free, end)
    return end


@given(st.integers(0, 20), st.integers(1, BATCH), FREE)
def test_it_is_what_full_batches_take(before, size, free):
    """Behind so many of them; those who come meanwhile fill the one that is shared."""
    free = make_busy(free)
    assert foretell(before * BATCH, size, free, BATCH, SPEED) == pytest.approx(play(before + 1, free))


@given(SIZES, st.integers(1, 4))
def test_nobody_waits_where_nobody_else_is(size, threads):
    """It takes what it takes, of which a batch is counted."""
    assert foretell(0, size, [0.0] * threads, BATCH, SPEED) == pytest.approx(min(size, BATCH) / SPEED)


@given(st.integers(0, 2000), SIZES, FREE, st.integers(1, 500), st.floats(0, 0.1))
def test_more_before_it_never_shortens_the_wait(ahead, size, free, more, later):
    busy = make_busy(free)
    wait = foretell(ahead, size, busy, BATCH, SPEED)
    assert foretell(ahead + more, size, busy, BATCH, SPEED) >= wait - 1e-9
    assert foretell(ahead, size, [seconds + later for seconds in busy], BATCH, SPEED) >= wait - 1e-9


@given(st.integers(0, 2000), SIZES, FREE)
def test_it_is_enough_for_all_tokens(ahead, size, free):
    """It differs by no more than two batches from threads that share all work evenly."""
    even = (sum(free) + (ahead + min(size, BATCH)) / SPEED) / len(free)
    assert abs(foretell(ahead, size, free, BATCH, SPEED) - even) <= 2 * BATCH / SPEED


@given(st.integers(0, 2000), SIZES, FREE, st.floats(0.1, 10))
def test_a_machine_that_is_faster_is_faster_by_as_much(ahead, size, free, times):
    wait = foretell(ahead, size, free, BATCH, SPEED)
    faster = foretell(ahead, size, [seconds / times for seconds in free], BATCH, SPEED * times)
    assert faster == pytest.approx(wait / times)
