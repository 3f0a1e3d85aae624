"""What the three kinds of tokenizer do before words are cut to pieces: cleaning, splitting, special tokens.

In: a kind and whether case is kept. Out: a `Recipe`, whose parts both count words and build the trained engine, so that
a word of training is a word of use.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tokenizers import Regex, normalizers, pre_tokenizers

from bertsmith.errors import BertsmithError
from bertsmith.text.loading import load_tokenizer

Kind = Literal["wordpiece", "bpe", "unigram"]
KINDS: tuple[str, ...] = get_args(Kind)

SQUARE = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
ANGLE = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}

# What Unicode calls white space; Python's own \s holds four more.
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# WordPiece and unigram: other spaces are left to the engine, which removes some of them without dividing a word.
_WORDS = re.compile(r"[^ \n\t\r]+")
# BPE: a word takes the space before it, and of several spaces the last.
_SPACED_WORDS = re.compile(rf"[{_SPACE}]*[^{_SPACE}]+|[{_SPACE}]+")
# Here a text may be cut for every kind.
EDGE = re.compile(rf"(?<=[^{_SPACE}])[ \n\t\r]")

# As SentencePiece has it: a piece holds one of letters, digits, other signs; Chinese and Japanese stand apart.
_EAST = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_RUNS = rf"▁?[{_EAST}]+|▁?[[\p{{L}}\p{{M}}]&&[^{_EAST}]]+|▁?\p{{N}}+|▁?[^\p{{L}}\p{{M}}\p{{N}}▁]+"


@dataclass(frozen=True)
class Recipe:
    """One kind of tokenizer; `longest` is the most characters of a word that takes part.

    `joined`: a unigram's pieces may hold letters and punctuation together ("word,"), which makes fewer of them. `own`
    is the folder of a tokenizer that is there already, whose cleaning and splitting are used in place of the kind's.
    `apart` are a person's own special tokens, which the engine takes out of a text before it looks for words.
    """

    kind: str
    cased: bool
    longest: int
    joined: bool = False
    own: str = ""
    apart: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BertsmithError(f"There is no tokenizer of the kind {self.kind!r}; choose {', '.join(KINDS)}.")
        if self.joined and self.kind != "unigram":
            raise BertsmithError(f"Pieces with letters and punctuation together are for unigram, not for {self.kind}.")

    @property
    def specials(self) -> dict[str, str]:
        """The special tokens by role, in the order of their ids."""
        return SQUARE if self.kind == "wordpiece" else ANGLE

    @property
    def chunks(self) -> re.Pattern[str]:
        """Finds the parts of a text that the engine may be asked about one by one, with the same words as from all."""
        return _SPACED_WORDS if self.kind == "bpe" else _WORDS

    @property
    def _engine(self) -> Any:
        return load_tokenizer(self.own)._engine

    def normalizer(self) -> Any:
        """How the engine cleans a text; None where it takes it as it is."""
        if self.own:
            return self._engine.normalizer
        if self.kind == "wordpiece":
            return normalizers.BertNormalizer(
                clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=not self.cased
            )
        if self.kind == "bpe":
            return None if self.cased else normalizers.Lowercase()
        if self.cased:
            return normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
        accents = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
        return normalizers.Sequence([normalizers.Nmt(), *accents, normalizers.NFKC()])

    def splitter(self) -> Any:
        """How the engine cuts a cleaned text into words; None where it does not."""
        if self.own:
            return self._engine.pre_tokenizer
        if self.kind == "wordpiece":
            return pre_tokenizers.BertPreTokenizer()
        if self.kind == "bpe":
            return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        spaces = [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True),
        ]
        runs = [] if self.joined else [pre_tokenizers.Split(Regex(_RUNS), "isolated")]
        return pre_tokenizers.Sequence([*spaces, *runs])


def make_recipe(
    kind: str, cased: bool | None = None, longest: int | None = None, joined: bool = False,
    apart: Sequence[str] = (),
) -> Recipe:  # fmt: skip
    """What is not said is as people know the kind.

    WordPiece forgets case and gives up on words over 100 characters as the most used BERT does. The others keep case as
    RoBERTa and XLM-R do, and what stands between two spaces may be a whole sentence of a script that has none.
    """
    is_cased, usual = (False, 100) if kind == "wordpiece" else (True, 1000)
    return Recipe(
        kind, is_cased if cased is None else cased, usual if longest is None else longest, joined, apart=tuple(apart)
    )
