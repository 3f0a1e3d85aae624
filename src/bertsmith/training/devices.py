"""Where training runs: the processes of `torchrun`, the precision, chance. Only this file knows torch.distributed."""

import atexit
import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network

CPU = torch.device("cpu")
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


def choose_precision(asked: str, device: torch.device) -> str:
    """`auto` is bf16 where a GPU computes in it, else full precision."""
    if asked == "auto":
        return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    if asked == "fp16" and device.type != "cuda":
        raise BertsmithError("precision fp16 needs a CUDA device; use bf16 or fp32 here.")
    return asked


def cast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Products in half precision, sums and weights in full; weights are cast anew each time, as recording asks."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, HALF[precision], cache_enabled=False)


def peak_memory(device: torch.device) -> int | None:
    """Bytes: this process's on a CPU, what torch took on a GPU; None where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:  # what getrusage tells of a process begins with what the one had that started it
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:  # Windows has none
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, the others KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def seed_of(*numbers: int) -> int:
    """A seed for these numbers that has nothing to do with that of their neighbours."""
    digest = hashlib.blake2b(",".join(map(str, numbers)).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big")


@dataclass(frozen=True)
class Ranks:
    """The processes that train together; alone, nothing is sent."""

    rank: int = 0
    count: int = 1
    device: torch.device = CPU

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Each tensor becomes its sum over all processes: one message in a fixed order, so resumed runs add alike.

        torch's own DDP would overlap sending with the backward pass, but rebuilds its messages after the first step of
        every process, and with more than two of them rounds another way after a restart.
        """
        if self.count == 1 or not tensors:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        torch._foreach_copy_(list(tensors), [part.view_as(t) for part, t in zip(parts, tensors, strict=True)])

    def total(self, counts: Mapping[str, float]) -> dict[str, float]:
        """The sum of each count over all processes, which must name the same ones."""
        if self.count == 1:
            return dict(counts)
        values = torch.tensor([counts[name] for name in sorted(counts)], dtype=torch.float64, device=self.device)
        dist.all_reduce(values)
        return dict(zip(sorted(counts), values.tolist(), strict=True))

    def most(self, number: int) -> int:
        """The largest of the processes' numbers."""
        if self.count == 1:
            return number
        value = torch.tensor([float(number)], device=self.device)
        dist.all_reduce(value, dist.ReduceOp.MAX)
        return int(value.item())

    def first_says(self, flag: bool) -> bool:
        """What the first process thinks, everywhere."""
        if self.count == 1:
            return flag
        said = torch.tensor([float(flag)], device=self.device)
        dist.broadcast(said, 0)
        return bool(said.item())

    def wait(self) -> None:
        if self.count > 1:
            dist.barrier()


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """Inside, a GPU adds in the same order each time; where torch has no kernel that does, it says so."""
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the first product is computed
    memory: Any = torch.utils.deterministic
    before, memory.fill_uninitialized_memory = memory.fill_uninitialized_memory, False  # nothing reads it unwritten
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        memory.fill_uninitialized_memory = before


@contextmanager
def joined(device: torch.device, deterministic: bool = False) -> Iterator[Ranks]:
    """The processes that `torchrun` started, or this one alone."""
    with repeatable(device) if deterministic else nullcontext():
        yield from _join(device)


