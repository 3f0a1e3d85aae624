"""What several runs with other seeds come to: the median, between which values they lie, how far they scatter.

In: one score a run. Out: a `Spread`. The median, since a single run that fails to learn would drag a mean along.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float
    sd: float | None  # of a sample (n - 1); None: one run has none
    values: tuple[float, ...]  # in the order of the seeds

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "values": list(self.values)}


def spread_of(values: Sequence[float]) -> Spread | None:
    """None where there is no run to tell of."""
    if not values:
        return None
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.median(values), min(values), max(values), sd, tuple(values))


def middle_run(values: Sequence[float]) -> int:
    """Which of the runs has the median; of an even number the lower of the two in the middle."""
    order = sorted(range(len(values)), key=lambda place: (values[place], place))
    return order[(len(values) - 1) // 2]
