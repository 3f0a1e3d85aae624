"""Looking inside a model, as Python: `bertsmith.inspect.attention(m, "the river bank").save("attention.html")`.

Each function takes a model that `bertsmith.load` gave and what is looked at, and returns a `Picture`: numbers, and
a file.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertsmith.ablating import ablate
    from bertsmith.inspection.ablation import ablate_answer
    from bertsmith.inspection.attention import attention
    from bertsmith.inspection.attribution import attribute
    from bertsmith.inspection.inputs import input
    from bertsmith.inspection.lens import lens
    from bertsmith.inspection.masks import compare_masks
    from bertsmith.inspection.nearest import nearest_uses
    from bertsmith.inspection.positions import positions
    from bertsmith.inspection.probing import probe
    from bertsmith.inspection.senses import senses
    from bertsmith.inspection.senses_scores import score_senses
    from bertsmith.inspection.step import step
    from bertsmith.inspection.uses import word_vectors

_HOMES: dict[str, str] = {
    "ablate": "bertsmith.ablating",
    "ablate_answer": "bertsmith.inspection.ablation",
    "attention": "bertsmith.inspection.attention",
    "attribute": "bertsmith.inspection.attribution",
    "compare_masks": "bertsmith.inspection.masks",
    "input": "bertsmith.inspection.inputs",
    "lens": "bertsmith.inspection.lens",
    "nearest_uses": "bertsmith.inspection.nearest",
    "positions": "bertsmith.inspection.positions",
    "probe": "bertsmith.inspection.probing",
    "score_senses": "bertsmith.inspection.senses_scores",
    "senses": "bertsmith.inspection.senses",
    "step": "bertsmith.inspection.step",
    "word_vectors": "bertsmith.inspection.uses",
}
__all__ = [
    "ablate",
    "ablate_answer",
    "attention",
    "attribute",
    "compare_masks",
    "input",
    "lens",
    "nearest_uses",
    "positions",
    "probe",
    "score_senses",
    "senses",
    "step",
    "word_vectors",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bertsmith.inspect' has no attribute {name!r}")
    from importlib import import_module

    from bertsmith.arguments import checked

    found = globals()[name] = checked()(getattr(import_module(_HOMES[name]), name))
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