def _join(device: torch.device) -> Iterator[Ranks]:
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Ranks(device=device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if not dist.is_initialized():  # once a process: a second group would meet what the first left in torchrun's store
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        atexit.register(_leave)
    yield Ranks(dist.get_rank(), count, device)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def leave(status: int = 0) -> NoReturn:
    """End one of several processes at once, when all it had to do is written.

    Sharded tensors are kept in the library's caches and keep its threads alive: one that lets go of a message while
    the interpreter takes itself down aborts the process, and `torchrun` calls a finished run a failure.
    """
    _leave()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def shard(network: Network, device: torch.device) -> None:
    """FSDP2: every process keeps its part of the weights and of the optimizer's state.

    Networks inside the network (a generator) are cut up too. All that is no block, theirs included, is one group with
    what they share: it is put together when any of them reads, stays so while heads score, in as many parts as they
    like, and its gradients are sent once, at the end of the backward pass.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    # Hidden states are a view of what the last block gave; nobody writes into them.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    inner = {name: part for name, part in network.named_children() if isinstance(part, Network)}
    for each in (network, *inner.values()):
        for block in each.blocks:
            fully_shard(block, mesh=mesh)
    fully_shard(network, mesh=mesh, reshard_after_forward=False)
    for name, part in inner.items():
        # Sharding prepares for methods of the network alone: one of them calls the part's, and the part calls it.
        through = f"forward_{name}"
        setattr(network, through, part.forward)
        register_fsdp_forward_method(network, through)
        part.forward = getattr(network, through)  # type: ignore[method-assign]
    plain = network.score
    register_fsdp_forward_method(network, "score")
    network.score = partial(_score, plain, network.score)  # type: ignore[method-assign]


def _score(
    plain: Callable[..., Tensor], watched: Callable[..., Tensor], hidden: Tensor, batch: Batch, head: str,
    at: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A head's scores. Sharding learns of the backward pass from the hidden states, or where these learn nothing
    (a frozen encoder) from the scores; not from both, or it would send gradients each time a head is asked, and
    processes that ask another number of times would wait for each other without end.
    """
    return (plain if hidden.requires_grad else watched)(hidden, batch, head, at)


def whole(tensor: Tensor) -> Tensor:
    """A tensor's all, wherever its parts are; all processes must ask together."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def part_like(tensor: Tensor, model: Tensor) -> Tensor:
    """This process's part of a whole tensor, laid out as `model` is."""
    if not hasattr(model, "full_tensor"):
        return tensor.to(model.device)
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor.to(model.device), model.device_mesh, model.placements)  # type: ignore[attr-defined]


def part_of(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor, which may be changed in place; all of it where nothing is cut up."""
    found: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return found


def share_out(matrices: Tensor, make: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
    """`make` of a stack of matrices, (n, rows, columns) -> the same shape; each process makes its share for all.

    Every process gives all of the matrices or, where weights like `like` are cut up, its rows of each, and gets the
    same of what was made: the same numbers everywhere, for a matrix is made by one process.
    """
    if hasattr(like, "full_tensor"):
        return _share_rows(matrices, make, like)
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    if ranks == 1:
        return make(matrices)
    count, each = len(matrices), -(-len(matrices) // ranks)
    first = dist.get_rank() * each
    mine = matrices[first : first + each]
    made = make(F.pad(mine, (0, 0, 0, 0, 0, each - len(mine))))  # a message has one size everywhere
    gathered = made.new_empty(ranks, *made.shape)
    dist.all_gather(list(gathered.unbind()), made.contiguous())
    return gathered.flatten(0, 1)[:count]


def _share_rows(parts: Tensor, make: Callable[[Tensor], Tensor], like: Any) -> Tensor:
    """Each process gets all rows of its share of the matrices, and sends back to each the rows that it keeps."""
    group, (rows, columns) = like.device_mesh.get_group(), like.shape
    ranks, (count, own, _) = group.size(), parts.shape
    each, high = -(-count // ranks), -(-rows // ranks)  # matrices and rows of a process, the last may have fewer
    parts = F.pad(parts, (0, 0, 0, high - own, 0, ranks * each - count))
    held = torch.empty_like(parts)
    dist.all_to_all_single(held, parts, group=group)
    held = held.view(ranks, each, high, columns).transpose(0, 1).reshape(each, ranks * high, columns)
    made = F.pad(make(held[:, :rows]), (0, 0, 0, ranks * high - rows))
    sent = made.view(each, ranks, high, columns).transpose(0, 1).contiguous()
    back = torch.empty_like(sent)
    dist.all_to_all_single(back, sent, group=group)
    return back.flatten(0, 1)[:count, :own]


class whole_weights:
    """Inside, the network's parameters are plain whole tensors, even where each process holds a part of them."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.parts: dict[str, Any] = {}

    def __enter__(self) -> None:
        for name, parameter in self.network.named_parameters():
            if hasattr(parameter, "full_tensor"):
                self.parts[name] = parameter
        for name, parameter in self.parts.items():
            _put(self.network, name, nn.Parameter(whole(parameter), requires_grad=False))

    def __exit__(self, *_: object) -> None:
        for name, parameter in self.parts.items():
            _put(self.network, name, parameter)


def _put(network: Network, name: str, parameter: Any) -> None:
    module, _, leaf = name.rpartition(".")
    network.get_submodule(module)._parameters[leaf] = parameter
