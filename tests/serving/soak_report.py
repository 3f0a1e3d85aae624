"""What a soak has shown: how many answers were wrong, and how steeply the memory still rose in the second half.

The slope is Theil and Sen's: the median of those between any two moments, which single jumps do not tilt. Its interval
is Sen's own (95 %, by Kendall's statistic). The moments are medians of 30 seconds, for the memory of one second is
mostly that of the second before, and as many looks at one thing would make the interval too narrow.
"""

import os
import platform
import shlex
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from serving.soak import Tally

BLOCK = 30.0  # seconds: three times what lies between two returns of free memory, which are teeth in the curve
SURE = 1.96  # standard deviations on each side: 95 %


def describe(tally: "Tally", seconds: float) -> dict[str, Any]:
    times = [moment for moment, _ in tally.memory]
    totals = [sum(sizes.values()) for _, sizes in tally.memory]
    slope, low, high = find_slope(times, totals)
    half, minutes = len(totals) // 2, np.array_split(totals, max(1, round(seconds / 60)))
    (_, first), (_, middle), (_, last) = tally.memory[0], tally.memory[half], tally.memory[-1]
    return {
        "minutes": round(seconds / 60, 2), "answers": tally.answered, "routes": len(tally.asked),
        "hung_up": tally.hung_up, "wrong": len(tally.wrong), "first_wrong": tally.wrong[:10],
        "mib_first": round(totals[0], 1), "mib_half": round(totals[half], 1),
        "mib_last": round(totals[-1], 1), "mib_most": round(max(totals), 1),
        "processes_first_half_last": [[round(at.get(one, 0.0), 1) for at in (first, middle, last)] for one in last],
        "same_processes": first.keys() == last.keys(),
        "mib_by_minute": [round(float(np.median(minute)), 1) for minute in minutes],
        "slope_mib_a_minute": round(slope, 4), "slope_interval": [round(low, 4), round(high, 4)],
    }  # fmt: skip


def find_slope(times: list[float], totals: list[float]) -> tuple[float, float, float]:
    """MiB a minute in the second half, and between which slopes it lies with 95 %; endless where too little is seen."""
    half = len(times) // 2
    x, y = gather_blocks(np.array(times[half:]), np.array(totals[half:]))
    count = len(x)
    first, second = np.triu_indices(count, 1)
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first])) * 60
    if count < 4:
        return (float(np.median(slopes)) if len(slopes) else 0.0), -float("inf"), float("inf")
    reach = SURE * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, round((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, round((len(slopes) + reach) / 2))
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])


def gather_blocks(times: Any, totals: Any) -> tuple[Any, Any]:
    """The medians of each block of time."""
    numbers = ((times - times[0]) // BLOCK).astype(int) if len(times) else times
    blocks = [numbers == number for number in np.unique(numbers)]
    return np.array([times[b].mean() for b in blocks]), np.array([np.median(totals[b]) for b in blocks])


def tell_origin() -> dict[str, str]:
    """Where figures are from: the machine, the day, the commit and the command."""
    here = Path(__file__).parent
    said = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=here)
    words = ["tests/serving/soak.py", *sys.argv[1:]]
    shown = ["FILE" if place and words[place - 1] == "--out" else word for place, word in enumerate(words)]
    return {
        "about": f"{os.cpu_count()} CPU cores, torch {version('torch')}, {' '.join(platform.libc_ver())}",
        "date": str(date.today()),
        "commit": said.stdout.strip() or "unknown",
        "command": f"python {shlex.join(shown)}",
    }
