"""Recipes by name: which encoder, which questions, which settings; each the paper's own unless it says otherwise.

In: a recipe's name and what a person changes of it. Out: a `Recipe`. Nothing here imports torch: `--help` reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from bertsmith.errors import BertsmithError
from bertsmith.training.choices import suggest
from bertsmith.training.pretraining_settings import IDLE, Pretraining
from bertsmith.training.settings import check_types

Asks = Literal["masked", "masked+next", "masked+order", "replaced", "causal+masked", "distilled"]


@dataclass(frozen=True)
class Asking:
    """What is asked of the text."""

    asks: Asks = "masked"
    mask_rate: str = "0.15"  # "0.3:0.15": from the first to the second over the run
    whole_words: bool = False
    spans: bool = False  # hide runs of words (SpanBERT)
    static: bool = False  # hide the same of a row each time
    causal_share: float = 0.25  # causal+masked: of the run, that reads onward
    z_loss: float = 0.0
    teacher: str | None = None  # distilled: the folder of the model to learn from

    def __post_init__(self) -> None:
        check_types(self)
        self.rates()
        if not 0 < self.causal_share < 1:
            raise BertsmithError(f"causal_share is {self.causal_share}; it must be between 0 and 1.")
        if (self.asks == "distilled") != (self.teacher is not None):
            raise BertsmithError("a teacher is for asks=distilled, and that needs one; give both or none.")

    def rates(self) -> float | tuple[float, float]:
        try:
            found = [float(part) for part in self.mask_rate.split(":")]
        except ValueError:
            found = []
        if len(found) not in (1, 2) or not all(0 < rate < 1 for rate in found):
            raise BertsmithError(f'mask_rate is {self.mask_rate!r}; give a share as 0.15, or two as in "0.3:0.15".')
        return found[0] if len(found) == 1 else (found[0], found[1])


@dataclass(frozen=True)
class Shape:
    """What is changed of the preset's sizes."""

    preset: str | None = None
    depth: int | None = None
    width: int | None = None
    heads: int | None = None
    inner: int | None = None
    positions: int | None = None

    def __post_init__(self) -> None:
        check_types(self)
        for name, size in self.sizes().items():
            if size < 1:
                raise BertsmithError(f"{name} is {size}; it must be at least 1.")

    def sizes(self) -> dict[str, int]:
        found = {name: getattr(self, name) for name in ("depth", "width", "heads", "inner", "positions")}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Recipe:
    name: str
    preset: str
    sizes: Mapping[str, Any] = field(default_factory=dict)  # that the recipe changes of its preset
    changed: Mapping[str, int] = field(default_factory=dict)  # and a person of both
    asking: Asking = field(default_factory=Asking)
    training: Pretraining = field(default_factory=Pretraining)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        # 256 rows of 512 tokens, a tenth of the steps first at 128 (appendix A.2); here by tokens.
        Recipe(
            "bert", "bert-base", asking=Asking("masked+next"),
            training=Pretraining(rate=1e-4, tokens=131_072, lengths="128:0.9,512:0.1", eps=1e-6),
        ),
        Recipe(
            "roberta", "roberta-base", asking=Asking("masked"),
            training=Pretraining(rate=6e-4, warmup=0.048, tokens=4_194_304, lengths="512", beta2=0.98, eps=1e-6),
        ),
        # LAMB in the paper; AdamW at its rate for such batches.
        Recipe(
            "albert", "albert-base", asking=Asking("masked+order", spans=True),
            training=Pretraining(rate=1e-3, warmup=0.025, tokens=2_097_152, lengths="512", eps=1e-6),
        ),
        Recipe(
            "distilbert", "distilbert-base", asking=Asking("masked"),
            training=Pretraining(rate=5e-4, warmup=0.05, tokens=2_097_152, lengths="512", eps=1e-6),
        ),
        Recipe(
            "electra", "electra-small", asking=Asking("replaced"),
            training=Pretraining(rate=5e-4, warmup=0.01, tokens=16_384, lengths="128", eps=1e-6),
        ),
        Recipe(
            "modernbert", "modernbert-base", asking=Asking("masked", mask_rate="0.3"),
            training=Pretraining(
                rate=8e-4, warmup=0.02, schedule="trapezoid", tokens=524_288, lengths="1024", weight_decay=1e-5,
                beta2=0.98, eps=1e-6,
            ),
        ),
        # Ours: what others open (ModernBERT's parts, all layers global), Muon, falling masks, long rows at the end.
        Recipe(
            "smith", "modernbert-base",
            sizes={"depth": 8, "width": 640, "heads": 10, "inner": 1728, "positions": 512, "global_every": 1,
                   "window": 0, "theta": 10_000.0},
            asking=Asking("masked", mask_rate="0.3:0.15"),
            training=Pretraining(
                rate=2e-3, warmup=0.01, schedule="trapezoid", cooldown=0.5, weight_decay=0.05, beta2=0.98,
                optimizer="muon", tokens=131_072, first_tokens=65_536, ramp=0.4, lengths="128:0.9,512:0.1",
            ),
        ),
    )
}  # fmt: skip


KINDS = {each.name: kind for kind in (Pretraining, Asking, Shape) for each in fields(kind) if each.name not in IDLE}
WORDS = ("lengths", "mask_rate", "teacher")  # that may be given as a number, or a path, too


def refuse_idle(setting: str) -> None:
    """A name that is no setting of pretraining, though it may be one of fine-tuning."""
    if setting in IDLE:
        instead = f"; give {IDLE[setting]}" if IDLE[setting] else "; leave it out"
        raise BertsmithError(f"{setting} is a setting of fine-tuning and has no meaning in pretraining{instead}.")
    if setting not in KINDS:
        raise BertsmithError(f"{setting} is not a setting{suggest(setting, list(KINDS))}.")


def find_recipe(name: str, given: Mapping[str, Any]) -> Recipe:
    """A recipe with what was changed of it: settings of `Pretraining`, `Asking` and `Shape` by their names."""
    if not isinstance(name, str) or name not in RECIPES:
        raise BertsmithError(f"there is no recipe {name!r}; the recipes are {', '.join(RECIPES)}.")
    parts: dict[Any, dict[str, Any]] = {Pretraining: {}, Asking: {}, Shape: {}}
    for setting, value in given.items():
        refuse_idle(setting)
        parts[KINDS[setting]][setting] = str(value) if setting in WORDS and value is not None else value
    recipe, shape = RECIPES[name], Shape(**parts[Shape])
    sizes = {} if shape.preset else dict(recipe.sizes)
    changed = parts[Pretraining]
    if "tokens" in changed and "first_tokens" not in changed:
        changed["first_tokens"] = None  # the recipe's belong to its own size
    training = Pretraining(**{**vars(recipe.training), **changed})
    asking = Asking(**{**vars(recipe.asking), **parts[Asking]})
    return Recipe(name, shape.preset or recipe.preset, sizes, shape.sizes(), asking, training)
