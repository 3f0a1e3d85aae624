"""What is saved is read back to the same ids: here, by the `tokenizers` library, and by transformers."""

import json
import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Engine
from transformers import AutoTokenizer

from bertsmith.errors import BertsmithError
from bertsmith.text import load_tokenizer

KINDS = ["bert", "distilbert", "electra", "mpnet", "roberta", "gpt2", "xlm-roberta", "camembert", "albert", "xlnet"]
WORDS = ["hello", "the", " ", " quick", "é", "ﬁ", "東京", ",", ".", "``", "\n", "👨‍👩‍👧", "Hello"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_config", [True, False])
def test_the_same_ids_come_back(kind: str, with_config: bool, family_folders: dict[str, Path], tmp_path: Path) -> None:
    ours = load_tokenizer(family_folders[kind])
    ours.save(tmp_path / "saved")
    if with_config:
        (tmp_path / "saved" / "config.json").write_bytes((family_folders[kind] / "config.json").read_bytes())
    again = load_tokenizer(tmp_path / "saved")
    engine = Engine.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    theirs = AutoTokenizer.from_pretrained(tmp_path / "saved")
    draw = random.Random(5)
    words = [*WORDS, *ours.specials.values()]
    for _ in range(60):
        text, pair = ("".join(draw.choices(words, k=8)) for _ in range(2))
        row, read = ours.encode(text, pair), again.encode(text, pair)
        assert row.ids == read.ids == engine.encode(text, pair).ids
        reference = theirs(text, pair, return_token_type_ids=True)
        assert row.ids == reference["input_ids"]
        assert row.segments == read.segments == reference["token_type_ids"]
        assert row.offsets == read.offsets
        assert ours.decode(row.ids) == again.decode(row.ids)
    assert again.specials == ours.specials
    assert (again.limit, again.size) == (ours.limit, ours.size)
    assert {role: getattr(theirs, f"{role}_token") for role in ours.specials} == ours.specials


def test_saving_twice_gives_the_same_bytes(minilm: Path, tmp_path: Path) -> None:
    load_tokenizer(minilm).save(tmp_path / "first")
    load_tokenizer(tmp_path / "first").save(tmp_path / "second")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    saved = json.loads((tmp_path / "first" / "tokenizer.json").read_text("utf-8"))
    assert saved["truncation"] is None
    assert saved["padding"] is None


def test_a_place_that_cannot_be_written_is_named(minilm: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BertsmithError, match=r"cannot be written to .*file"):
        load_tokenizer(minilm).save(tmp_path / "file")
