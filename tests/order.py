"""Which tests begin first where several workers share them: what takes long, so that all workers end together.

`--dist worksteal` (as `make test` has it) gives each worker one stretch of the tests; whoever is done takes half of
what another still has, from its end. So what is long stands in front, and what is left in the end is short. A file
stays in one piece: what its tests share is made once.
"""

import os
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# The longest first: half a minute of traffic that leaves half a core free, then trainings and many processes.
LONGEST = (
    "serving/test_soak.py",
    "whole/test_readme.py",
    "whole/test_docs.py",
    "training/test_pretraining_fsdp.py",
    "whole/test_resume.py",
    "training/test_graphs.py",
    "training/test_compiled.py",
    "layers/test_kernels.py",
    "whole/test_many_benchmark.py",
    "whole/test_together.py",
    "whole/test_wheel.py",
    "whole/test_hostile.py",
    "whole/test_pretrain.py",
    "whole/test_real_weights.py",
)
# Their files start processes, servers and trainings; those of the others are quick.
LONG_FOLDERS = ("whole", "training", "serving", "cli")


def tell_rank(path: Path) -> int:
    """The lower, the earlier."""
    name = path.relative_to(TESTS).as_posix()
    if name in LONGEST:
        return LONGEST.index(name)
    folder = name.split("/")[0]
    return len(LONGEST) + (LONG_FOLDERS.index(folder) if folder in LONG_FOLDERS else len(LONG_FOLDERS))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process alone keeps the order of the folders."""
    missing = [name for name in LONGEST if not (TESTS / name).exists()]
    assert not missing, f"tests/order.py names files that are not there: {missing}"
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: tell_rank(item.path))
