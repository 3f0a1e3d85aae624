"""The kernels of a network made ready in the background, while torch's compiler is still being imported.

In: what the network is, and the lengths of the rows it will read. Each kernel is called once on a few tokens of zeros,
which compiles it; the passes find it compiled. Without this they would be compiled one by one, each when a pass first
comes to it. Nothing is lost when one fails: the pass that needs it will say so. That one did is kept in `failures`.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cache
from threading import Thread
from typing import Any

import torch

from bertsmith.layers.activation import KERNELS
from bertsmith.layers.attention import has_kernels
from bertsmith.layers.config import Config

Calls = list[Callable[[], Any]]
ROWS = 16  # of the products that an activation reads

failures: list[Exception] = []  # so that a check can tell a start that was made ready from one that never was


def warm(config: Config, lengths: Iterable[int], device: torch.device, dtype: torch.dtype) -> list[Thread]:
    """Begin, and say who is at it; what was begun before is not begun again. `lengths` as in `Batch.reach`."""
    return _begin(config, tuple(sorted(set(lengths))), device, dtype)


@cache
def _begin(config: Config, lengths: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> list[Thread]:
    try:
        calls = list_calls(config, lengths, device, dtype)
    except ImportError:  # no Triton, as on Windows
        return []
    threads = [Thread(target=_try, args=(call, device)) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def _try(call: Callable[[], Any], device: torch.device) -> None:
    try:
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():  # a thread begins with the first
            call()
    except Exception as failed:  # a pass that calls it will fail in the same way, where somebody hears of it
        failures.append(failed)


def list_calls(config: Config, lengths: Iterable[int], device: torch.device, dtype: torch.dtype) -> Calls:
    def zeros(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=kind, device=device)

    calls = [call for length in lengths for call in _list_attention(config, length, device, zeros)]
    return [*calls, *_list_activation(config, zeros)]


def _list_attention(config: Config, length: int, device: torch.device, zeros: Callable[..., torch.Tensor]) -> Calls:
    from bertsmith.layers import packed_attention  # imports Triton, which comes with torch for CUDA

    width, size = config.width, config.width // config.heads
    if not has_kernels(size, device):
        return []
    qkv, near, sums = zeros(length, 3 * width), zeros(length, width), zeros(length, config.heads, kind=torch.float32)
    table = zeros(length, size // 2, kind=torch.float16) if config.position == "rotary" else None  # as Network has them
    bounds = zeros(2, kind=torch.int32)
    bounds[1] = length
    calls: Calls = []
    for window in {config.window if config.is_local(layer) else 0 for layer in range(config.depth)}:
        rows = (bounds, zeros(length, 0, kind=torch.int64), table, table, None, config.heads, window, False, 0.0)
        calls.append(lambda rows=rows: packed_attention.attend(qkv, *rows))  # type: ignore[misc]
        calls.append(lambda rows=rows: packed_attention.attend_back(near, near, sums, qkv, *rows))  # type: ignore[misc]
    return calls


def _list_activation(config: Config, zeros: Callable[..., torch.Tensor]) -> Calls:
    from bertsmith.layers import gating

    kind, inner = config.activation, config.inner
    product, grad, bias = zeros(ROWS, inner * (2 if config.gated else 1)), zeros(ROWS, inner), zeros(inner)
    if kind not in KERNELS or not (config.gated or config.bias):
        return []
    if config.gated:
        return [lambda: gating.gate_values(product, kind), lambda: gating.gate_grads(grad, product, kind)]
    return [lambda: gating.activate_values(product, bias, kind),
            lambda: gating.activate_grads(grad, product, bias, kind)]  # fmt: skip
