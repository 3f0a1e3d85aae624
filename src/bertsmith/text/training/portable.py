"""Logarithm and power from +, -, × and ÷ alone, which every machine rounds alike; those of its library may differ."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LN2 = 0.6931471805599453


def log(values: Floats) -> Floats:
    """The natural logarithm of numbers above zero, to about one part in 1e15."""
    fraction, power = np.frexp(values)  # exact
    small = fraction < 0.7071067811865476
    fraction = np.where(small, fraction * 2.0, fraction)
    power = np.where(small, power - 1, power).astype(np.float64)
    step = (fraction - 1.0) / (fraction + 1.0)  # log f = 2 (s + s³/3 + s⁵/5 + …), |s| < 0.172
    square = step * step
    total = np.zeros_like(step)
    for odd in range(23, 0, -2):
        total = total * square + 1.0 / odd
    return power * _LN2 + 2.0 * step * total


def power(base: float, exponent: float) -> float:
    """`base` to the `exponent`, both above zero."""
    logarithm = float(log(np.array([base]))[0]) * exponent
    halvings = 0
    while abs(logarithm) > 0.5:
        logarithm /= 2.0
        halvings += 1
    total = 1.0
    for divisor in range(20, 0, -1):
        total = 1.0 + logarithm / divisor * total
    for _ in range(halvings):
        total *= total
    return total
