"""The kernels of a network made ready in the background, while torch's compiler is still being imported.

In: what the network is, and the lengths of the rows it will read. Each kernel is called once on a few tokens of zeros,
which compiles it; the passes find it compiled. Without this they would be compiled one by one, each when a pass first
comes to it. Nothing waits here and nothing is lost when one fails: the pass that needs it will say so.
"""

from collections.abc import Callable, Iterable
from functools import cache
from threading import Thread
from typing import Any

import torch

from bertsmith.layers.activation import KERNELS
from bertsmith.layers.config import Config

ROWS = 16  # of the products that an activation reads


def warm(config: Config, lengths: Iterable[int], device: torch.device, dtype: torch.dtype) -> None:
    """Begin; what was begun before is left alone. `lengths` as in `Batch.reach`: powers of two."""
    for key in sorted(set(lengths)):
        _begin(config, key, device, dtype)


@cache
def _begin(config: Config, length: int, device: torch.device, dtype: torch.dtype) -> list[Thread]:
    try:
        calls = _list_calls(config, length, device, dtype)
    except ImportError:  # no Triton, as on Windows
        return []
    threads = [Thread(target=_try, args=(call, device)) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def _try(call: Callable[[], Any], device: torch.device) -> None:
    try:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        call()
    except Exception:
        return  # a pass that calls it will fail in the same way, where somebody hears of it


def _list_calls(config: Config, length: int, device: torch.device, dtype: torch.dtype) -> list[Callable[[], Any]]:
    from bertsmith.layers import gating, packed_attention  # import Triton, which comes with torch for CUDA

    def zeros(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=kind, device=device)

    width, inner, size = config.width, config.inner, config.width // config.heads
    qkv, near, sums = zeros(length, 3 * width), zeros(length, width), zeros(length, config.heads, kind=torch.float32)
    bounds = torch.tensor([0, length], dtype=torch.int32, device=device)
    is_rotary = config.position == "rotary"
    table = zeros(length, size // 2, kind=torch.float16) if is_rotary else None  # as Network makes them
    rows = (bounds, zeros(length, 0, kind=torch.int64), table, table, None, config.heads)
    calls: list[Callable[[], Any]] = []
    for window in {config.window if config.is_local(layer) else 0 for layer in range(config.depth)}:
        facts = (*rows, window, False, 0.0)
        calls.append(lambda facts=facts: packed_attention.attend(qkv, *facts))  # type: ignore[misc]
        calls.append(lambda facts=facts: packed_attention.attend_back(near, near, sums, qkv, *facts))  # type: ignore[misc]
    kind, product = config.activation, zeros(ROWS, inner * (2 if config.gated else 1))
    if kind not in KERNELS:
        return calls
    grad, bias = zeros(ROWS, inner), zeros(inner)
    if config.gated:
        calls += [lambda: gating.gate_values(product, kind), lambda: gating.gate_grads(grad, product, kind)]
    elif config.bias:
        calls.append(lambda: gating.activate_values(product, bias, kind))
        calls.append(lambda: gating.activate_grads(grad, product, bias, kind))
    return calls
