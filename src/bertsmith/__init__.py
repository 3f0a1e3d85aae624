"""bertsmith: forge your own BERT.

    m = bertsmith.load("path/to/folder")
    m.fill("Paris is the [MASK] of France.")
    m.embed(["a river bank", "a savings bank"])

    bertsmith.finetune("classify", train="reviews.csv", out="my-model")

Names are imported when first used, so that `import bertsmith` and `bertsmith --help` stay light.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertsmith.benchmarking import benchmark
    from bertsmith.checking import check
    from bertsmith.errors import BertsmithError
    from bertsmith.evaluating import evaluate
    from bertsmith.finetuning import finetune
    from bertsmith.loading import load
    from bertsmith.model import Model
    from bertsmith.models.presets import models_table
    from bertsmith.searching import index
    from bertsmith.sweeping import sweep
    from bertsmith.together import finetune_together

__version__ = "0.1.0"
__all__ = [
    "BertsmithError", "Model", "benchmark", "check", "evaluate", "finetune", "finetune_together", "index", "load",
    "models_table", "sweep",
]  # fmt: skip

_HOMES = {
    "BertsmithError": "bertsmith.errors",
    "Model": "bertsmith.model",
    "benchmark": "bertsmith.benchmarking",
    "check": "bertsmith.checking",
    "evaluate": "bertsmith.evaluating",
    "finetune": "bertsmith.finetuning",
    "finetune_together": "bertsmith.together",
    "index": "bertsmith.searching",
    "load": "bertsmith.loading",
    "models_table": "bertsmith.models.presets",
    "sweep": "bertsmith.sweeping",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bertsmith' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
