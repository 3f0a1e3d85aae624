"""The JSON files that stand beside a vocabulary and say how to use it.

In: a folder. Out: `Settings`: the options, the special tokens by role, tokens added with a fixed id, the model's type.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from bertsmith.errors import BertsmithError
from bertsmith.text.families import ROLES, Family, find_family

POINTER = b"version https://git-lfs.github.com/spec/"  # how a file begins that only says where the real one is
Built = tuple[Engine, list[AddedToken]]  # an engine from vocabulary files, and the tokens those files add themselves


@dataclass
class Settings:
    """What tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json say together."""

    folder: Path
    options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, AddedToken] = field(default_factory=dict)
    added: dict[int, AddedToken] = field(default_factory=dict)
    added_ids: dict[str, int] = field(default_factory=dict)
    extra: list[AddedToken] = field(default_factory=list)

    def family(self, form: str | None = None) -> Family | None:
        """The family named by the tokenizer's class or, failing that, by the model's type.

        The class comes first because some models of one family use the tokenizer of another (multilingual MiniLM is a
        BERT with XLM-R's); a family whose rules are about another form of vocabulary is passed over.
        """
        names = (self.options.get("tokenizer_class"), self.model.get("tokenizer_class"), self.model.get("model_type"))
        found = [family for family in map(find_family, names) if family and form in (None, family.form)]
        return found[0] if found else None

    def flag(self, name: str, default: bool) -> bool:
        """A yes-or-no option; null means the default."""
        value = self.options.get(name)
        if value is not None and not isinstance(value, bool):
            path = self.folder / "tokenizer_config.json"
            raise BertsmithError(f"{path}: {name} must be true or false, not {value!r}.")
        return default if value is None else value

    def number(self, name: str, default: int) -> int:
        """A whole number above zero; null means the default."""
        value = self.options.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            path = self.folder / "tokenizer_config.json"
            raise BertsmithError(f"{path}: {name} must be a whole number above zero, not {value!r}.")
        return value or default

    @property
    def limit(self) -> int | None:
        """The longest row, unless the file holds one of the huge numbers that stand for "unknown"."""
        value = self.options.get("model_max_length")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1_000_000:
            return None
        return int(value)


def read_settings(folder: Path) -> Settings:
    """Reads those of the companion files that the folder holds."""
    options = read_json(folder / "tokenizer_config.json")
    model = read_json(folder / "config.json") or read_json(folder / "bert_config.json")
    settings = Settings(folder, options, model)
    special_map = read_json(folder / "special_tokens_map.json")
    for source, file in ((special_map, "special_tokens_map.json"), (options, "tokenizer_config.json")):
        for role in ROLES:
            token = source.get(f"{role}_token")
            if token is not None:
                settings.tokens[role] = read_token(token, folder / file, f"{role}_token")
        for name in ("additional_special_tokens", "extra_special_tokens"):
            extra = source.get(name) or []
            tokens = extra.values() if isinstance(extra, dict) else extra
            settings.extra += [read_token(token, folder / file, name) for token in tokens]
    _read_added(settings)
    return settings


def read_token(value: object, path: Path, name: str, special: bool = True) -> AddedToken:
    """A token given as a string or as a dictionary with `content` and how it treats the spaces around it."""
    if isinstance(value, str):
        return AddedToken(value, special=special, normalized=not special)
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        ways = {way: bool(value.get(way)) for way in ("lstrip", "rstrip", "single_word")}
        special = bool(value.get("special", special))
        return AddedToken(value["content"], special=special, normalized=bool(value.get("normalized", False)), **ways)
    raise BertsmithError(f'{path}: {name} must be a string or an object with "content", not {value!r}.')


def _read_added(settings: Settings) -> None:
    path = settings.folder / "added_tokens.json"
    settings.added_ids = {content: _whole(id, path, content) for content, id in read_json(path).items()}
    path = settings.folder / "tokenizer_config.json"
    decoder = settings.options.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise BertsmithError(f"{path}: added_tokens_decoder must be an object of ids, not {type(decoder).__name__}.")
    for id, value in decoder.items():
        token = read_token(value, path, f"added_tokens_decoder[{id!r}]", special=False)
        settings.added[_whole(id, path, f"added_tokens_decoder[{id!r}]")] = token


def _whole(id: object, path: Path, name: str) -> int:
    try:
        return int(id)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise BertsmithError(f"{path}: the id of {name} must be a whole number, not {id!r}.") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty when there is no such file."""
    if not path.exists():
        return {}
    try:
        content = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise BertsmithError(f"{path} is not valid JSON ({error}); fetch or write the file again.") from None
    if not isinstance(content, dict):
        raise BertsmithError(f"{path} must hold a JSON object, not a {type(content).__name__}.")
    return content


def read_text(path: Path) -> str:
    """The text of a UTF-8 file that must not be empty."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BertsmithError(f"{path} is not UTF-8 text (byte {error.start}); convert it to UTF-8.") from None
    return text


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that must exist, be a file and not be empty."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not content:
        raise BertsmithError(f"{path} is empty (0 bytes); fetch or write the file again.")
    refuse_pointer(path, content)
    return content


def refuse_pointer(path: Path, beginning: bytes) -> None:
    """A clone of a hub's repository without Git LFS has small texts in the place of its large files."""
    if beginning.startswith(POINTER):
        raise BertsmithError(f"{path} is a pointer of Git LFS, not the file itself; fetch it with `git lfs pull`.")
