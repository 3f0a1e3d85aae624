"""Writes a tokenizer so that this package, the `tokenizers` library and `transformers` read back the same ids.

In: a tokenizer and its engine. Out: tokenizer.json, tokenizer_config.json and special_tokens_map.json in a folder.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.text.tokenizer import Tokenizer


def save_tokenizer(tokenizer: "Tokenizer", engine: Engine, folder: Path) -> None:
    """Writes the three files, making the folder where needed."""
    added = engine.get_added_tokens_decoder()
    by_content = {token.content: token for token in added.values()}
    named = {f"{role}_token": token for role, token in tokenizer.specials.items()}
    config = {
        # The generic class takes tokenizer.json as it is; those of the families build parts of it anew.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": {str(id): _describe(token) for id, token in sorted(added.items())},
        "clean_up_tokenization_spaces": False,
        "model_input_names": _inputs(tokenizer),
        **named,
    }
    if tokenizer.limit is not None:
        config["model_max_length"] = tokenizer.limit
    last = tokenizer.template.single[-1]
    if last.sequence is None and last.id == tokenizer.cls_id:
        config["padding_side"] = "left"  # XLNet: the row ends with cls, which must stay last
    special = {name: _describe(by_content[token]) if token in by_content else token for name, token in named.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(engine.to_str(pretty=True), encoding="utf-8")
        _write(folder / "tokenizer_config.json", config)
        _write(folder / "special_tokens_map.json", special)
    except OSError as error:
        raise BertsmithError(f"The tokenizer cannot be written to {folder}: {error.strerror or error}.") from None


def _inputs(tokenizer: "Tokenizer") -> list[str]:
    segmented = any(slot.segment for slot in tokenizer.template.pair)
    return ["input_ids", *(["token_type_ids"] if segmented else []), "attention_mask"]


def _describe(token: AddedToken) -> dict[str, Any]:
    ways = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    return {way: getattr(token, way) for way in ways}


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
