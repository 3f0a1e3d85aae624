"""Characters that say as much as a word: those of Chinese and Japanese, and the syllables of Korean."""

import re

_WIDE = re.compile(
    "[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


def count_wide(text: str) -> int:
    return 0 if text.isascii() or not _WIDE.search(text) else len(_WIDE.findall(text))
