"""bertsmith: forge your own BERT.

    m = bertsmith.load("path/to/folder")
    m.fill("Paris is the [MASK] of France.")
    m.embed(["a river bank", "a savings bank"])

    bertsmith.finetune("classify", train="reviews.csv", out="my-model")

Names are imported when first used, so that `import bertsmith` and `bertsmith --help` stay light.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertsmith import inspect
    from bertsmith.benchmarking import benchmark
    from bertsmith.bulk import predict_file
    from bertsmith.checking import check
    from bertsmith.corpora import build_corpus, corpus_info
    from bertsmith.errors import BertsmithError
    from bertsmith.evaluating import evaluate
    from bertsmith.exporting import export_model
    from bertsmith.extending import extend_tokenizer
    from bertsmith.finetuning import finetune
    from bertsmith.loading import load
    from bertsmith.model import Model
    from bertsmith.models.presets import models_table
    from bertsmith.pretraining import pretrain
    from bertsmith.searching import index
    from bertsmith.sweeping import sweep
    from bertsmith.together import finetune_together
    from bertsmith.tokenizing import train_tokenizer
    from bertsmith.unlabelled import evaluate_blimp, evaluate_masked, evaluate_perplexity, pseudo_likelihood

__version__ = "0.1.0"
__all__ = [
    "BertsmithError", "Model", "benchmark", "build_corpus", "check", "corpus_info", "evaluate",
    "evaluate_blimp", "evaluate_masked", "evaluate_perplexity", "export_model", "extend_tokenizer", "finetune",
    "finetune_together", "index", "inspect", "load", "models_table", "predict_file", "pretrain", "pseudo_likelihood",
    "sweep", "train_tokenizer",
]  # fmt: skip

_HOMES = {
    "BertsmithError": "bertsmith.errors",
    "Model": "bertsmith.model",
    "benchmark": "bertsmith.benchmarking",
    "build_corpus": "bertsmith.corpora",
    "check": "bertsmith.checking",
    "corpus_info": "bertsmith.corpora",
    "evaluate": "bertsmith.evaluating",
    "evaluate_blimp": "bertsmith.unlabelled",
    "evaluate_masked": "bertsmith.unlabelled",
    "evaluate_perplexity": "bertsmith.unlabelled",
    "export_model": "bertsmith.exporting",
    "extend_tokenizer": "bertsmith.extending",
    "finetune": "bertsmith.finetuning",
    "finetune_together": "bertsmith.together",
    "index": "bertsmith.searching",
    "load": "bertsmith.loading",
    "models_table": "bertsmith.models.presets",
    "predict_file": "bertsmith.bulk",
    "pretrain": "bertsmith.pretraining",
    "pseudo_likelihood": "bertsmith.unlabelled",
    "sweep": "bertsmith.sweeping",
    "train_tokenizer": "bertsmith.tokenizing",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "inspect":  # a module, whose functions are imported when first used
        return import_module("bertsmith.inspect")
    if name not in _HOMES:
        raise AttributeError(f"module 'bertsmith' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
