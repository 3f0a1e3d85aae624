"""Their tensor names and ours, total both ways.

A family's table maps our module to theirs. `*` stands for the layer number, `{}` for the prefix; a row that names a
module covers its `.weight` and `.bias`; a tuple means that ours is theirs stacked. Read one way it loads, the other way
it saves.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.models.family import Family, FamilyHead
from bertsmith.models.network import Network

Names = dict[str, tuple[str, ...]]  # our parameter -> the tensors of theirs that are stacked in it


def names_of(family: Family, heads: Mapping[str, FamilyHead], parameters: Iterable[str]) -> Names:
    """Their names for each of our parameters; one without a row is an error in the family's table."""
    table: dict[str, tuple[str, ...]] = {}
    for ours, theirs in family.names.items():
        parts = (theirs,) if isinstance(theirs, str) else theirs
        table[ours] = tuple(f"{family.prefix}.{part}" for part in parts)
    for name, head in heads.items():
        for ours, their in head.names.items():
            table[f"heads.{name}.{ours}"] = (their.replace("{}", family.prefix),)
    return {parameter: _look_up(table, parameter) for parameter in parameters}


def _look_up(table: Mapping[str, tuple[str, ...]], parameter: str) -> tuple[str, ...]:
    layer = re.match(r"blocks\.(\d+)\.", parameter)
    number = layer[1] if layer else ""
    pattern = parameter.replace(f"blocks.{number}.", "blocks.*.", 1) if layer else parameter
    module, _, leaf = pattern.rpartition(".")
    if pattern in table:
        found = table[pattern]
    elif module in table:
        found = tuple(f"{name}.{leaf}" for name in table[module])
    else:
        raise KeyError(f"the name table has no row for {parameter}")
    return tuple(name.replace("*", number) for name in found)


def canonical(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Their tensors under today's names: norms once called gamma and beta, bare encoders given their prefix."""
    found = {}
    bare = not any(name.startswith(prefix + ".") for name in tensors)
    for name, tensor in tensors.items():
        name = re.sub(r"(?i)(norm)\.gamma$", r"\1.weight", name)
        name = re.sub(r"(?i)(norm)\.beta$", r"\1.bias", name)
        found[f"{prefix}.{name}" if bare else name] = tensor
    return found


def adopt(tensors: dict[str, Tensor], heads: Iterable[FamilyHead]) -> None:
    """Bring the tensors of a head that is there in another form to the names that are read."""
    for head in heads:
        for ours, other in head.others.items():
            for leaf in ("", ".weight", ".bias"):
                if other + leaf in tensors and head.names[ours] + leaf not in tensors:
                    tensors[head.names[ours] + leaf] = tensors.pop(other + leaf)


def fill(network: Network, names: Names, tensors: Mapping[str, Tensor], dtype: torch.dtype) -> None:
    """Give every parameter its tensor; the network may stand on the meta device."""
    _check(network, names, tensors)
    state = {}
    for ours, theirs in names.items():
        parts = [tensors[name].to(dtype) for name in theirs]
        state[ours] = parts[0].contiguous() if len(parts) == 1 else torch.cat(parts)
    network.load_state_dict(state, strict=True, assign=True)


def _check(network: Network, names: Names, tensors: Mapping[str, Tensor]) -> None:
    missing = [name for theirs in names.values() for name in theirs if name not in tensors]
    if missing:
        raise BertsmithError(f"the weights lack {_few(missing)}; the file is incomplete or not what config.json says.")
    for ours, theirs in names.items():
        shape = list(network.tensor(ours).shape)
        shape[0] //= len(theirs)
        for name in theirs:
            if list(tensors[name].shape) != shape:
                raise BertsmithError(
                    f"the tensor {name} has the shape {list(tensors[name].shape)}, but config.json asks for {shape}."
                )
            if not tensors[name].is_floating_point():
                raise BertsmithError(f"the tensor {name} holds {tensors[name].dtype}, not floating-point numbers.")


def give(network: Network, names: Names) -> dict[str, Tensor]:
    """Our parameters under their names: the table read backwards."""
    found = {}
    for ours, theirs in names.items():
        for name, part in zip(theirs, network.tensor(ours).detach().chunk(len(theirs)), strict=True):
            found[name] = part.contiguous()
    return found


def surplus(family: Family, names: Names, tensors: Iterable[str]) -> list[str]:
    """Their tensors that nothing here uses and no rule explains."""
    used = {name for theirs in names.values() for name in theirs}
    rules = [pattern.replace("{}", family.prefix) for pattern in family.ignored]
    return sorted(n for n in tensors if n not in used and not any(fnmatchcase(n, rule) for rule in rules))


def _few(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
