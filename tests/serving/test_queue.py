"""The queue by its promises: nothing lost or doubled, no batch over the budget, no request starved by a longer one."""

from hypothesis import given
from hypothesis import strategies as st

from bertsmith.serving.queue import FairQueue, Piece, Ticket, count_ahead

REQUESTS = st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=12), min_size=1, max_size=8)


def fill(queue, requests, budget, lanes=1):
    tickets = []
    for number, sizes in enumerate(requests):
        tickets.append(Ticket())
        for place, size in enumerate(sizes):
            queue.push(number % lanes, budget, Piece(tickets[-1], size, (number, place)))
    return tickets


def empty(queue):
    while (found := queue.pop()) is not None:
        yield found


@given(REQUESTS, st.integers(1, 100), st.integers(1, 3))
def test_every_row_comes_out_once_within_the_budget(requests, budget, lanes):
    queue = FairQueue()
    fill(queue, requests, budget, lanes)
    assert queue.tokens == sum(map(sum, requests)) and queue.rows == sum(map(len, requests))
    seen = []
    for lane, batch in empty(queue):
        assert len(batch) == 1 or sum(piece.size for piece in batch) <= budget
        assert all(piece.work[0] % lanes == lane for piece in batch)
        seen += [piece.work for piece in batch]
    assert sorted(seen) == [(n, p) for n, sizes in enumerate(requests) for p in range(len(sizes))]
    assert queue.tokens == queue.rows == 0


@given(REQUESTS, st.data())
def test_what_nobody_waits_for_is_not_done(requests, data):
    queue = FairQueue()
    tickets = fill(queue, requests, 50)
    gone = data.draw(st.sets(st.integers(0, len(requests) - 1)))
    for number in gone:
        tickets[number].cancel()
    seen = {piece.work[0] for _, batch in empty(queue) for piece in batch}
    assert seen == set(range(len(requests))) - gone
    assert queue.tokens == 0


@given(st.integers(1, 400), st.integers(1, 30), st.integers(1, 30))
def test_a_short_request_waits_for_no_more_than_its_fair_part(rows, each, size):
    """Behind a request of many rows, one of a single row is done after as many tokens of the other as it has itself,
    and those of the row that was begun."""
    queue = FairQueue()
    first, second = Ticket(), Ticket()
    for place in range(rows):
        queue.push(0, each, Piece(first, each, place))
    queue.pop()
    queue.push(0, each, Piece(second, size, "short"))
    before = 0
    for _, batch in empty(queue):
        if batch[0].work == "short":
            break
        before += sum(piece.size for piece in batch)
    assert before <= 2 * each
    assert all(later[0].work != "short" for _, later in empty(queue))


@given(REQUESTS)
def test_the_longest_is_done_last_at_the_latest(requests):
    """However many others come, a request's rows leave in the order they came in."""
    queue = FairQueue()
    fill(queue, requests, 40)
    seen = [piece.work for _, batch in empty(queue) for piece in batch]
    for number in range(len(requests)):
        assert [place for other, place in seen if other == number] == list(range(len(requests[number])))


@given(REQUESTS, st.integers(1, 200))
def test_what_stands_ahead_is_counted_fairly(requests, size):
    tickets = [*fill(FairQueue(), requests, 50), Ticket(expected=30)]
    parts = [min(sum(sizes), max(size, *sizes)) for sizes in ([0, *sizes] for sizes in requests)]
    assert count_ahead(tickets, size) == sum(parts) + min(30, size)


@given(st.lists(st.integers(1, 60), max_size=30), st.integers(0, 5), st.integers(1, 60))
def test_a_single_row_waits_for_all_the_single_rows_before_it(sizes, taken, size):
    queue = FairQueue()
    tickets = fill(queue, [[one] for one in sizes], 1)
    for _ in range(taken):
        queue.pop()
    counted = count_ahead(tickets, size)
    queue.push(0, 1, Piece(Ticket(), size, "last"))
    read = [batch[0] for _, batch in empty(queue)]
    assert read[-1].work == "last" and sum(piece.size for piece in read[:-1]) == counted
