"""Recipes by name: which encoder, which questions, which settings; each the paper's own unless it says otherwise.

In: a recipe's name and what a person changes of it. Out: a `Recipe`. Nothing here imports torch: `--help` reads it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.objectives.wording import TAUGHT, Stage, name_questions, read_asks
from bertsmith.training.choices import suggest
from bertsmith.training.pretraining_settings import IDLE, Pretraining
from bertsmith.training.settings import check_types

SMALL = {"depth": 4, "width": 128}  # of an encoder that learns something in minutes on a CPU
SMALL_STEP = 2048  # tokens
FEW_STEPS = 200  # fewer teach a schedule's warm-up and fall little; a plan by minutes says so


@dataclass(frozen=True)
class Asking:
    """What is asked of the text."""

    asks: str = "masked"  # objectives/wording.py: "masked+order*0.5", "causal:0.25,masked:0.75"
    mask_rate: str = "0.15"  # "0.3:0.15": from the first to the second over the run
    mask_replace: float = 0.8  # of the hidden tokens: become the mask
    random_replace: float = 0.1  # become any other; the rest stays as it is
    whole_words: bool = False
    spans: bool = False  # hide runs of words (SpanBERT)
    phrases: str | None = None  # a file of phrases to hide as a whole, one a line (ERNIE)
    static: bool = False  # hide the same of a row each time
    causal_share: float = 0.25  # causal+masked: of the run, that reads onward
    z_loss: float = 0.0
    generator_share: float = 0.25  # replaced: the generator's width, as a share of the network's, in whole heads
    replaced_weight: float = 50.0  # replaced: of the loss of telling them, beside the generator's
    stay_hidden: float = 0.0  # replaced: of the generator's places, those that the network fills itself
    teacher: str | None = None  # distilled, relations: the folder of the model to learn from
    temperature: float = 2.0  # distilled: softens both distributions
    distil_weights: str = "5,2,1"  # distilled: of the teacher's distribution, the hidden words, the states' angle
    distil_masked: bool = False  # distilled: distributions at the hidden words alone, not at all words

    def __post_init__(self) -> None:
        check_types(self)
        self.rates()
        self.losses_of_distillation()
        for name, high in (("causal_share", 1.0), ("generator_share", 1.0), ("temperature", math.inf)):
            if not 0 < getattr(self, name) < high and not (name == "generator_share" and self.generator_share == 1):
                between = "between 0 and 1" if name == "causal_share" else "above 0"
                wanted = "above 0 and at most 1" if name == "generator_share" else between
                raise BertsmithError(f"{name} is {getattr(self, name)}; it must be {wanted}.")
        for name in ("replaced_weight", "z_loss", "mask_replace", "random_replace"):
            if getattr(self, name) < 0:
                raise BertsmithError(f"{name} is {getattr(self, name)}; it must be at least 0.")
        if not 0 <= self.stay_hidden < 1:
            raise BertsmithError(f"stay_hidden is {self.stay_hidden}; it must be from 0 to below 1.")
        if self.mask_replace + self.random_replace > 1 + 1e-9:
            told = f"mask_replace and random_replace are {self.mask_replace:g} and {self.random_replace:g}"
            raise BertsmithError(f"{told}; together they must be at most 1.")
        taught = [name for name in name_questions(self.stages()) if name in TAUGHT]
        if taught and self.teacher is None:
            raise BertsmithError(f"asks is {self.asks!r}, and {taught[0]} needs a teacher; give its folder (teacher).")

    def stages(self) -> list[Stage]:
        """The questions, and for which part of the run they are asked."""
        return read_asks(self.asks, self.causal_share)

    def losses_of_distillation(self) -> tuple[float, float, float]:
        try:
            found = [float(part) for part in self.distil_weights.split(",")]
        except ValueError:
            found = []
        if len(found) != 3 or not all(0 <= weight < math.inf for weight in found) or not any(found):
            raise BertsmithError(
                f'distil_weights is {self.distil_weights!r}; give three numbers as in "5,2,1", of which some may be 0.'
            )
        return found[0], found[1], found[2]

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
    is_preset_chosen: bool = False  # by a person, who may have named the recipe's own


GENTLE_RATE, GENTLE_WARMUP = 1e-4, 0.06  # of weights that have learned before
GENTLE_STEP = 131_072  # tokens, at most: millions of them are for corpora of billions

RECIPES = {
    recipe.name: recipe
    for recipe in (
        # arXiv 1810.04805, appendix A.2: 256 rows of 512 tokens, nine tenths of a million steps with rows of 128, the
        # rate over 10,000 steps to 1e-4 and linearly down. Its data was masked ten times before training; here anew
        # each time, which within ten epochs is the same. eps and clipping are those of the first release.
        Recipe(
            "bert", "bert-base", asking=Asking("masked+next"),
            training=Pretraining(rate=1e-4, warmup=0.01, tokens=131_072, lengths="128:0.9,512:0.1", eps=1e-6),
        ),
        # arXiv 1907.11692, table 9: 8,192 rows of 512, 24,000 of 500,000 steps of warm-up, no clipping.
        Recipe(
            "roberta", "roberta-base", asking=Asking("masked"),
            training=Pretraining(
                rate=6e-4, warmup=0.048, tokens=4_194_304, lengths="512", beta2=0.98, eps=1e-6, clip=0.0,
            ),
        ),
        # arXiv 1909.11942, section 4.1: LAMB, 4,096 rows of 512, rate 0.00176, 125,000 steps, 3,125 of them warm-up (in
        # the first release). Its n-grams have at most three words; ours are SpanBERT's, of at most ten.
        Recipe(
            "albert", "albert-base", asking=Asking("masked+order", spans=True),
            training=Pretraining(
                rate=1.76e-3, warmup=0.025, tokens=2_097_152, lengths="512", optimizer="lamb", eps=1e-6,
            ),
        ),
        # arXiv 1910.01108, section 3: up to 4,000 rows a step; the rest as in the first release's train.py. With a
        # teacher it is distilled, without one the same student learns alone.
        Recipe(
            "distilbert", "distilbert-base", asking=Asking("masked"),
            training=Pretraining(
                rate=5e-4, warmup=0.05, tokens=2_097_152, lengths="512", eps=1e-6, weight_decay=0.0, clip=5.0,
            ),
        ),
        # arXiv 2003.10555, table 6, small: 128 rows of 128, 10,000 of a million steps of warm-up, a generator of a
        # quarter, its loss beside 50 times the other.
        Recipe(
            "electra", "electra-small", asking=Asking("replaced", generator_share=0.25, replaced_weight=50.0),
            training=Pretraining(rate=5e-4, warmup=0.01, tokens=16_384, lengths="128", eps=1e-6),
        ),
        # arXiv 2412.13663, section 2.2 and appendix A, base: rows of 1,024, of which a step holds 768 and after 50 of
        # 1,719 billion tokens 4,608; 3 billion of warm-up, 50 of fall. StableAdamW there, AdamW with clipping here.
        Recipe(
            "modernbert", "modernbert-base", asking=Asking("masked", mask_rate="0.3"),
            training=Pretraining(
                rate=8e-4, warmup=0.0017, schedule="trapezoid", cooldown=0.03, tokens=4_718_592, first_tokens=786_432,
                ramp=0.03, lengths="1024", weight_decay=1e-5, beta2=0.98, eps=1e-6,
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
WORDS = ("lengths", "mask_rate", "teacher", "phrases", "distil_weights")  # may be a number or a path


def refuse_idle(setting: str) -> None:
    """A name that is no setting of pretraining, though it may be one of fine-tuning."""
    if setting in IDLE:
        instead = f"; give {IDLE[setting]}" if IDLE[setting] else "; leave it out"
        raise BertsmithError(f"{setting} is a setting of fine-tuning and has no meaning in pretraining{instead}.")
    if setting not in KINDS:
        raise BertsmithError(f"{setting} is not a setting{suggest(setting, list(KINDS))}")


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
    if parts[Asking].get("teacher") is not None:
        parts[Asking].setdefault("asks", "distilled")  # what else would it be for
    asking = Asking(**{**vars(recipe.asking), **parts[Asking]})
    preset, is_chosen = shape.preset or recipe.preset, shape.preset is not None
    return Recipe(name, preset, sizes, shape.sizes(), asking, training, is_chosen)


def fit_to_cpu(name: str, given: Mapping[str, Any], is_fresh: bool) -> dict[str, int]:
    """What a CPU can do of a recipe in some minutes, where nobody said it otherwise: a tiny encoder, small steps."""
    chosen = find_recipe(name, given)
    is_sized = chosen.is_preset_chosen or any(name != "positions" for name in chosen.changed)
    found = dict(SMALL) if is_fresh and not is_sized else {}
    if given.get("tokens") is None:
        found["tokens"] = max(SMALL_STEP, chosen.training.longest, given.get("first_tokens") or 0)
    return found


def fit_to_trained(name: str, given: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """What of a recipe would not suit an encoder that goes on learning, where nobody said it: rows that are longer than
    it reads, steps that a corpus of one's own has few of, and a rate for fresh weights, which undoes within a step or
    two what others have learned. LAMB's is a share of the weights' own size, and stays.
    """
    sized = ("tokens", "first_tokens", "pass_tokens")  # they must hold a row, and rows may become shorter here
    training = find_recipe(name, {key: value for key, value in given.items() if key not in sized}).training
    found: dict[str, Any] = {}
    if given.get("lengths") is None and training.longest > limit:
        shares: dict[int, float] = {}
        for phase in training.phases():
            length = min(phase.length, limit)
            shares[length] = shares.get(length, 0.0) + phase.share
        parts = [f"{length}:{share:g}" for length, share in shares.items()]
        found["lengths"] = ",".join(parts) if len(parts) > 1 else str(next(iter(shares)))
    if given.get("rate") is None and training.optimizer != "lamb":
        found["rate"] = min(training.peak, GENTLE_RATE)
    if given.get("warmup") is None:
        found["warmup"] = max(training.warmup, GENTLE_WARMUP)
    if all(given.get(name) is None for name in sized) and training.tokens > GENTLE_STEP:
        found["tokens"] = GENTLE_STEP
    return found
