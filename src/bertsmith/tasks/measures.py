"""A score that knows how certain it is: what each example adds, and how the sums become a value.

Every metric here is a function of sums over examples (right ones and all of them; true positives, predicted, gold), so
resampling examples for an interval or a paired test is one matrix product, whatever the metric.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Measure:
    counts: Array  # (examples, k)
    value: Callable[[Array], Array]  # sums (…, k) -> values (…)

    @property
    def point(self) -> float:
        return float(self.value(self.counts.sum(axis=0)))
