"""Where adapters lie, and the base that each was made for. In: folders. Out: what they are, or others."""

import hashlib
from contextlib import suppress
from pathlib import Path

from bertsmith.data.shards import file_digest
from bertsmith.errors import BertsmithError
from bertsmith.models.files import ADAPTER_CONFIG, ADAPTER_FILES, read_json
from bertsmith.models.hub import locate
from bertsmith.models.sentence import read_sentence

MEMBERS = "adapters"  # the folder in which a base has its own


def is_adapter(folder: Path) -> bool:
    return any((folder / name).exists() for name in ADAPTER_FILES)


def is_member(folder: Path) -> bool:
    """Whether it holds a head alone: that of an adapter proper reads an encoder with more in it than the base's."""
    return is_adapter(folder) and not (folder / ADAPTER_CONFIG).exists()


def find_members(folder: Path) -> list[Path]:
    return sorted(place for place in (folder / MEMBERS).glob("*") if is_member(place))


def find_base(folder: Path) -> Path:
    """The folder of the base model that an adapter was made for."""
    around = folder.absolute().parent
    is_inside = around.name == MEMBERS and (around.parent / "config.json").exists()
    if is_inside or not (folder / ADAPTER_CONFIG).exists():
        return folder.parent.parent  # one of several beside their encoder, wherever they were copied to together
    named = read_json(folder / ADAPTER_CONFIG).get("base_model_name_or_path")
    if not isinstance(named, str) or not named:
        raise BertsmithError(f"{folder / ADAPTER_CONFIG} does not name its base model; load that, and use the adapter.")
    try:
        found = locate(named)
    except BertsmithError:
        raise BertsmithError(
            f"{folder} is an adapter for {named}, which is not here; load that base model and use the adapter on "
            "it, or put the base's folder into base_model_name_or_path of adapter_config.json."
        ) from None
    if is_adapter(found):
        raise BertsmithError(f"{folder} names {found} as its base, which is an adapter itself.")
    return found


def find_encoder(folder: Path) -> Path:
    """Where a model's encoder and its tokenizer lie."""
    return read_sentence(find_base(folder) if is_adapter(folder) else folder).encoder


def digest_weights(folder: Path) -> str:
    """What a model's weights are known by, those of its base with them: a folder may come to hold others."""
    total = hashlib.sha256()
    for place in dict.fromkeys((find_encoder(folder), folder)):
        for path in sorted(place.iterdir()):
            if path.suffix in (".safetensors", ".bin") or ".data-" in path.name:
                with suppress(OSError):  # which is said where it is opened
                    total.update(f"{path.name} {file_digest(path)}\n".encode())
    return total.hexdigest()[:16]
