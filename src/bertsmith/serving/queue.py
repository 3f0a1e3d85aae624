"""Work that waits, in the order in which it is fair to do it: start-time fair queueing over requests, by tokens.

In: rows, each of a request. Out: batches within a budget of tokens. A request of a thousand rows and one of a single
row have the same claim on the machine: the short one does not wait for the long one's end, nor the long one for ever.
"""

import heapq
import threading
import time
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from bertsmith.serving.asks import Refusal


class Ticket:
    """One request's claim: when it came, until when somebody waits for it, and what it has cost."""

    def __init__(self, timeout: float | None = None, expected: int = 0) -> None:
        """`expected`: about how many tokens it will bring, until they are counted."""
        self.came = time.monotonic()
        self.deadline = None if timeout is None else self.came + timeout
        self.gone = threading.Event()  # nobody waits for the answer any more
        self.finish = 0.0  # in the queue's own time: where the last of its rows stands
        self.expected = expected
        self.waiting = 0  # tokens in the queue
        self.longest = 0  # tokens of its longest row
        self.tokens = 0  # that were read for it
        self.queued = 0.0  # seconds until the first of its rows was taken
        self.worked = 0.0  # seconds in batches
        self.calls: list[Any] = []  # that wait for scores, to be woken when it is cancelled

    def cancel(self) -> None:
        self.gone.set()
        for call in list(self.calls):
            call.done.set()

    def check(self) -> None:
        """Stops the request's thread where its work has become useless."""
        if self.gone.is_set():
            raise gone()
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise late()


def gone() -> Refusal:
    return Refusal("unavailable", "the client has gone.")


def late() -> Refusal:
    return Refusal("timeout", "the answer did not come within the time allowed; send less at once, or ask again later.")


@dataclass
class Piece:
    """A row that waits."""

    ticket: Ticket
    size: int  # tokens
    work: Any


@dataclass
class Lane:
    """What may share a pass: rows for one encoder."""

    budget: int
    heap: list[tuple[float, int, Piece]] = field(default_factory=list)


class FairQueue:
    """Not safe by itself: whoever uses it holds a lock."""

    def __init__(self) -> None:
        self.lanes: dict[Hashable, Lane] = {}
        self.time = 0.0  # grows as work is taken, so that who comes later does not have to catch up
        self.order = count()
        self.tokens = 0
        self.rows = 0

    def push(self, key: Hashable, budget: int, piece: Piece) -> None:
        lane = self.lanes.setdefault(key, Lane(budget))
        ticket = piece.ticket
        start = max(self.time, ticket.finish)
        ticket.finish = start + piece.size
        ticket.expected = 0
        ticket.waiting += piece.size
        ticket.longest = max(ticket.longest, piece.size)
        heapq.heappush(lane.heap, (start, next(self.order), piece))
        self.tokens += piece.size
        self.rows += 1

    def pop(self, most: int | None = None) -> tuple[Hashable, list[Piece]] | None:
        """A batch of the lane whose turn it is, of `most` tokens; what nobody waits for is dropped on the way."""
        while True:
            for lane in self.lanes.values():
                self._drop_gone(lane)
            waiting = [key for key, lane in self.lanes.items() if lane.heap]
            if not waiting:
                return None
            key = min(waiting, key=lambda key: self.lanes[key].heap[0][:2])
            taken = self._take(self.lanes[key], most)
            if taken:
                return key, taken

    def _take(self, lane: Lane, most: int | None) -> list[Piece]:
        taken: list[Piece] = []
        room = lane.budget if most is None else min(lane.budget, most)
        while lane.heap and (not taken or lane.heap[0][2].size <= room):
            start, _, piece = heapq.heappop(lane.heap)
            self._forget(piece)
            if piece.ticket.gone.is_set():
                continue
            self.time = max(self.time, start)
            room -= piece.size
            taken.append(piece)
        return taken

    def _drop_gone(self, lane: Lane) -> None:
        while lane.heap and lane.heap[0][2].ticket.gone.is_set():
            self._forget(heapq.heappop(lane.heap)[2])

    def _forget(self, piece: Piece) -> None:
        piece.ticket.waiting -= piece.size
        self.tokens -= piece.size
        self.rows -= 1


def count_ahead(tickets: Iterable[Ticket], size: int) -> int:
    """Tokens that would be read before a request of so many has its last: of each other one no more than its part.

    That is as many as its own, or one row, which is not parted: single rows leave in the order in which they came.
    """
    return sum(min(ticket.waiting + ticket.expected, max(size, ticket.longest)) for ticket in tickets)
