"""What the families of released models do differently when text becomes ids: one row a family.

In: a model type or the name of a tokenizer class. Out: the family's special tokens, how they stand around a text or a
pair, and how its SentencePiece file is to be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tokenizers import Tokenizer as Engine
from tokenizers import processors

from bertsmith.errors import BertsmithError

ROLES = ("unk", "bos", "eos", "sep", "pad", "cls", "mask")

_SQUARE = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
_ANGLE = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>", "cls": "<s>", "mask": "<mask>"}


@dataclass(frozen=True)
class Family:
    """One family; `form` is the kind of vocabulary file that its rules are about."""

    form: str  # "wordpiece", "bytes" or "sentencepiece"
    tokens: Mapping[str, str]
    single: str = "cls A sep"
    pair: str = "cls A sep B sep"
    segments: tuple[int, int, int] = (0, 1, 0)  # of A, of B, of a cls that stands last
    mask_takes_space: bool = False  # "a <mask>" and "a<mask>" are the same ids
    layout: str = "as is"  # where the pieces of a SentencePiece file get their ids
    cleaning: str = "none"  # what happens to a text before the SentencePiece normalizer
    lower_case: bool = False


def _roberta_like(form: str, tokens: Mapping[str, str], layout: str = "as is", lower_case: bool = False) -> Family:
    return Family(
        form, tokens, pair="cls A sep sep B sep", segments=(0, 0, 0), mask_takes_space=True, layout=layout,
        lower_case=lower_case,
    )  # fmt: skip


FAMILIES: dict[str, Family] = {
    "bert": Family("wordpiece", _SQUARE, lower_case=True),
    "mpnet": _roberta_like("wordpiece", {**_ANGLE, "unk": "[UNK]"}, lower_case=True),
    "roberta": _roberta_like("bytes", _ANGLE),
    "modernbert": Family("bytes", _SQUARE, segments=(0, 0, 0), mask_takes_space=True),
    "deberta": Family("bytes", _SQUARE, mask_takes_space=True),
    "gpt2": Family(
        "bytes", dict.fromkeys(("unk", "bos", "eos"), "<|endoftext|>"), single="A", pair="A B", segments=(0, 1, 0)
    ),
    "xlmroberta": _roberta_like("sentencepiece", _ANGLE, layout="xlm-roberta"),
    "camembert": _roberta_like("sentencepiece", _ANGLE, layout="camembert"),
    "albert": Family(
        "sentencepiece", {**_SQUARE, "unk": "<unk>", "pad": "<pad>", "bos": "[CLS]", "eos": "[SEP]"},
        mask_takes_space=True, cleaning="albert", lower_case=True,
    ),
    "rembert": Family(
        "sentencepiece", {**_SQUARE, "bos": "[CLS]", "eos": "[SEP]"}, mask_takes_space=True, cleaning="albert"
    ),
    "bigbird": Family(
        "sentencepiece", {**_ANGLE, "sep": "[SEP]", "cls": "[CLS]", "mask": "[MASK]"}, mask_takes_space=True
    ),
    "debertav2": Family(
        "sentencepiece", {**_SQUARE, "bos": "[CLS]", "eos": "[SEP]"}, layout="mask behind",
        cleaning="lower",
    ),
    "xlnet": Family(
        "sentencepiece", {**_ANGLE, "sep": "<sep>", "cls": "<cls>"}, single="A sep cls", pair="A sep B sep cls",
        segments=(0, 1, 2), mask_takes_space=True, cleaning="albert",
    ),
}  # fmt: skip

_SAME_AS = {
    "bert": ("distilbert", "electra", "mobilebert", "convbert", "layoutlm", "squeezebert", "ernie", "nomicbert"),
    "roberta": ("longformer", "robertaprelayernorm", "led", "bart"),
    "xlmroberta": ("xlmrobertaxl", "xmod"),
}
_FAMILY_OF = {name: name for name in FAMILIES} | {name: own for own, names in _SAME_AS.items() for name in names}


def find_family(name: object) -> Family | None:
    """The family of a model type ("xlm-roberta") or of a tokenizer class ("XLMRobertaTokenizerFast"), if known."""
    plain = str(name or "").removesuffix("Fast").removesuffix("Tokenizer").lower().replace("-", "").replace("_", "")
    return FAMILIES.get(_FAMILY_OF.get(plain, ""))


def post_processor(family: Family, engine: Engine, tokens: Mapping[str, str]) -> processors.TemplateProcessing:
    """The family's places of special tokens, for an engine that knows their ids."""
    roles = [role for role in ("cls", "sep") if role in f"{family.single} {family.pair}".split()]
    ids = {role: engine.token_to_id(tokens[role]) for role in roles if role in tokens}
    missing = [role for role in roles if ids.get(role) is None]
    if missing:
        names = " and ".join(f"{tokens.get(role, '?')!r} ({role}_token)" for role in missing)
        raise BertsmithError(
            f"The vocabulary does not hold the special token {names}; "
            f"name the right ones in tokenizer_config.json or add them to the vocabulary."
        )
    return processors.TemplateProcessing(
        single=_places(family.single, family.segments, tokens),
        pair=_places(family.pair, family.segments, tokens),
        special_tokens=[(tokens[role], id) for role, id in ids.items()],
    )


def _places(pattern: str, segments: tuple[int, int, int], tokens: Mapping[str, str]) -> list[str]:
    places, segment = [], segments[0]
    for position, part in enumerate(pattern.split()):
        if part == "B":
            segment = segments[1]
        if part == "cls" and position > 0:
            segment = segments[2]
        places.append(f"${part}:{segment}" if part in "AB" else f"{tokens[part]}:{segment}")
    return places
