"""Characters that say as much as a word (Chinese, Japanese, Korean), and scripts that put no spaces between words."""

import re

# Thai, Lao, Tibetan, Burmese, Khmer; the marks, kana and ideographs of Chinese and Japanese. Korean has spaces.
SPACELESS = "\u0e00-\u109f\u1780-\u17ff\u3000-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WIDE = re.compile(
    "[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


def count_wide(text: str) -> int:
    return 0 if text.isascii() or not _WIDE.search(text) else len(_WIDE.findall(text))
