"""How long a request will have waited for its answer: what `--max-wait` stands on.

In: what stands before it, and how fast batches are read. Out: seconds.
"""

from collections.abc import Sequence


def foretell(ahead: int, size: int, free: Sequence[float], batch: int, speed: float) -> float:
    """Seconds until the answer to a request of `size` tokens; what it has beyond a full batch is its own affair.

    `ahead`: tokens of others that are read before its last row; `free`: of each thread that reads, seconds until it has
    read its batch; `batch`: tokens in a full one; `speed`: tokens a second of one thread. Threads take turns where
    batches are full. Answers come with the end of one: until it begins, no more joins it than is read meanwhile.
    """
    own = min(size, batch)
    before = (ahead + own - 1) // batch  # full batches
    rounds, turn = divmod(before, len(free))
    begins = sorted(free)[turn] + rounds * batch / speed
    shared = max(0, ahead - before * batch) + own + begins * len(free) * speed
    return begins + min(shared, batch) / speed
