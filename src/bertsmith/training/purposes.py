"""What each setting of pretraining is for, so that one which nothing in a run reads is refused, not ignored.

In: what a person gave, the recipe it became, the model to go on with. Nothing here imports torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.objectives.wording import TAUGHT, is_onward_first, name_questions, read_asks
from bertsmith.training.recipes import KINDS, Recipe

Values = Mapping[str, Any]  # of all settings of a run, and the model that it goes on with


@dataclass(frozen=True)
class Purpose:
    """What reads a setting, where something else decides whether it is there."""

    what: str
    decider: str  # the setting that decides
    instead: str  # what else a person may do, behind "leave it out, or"
    is_there: Callable[[Values], bool]


def _choice(decider: str, value: str) -> Purpose:
    return Purpose(f"{decider} {value}", decider, f"give {decider} {value}", lambda values: values[decider] == value)


def _questions(*names: str) -> Purpose:
    words = " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
    return Purpose(words, "asks", f"ask for {'one of them' if len(names) > 1 else 'that'} (asks)",
                   lambda values: bool({*names} & _asked(values)))  # fmt: skip


def _asked(values: Values) -> set[str]:
    return set(name_questions(read_asks(values["asks"])))


def _weight(place: int, what: str, *others: str) -> Purpose:
    """A loss of distillation that may have no weight; `others` are questions that read the setting anyway."""
    return Purpose(
        what, "distil_weights", "give those a weight",
        lambda values: bool({*others} & _asked(values)) or float(values["distil_weights"].split(",")[place]) > 0,
    )  # fmt: skip


FRESH = Purpose("a fresh encoder", "model", "the model", lambda values: values["model"] is None)
HIDING = _questions("masked", "replaced", "distilled")
DISTILLED, REPLACED = _questions("distilled"), _questions("replaced")
SOFT = _weight(0, "the teacher's distributions")

# Setting -> all that must be there for it to be read; nothing: every run reads it. How a machine does its work
# (compile, deterministic, spread) is no matter of the recipe: one file of settings serves a laptop and a cluster.
PURPOSES: dict[str, tuple[Purpose, ...]] = {
    **dict.fromkeys(("asks", "lengths", "tokens", "pass_tokens", "max_steps", "seed", "dropout"), ()),
    **dict.fromkeys(("rate", "schedule", "warmup", "optimizer", "weight_decay", "beta1", "beta2", "eps", "clip"), ()),
    **dict.fromkeys(("layer_decay", "embedding_rate", "average", "guard"), ()),
    **dict.fromkeys(("evaluate_every", "patience", "save_minutes", "log_every"), ()),
    **dict.fromkeys(("precision", "recompute", "deterministic", "spread", "compile"), ()),
    **dict.fromkeys(("preset", "depth", "width", "heads", "inner", "positions", "zero_outputs"), (FRESH,)),
    **dict.fromkeys(("mask_rate", "whole_words", "spans", "phrases", "static"), (HIDING,)),
    # The generator's places have shares of their own, those of ELECTRA's release.
    **dict.fromkeys(("mask_replace", "random_replace"), (_questions("masked", "distilled"),)),
    "z_loss": (
        _questions("masked", "causal", "replaced", "distilled"),
        _weight(1, "the hidden words", "masked", "causal", "replaced"),
    ),
    "causal_share": (
        Purpose("asks causal+masked", "asks", "ask for that (asks)", lambda values: is_onward_first(values["asks"])),
    ),
    **dict.fromkeys(("generator_share", "replaced_weight", "stay_hidden"), (REPLACED,)),
    "teacher": (_questions(*TAUGHT),),
    "distil_weights": (DISTILLED,),
    **dict.fromkeys(("temperature", "distil_masked"), (DISTILLED, SOFT)),
    "head_rate": (_questions("masked", "next", "order", "causal", "replaced", "distilled"),),
    **dict.fromkeys(("momentum", "adam_rate"), (_choice("optimizer", "muon"),)),
    "cooldown": (_choice("schedule", "trapezoid"),),
    "first_tokens": (
        Purpose("steps that grow over a part of the run", "ramp", "say over which share (ramp, as 0.4)",
                lambda values: values["ramp"] > 0),
    ),
    "ramp": (
        Purpose("steps that grow", "first_tokens", "give the size of the first one (first_tokens)",
                lambda values: values["first_tokens"] is not None),
    ),
    "epochs": (
        Purpose("a run whose steps are not counted", "max_steps", "max_steps",
                lambda values: values["max_steps"] is None),
    ),
}  # fmt: skip


def find_missing(name: str, values: Values) -> Purpose | None:
    """What would read a setting and is not there; None: it is read."""
    return next((purpose for purpose in PURPOSES.get(name, ()) if not purpose.is_there(values)), None)


def refuse_unread(given: Mapping[str, Any], recipe: Recipe, model: Any = None) -> None:
    """What a person gave (never a recipe's own) and this run would ignore; off is what an idle switch is anyway."""
    values = {**vars(recipe.training), **vars(recipe.asking), "model": None if model is None else str(model)}
    for name, value in given.items():
        default = KINDS[name].__dataclass_fields__[name].default
        missing = find_missing(name, values)
        if missing is not None and (value or default):
            found = values[missing.decider]
            told = f"{missing.decider} is {'not given' if found is None else repr(found)}"
            raise BertsmithError(f"{name} is for {missing.what}, and {told}; leave it out, or {missing.instead}.")
