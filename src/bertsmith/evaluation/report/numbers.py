"""Numbers as people read them: scores, counts, sizes, durations, and round steps for an axis."""

import math
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number that can be drawn: not NaN, not infinite, nor so large that a difference overflows."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30


def show_score(value: object, digits: int = 4) -> str:
    """Fractions with four places; what is on a scale to 100 with two."""
    if not is_number(value):
        return "–"
    return f"{value:.{digits if abs(value) <= 1 else 2}f}".replace("-", "−")


def show_interval(low: object, high: object, digits: int = 4) -> str:
    return f"{show_score(low, digits)} – {show_score(high, digits)}" if is_number(low) and is_number(high) else ""


def show_number(value: float) -> str:
    """Short enough for an axis: 1,200 · 0.05 · 2e-05."""
    if not math.isfinite(value):
        return "not finite"
    if value == 0:
        return "0"
    sign, size = "−" if value < 0 else "", abs(value)
    if size >= 1e7:
        return sign + f"{size:.3g}".replace("e+0", "e").replace("e+", "e")
    if size < 1e-3:
        return sign + f"{size:.2g}"
    return sign + (f"{size:,.0f}" if size >= 1000 else f"{size:.4g}")


def show_count(value: float) -> str:
    """How many, in three signs or so: 950 · 41k · 1.5M · 2B."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def show_share(part: float, whole: float) -> str:
    """A percentage that says neither 0 when there is something nor 100 when something is missing."""
    if not whole:
        return "0 %"
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "< 0.1 %"
    if 99.9 < share < 100:
        return "> 99.9 %"
    return f"{share:.0f} %" if share in (0, 100) else f"{share:.1f} %"


def show_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = round(seconds) // 60, round(seconds) // 3600
    return f"{hours} h {minutes % 60:02d} min" if hours else f"{minutes} min {round(seconds) % 60:02d} s"


def show_bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def round_steps(low: float, high: float, wanted: int = 5) -> list[float]:
    """About `wanted` round numbers from `low` to `high`: steps of 1, 2, 2.5 or 5 times a power of ten."""
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        return [low]
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]
