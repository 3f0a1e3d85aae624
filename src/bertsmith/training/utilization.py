"""How much of a device's arithmetic a run uses (MFU, model FLOPs utilization, Chowdhery et al. 2022, arXiv 2204.02311).

In: FLOP of a token, the device. Out: the share of its peak that so many tokens a second are. The peak of GPUs that are
named here is the one in their data sheets, dense, with sums in full precision; that of any other device is what it
reaches in a plain matrix product, measured once, so that there 100 % is a product and nothing else.
"""

import time
from dataclasses import dataclass
from typing import Any

import torch

from bertsmith.training.devices import HALF

# FLOP a second in bfloat16 (float16 is as fast) without sparsity, from NVIDIA's data sheets of these GPUs; where one
# names only the rate with sparsity, half of it. The first whose words are in the device's name counts.
PEAKS = {
    "H200": 989e12, "GH200": 989e12, "H100 PCIe": 756e12, "H100 NVL": 835e12, "H100": 989e12, "A100": 312e12,
    "A30": 165e12, "A40": 149.7e12, "A10": 125e12, "L40S": 362e12, "L4": 121e12,
}  # fmt: skip


@dataclass(frozen=True)
class Utilization:
    flops: float  # of a token, forward and backward, in matrix products
    peak: float  # FLOP a second of one device
    is_measured: bool  # in a plain product, for want of a data sheet
    devices: int = 1

    def rate(self, tokens: float, seconds: float) -> float:
        """Tokens a second of all devices, by those of the first."""
        return self.devices * tokens / max(seconds, 1e-9)

    def share(self, tokens: float, seconds: float) -> float:
        """Of the peak, by the tokens of one device."""
        return self.flops * tokens / max(seconds, 1e-9) / self.peak

    def tell_peak(self) -> str:
        """As in `989 TFLOP/s (data sheet)`."""
        source = "measured in a plain product" if self.is_measured else "data sheet"
        size, unit = (self.peak / 1e12, "TFLOP/s") if self.peak >= 1e12 else (self.peak / 1e9, "GFLOP/s")
        return f"{size:,.3g} {unit} ({source})"

    def as_facts(self, tokens: float, seconds: float) -> dict[str, Any]:
        """What a report says of a run's speed."""
        return {
            "tokens_per_second": self.rate(tokens, seconds), "seconds": seconds,
            "utilization": self.share(tokens, seconds), "peak": self.tell_peak(),
        }  # fmt: skip


def find_utilization(flops: float, device: torch.device, precision: str, devices: int = 1) -> Utilization:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    known = find_peak(name) if precision in HALF else None
    return Utilization(flops, known or measure_products(device, precision), known is None, devices)


def find_peak(name: str) -> float | None:
    """Of a GPU with this name, as its driver tells it; None where it is not known."""
    words = f" {name.replace('-', ' ')} "
    return next((peak for part, peak in PEAKS.items() if f" {part} " in words), None)


def measure_products(device: torch.device, precision: str) -> float:
    """FLOP a second of plain matrix products on this device."""
    kind = HALF.get(precision, torch.float32)
    size = 8192 if device.type == "cuda" else 768
    one, other = (torch.ones(size, size, dtype=kind, device=device) for _ in range(2))
    times = []
    for _ in range(5):
        begun = time.monotonic()
        (one @ other)[0, 0].item()  # waits for the device
        times.append(time.monotonic() - begun)
    return 2.0 * size**3 / max(min(times), 1e-9)
