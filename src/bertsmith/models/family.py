"""What a family file holds: how the other side names the settings, the tensors and the heads of one kind of model.

A `Family` is data. `models/bert.py` is the fullest one; the others say only where they differ from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config, Drops, HeadShape

Settings = dict[str, Any]  # the content of a config.json

# Names of activations in config.json files, and ours.
ACTIVATION_NAMES = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
# What may be asked of two texts, and what the two outputs of the head for that then mean.
FOLLOWS = {"next": ("follows", "random"), "order": ("follows", "swapped")}
PAIRS = "pairs"  # in config.json: which of them a pretraining here asked


@dataclass(frozen=True)
class FamilyHead:
    """A head as a family builds it: the tail of its class name, their name of each of our modules, and its shape."""

    suffix: str  # "ForMaskedLM"; "" for a part of the bare model
    names: Mapping[str, str]  # our module in the head (`dense`, `norm`, `out`) -> theirs; {} stands for the prefix
    reads: Literal["tokens", "first", "mean"] = "tokens"
    dense: Literal["", "width", "embed_width"] = ""
    activation: str = ""  # "": the encoder's
    norm: bool = False
    bias: bool = True
    outputs: Literal["labels", "vocabulary", ""] = "labels"
    labels: tuple[str, ...] = ()  # what the outputs mean, where the family fixes it
    drops: Drops = ""  # which share of the config training drops of what the output layer reads
    others: Mapping[str, str] = field(default_factory=dict)  # as `names`, in files of another form

    def shape(self, config: Config, labels: int) -> HeadShape:
        return HeadShape(
            reads=self.reads,
            outputs={"labels": labels, "vocabulary": config.vocabulary, "": 0}[self.outputs],
            dense=getattr(config, self.dense) if self.dense else 0,
            activation=self.activation or config.activation,
            norm=self.norm,
            bias=self.bias,
            tied=self.outputs == "vocabulary" and config.tied,
            drops=self.drops,
        )


@dataclass(frozen=True)
class Family:
    name: str  # model_type in config.json
    class_name: str  # "Bert" in "BertForMaskedLM"
    prefix: str  # of the encoder's tensors when a head stands beside it
    fields: Mapping[str, str]  # our Config field -> their setting
    names: Mapping[str, str | tuple[str, ...]]  # our module -> theirs below the prefix; a tuple: ours is theirs stacked
    heads: Callable[[Settings], dict[str, FamilyHead]]
    fixed: Mapping[str, Any] = field(default_factory=dict)  # Config values that this family always has
    defaults: Mapping[str, Any] = field(default_factory=dict)  # Config values where the settings are silent
    ignored: Mapping[str, str] = field(default_factory=dict)  # their tensors without use (`*` any) -> the reason
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # name -> published sizes
    fresh: Mapping[str, Any] = field(default_factory=dict)  # settings of a model that is made here, not loaded
    relatives: Mapping[str, str] = field(default_factory=dict)  # other model_types of the same make -> their class name
    read: Callable[[Settings], dict[str, Any]] = lambda settings: {}  # what `fields` cannot say, and what to refuse
    write: Callable[[Config], Settings] = lambda config: {}  # its inverse

    def config(self, settings: Settings) -> Config:
        values: dict[str, Any] = {"family": self.name, **self.defaults}
        for ours, theirs in self.fields.items():
            if settings.get(theirs) is not None:
                values[ours] = _typed(ours, theirs, settings[theirs])
        return Config(**{**values, **self.fixed, **self.read(settings)})

    def settings(self, config: Config, known: Settings) -> Settings:
        """`known` (what was loaded, or nothing) brought in line with `config`."""
        found = {"model_type": self.name, **known}
        for ours, theirs in self.fields.items():
            value = getattr(config, ours)
            if theirs not in known or _typed(ours, theirs, known[theirs]) != value:
                found[theirs] = _THEIR_ACTIVATION.get(value, value) if ours == "activation" else value
        return {**found, **{k: v for k, v in self.write(config).items() if k not in known}}

    def preset(self, name: str) -> Config:
        return Config(**{"family": self.name, **self.defaults, **self.fixed, **self.presets[name]})

    def model_class(self, model_type: str) -> str:
        return self.relatives.get(model_type, self.class_name)


_THEIR_ACTIVATION = {"gelu_tanh": "gelu_new"}
_TYPES = {f.name: f.type for f in fields(Config)}


def _typed(ours: str, theirs: str, value: Any) -> Any:
    kind = _TYPES[ours]
    if ours == "activation":
        return activation(theirs, value)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise BertsmithError(f"config.json has {theirs} = {value!r}, which is not {getattr(kind, '__name__', kind)}.")


def activation(setting: str, name: Any) -> str:
    if name not in ACTIVATION_NAMES:
        known = ", ".join(sorted(ACTIVATION_NAMES))
        raise BertsmithError(f"config.json has {setting} = {name!r}; the activations known here are {known}.")
    return ACTIVATION_NAMES[name]


def share(setting: str, value: Any) -> float:
    """A share between 0 and 1 of config.json."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise BertsmithError(f"config.json has {setting} = {value!r}; it must be at least 0 and less than 1.")
    return float(value)


def name_pairs(settings: Settings, usual: str) -> tuple[str, ...]:
    """What the head for two texts tells: by the question that it learnt, else by the one that its family asks."""
    return FOLLOWS.get(str(settings.get(PAIRS)), FOLLOWS[usual])


def refuse(settings: Settings, setting: str, allowed: tuple[Any, ...], why: str) -> None:
    """Stop at a setting that would change the numbers in a way not built here."""
    if setting in settings and settings[setting] not in allowed:
        raise BertsmithError(f"config.json has {setting} = {settings[setting]!r}: {why}.")
