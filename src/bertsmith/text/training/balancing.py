"""Languages brought nearer to each other. In: the counts of each, and a temperature. Out: one table of counts.

A language that makes the part p of the text is trained on as if it made a part that goes with p to the power `balance`
(Conneau et al. 2019): 1 leaves all as it is, 0 makes all the same.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from bertsmith.errors import BertsmithError
from bertsmith.text.training.portable import power

_ONE = 1000  # factors are whole thousandths, so that counts stay whole numbers on every machine


def check_balance(balance: float | None, languages: int) -> None:
    if balance is None:
        return
    if not 0 <= balance <= 1:
        raise BertsmithError(f"--balance {balance} must lie between 0 (all languages alike) and 1 (as they are).")
    if languages < 2:
        raise BertsmithError("--balance needs several sources, a file or a folder for each language; one was given.")


def find_factors(characters: Sequence[int], balance: float) -> list[int]:
    """By how many thousandths the counts of each language are multiplied; the largest language keeps its own."""
    largest = max(characters)
    return [
        _ONE if size in (0, largest) or balance == 1 else int(power(largest / size, 1 - balance) * _ONE + 0.5)
        for size in characters
    ]


def balance_counts(languages: Sequence[Mapping[str, int]], factors: Sequence[int]) -> dict[str, int]:
    """The words of all languages, counted by their factors, each rounded once over all languages."""
    together: Counter[str] = Counter()
    for words, factor in zip(languages, factors, strict=True):
        for word, count in words.items():
            together[word] += count * factor
    return {word: (count + _ONE // 2) // _ONE for word, count in together.items()}
