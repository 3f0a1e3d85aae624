"""A byte-level mask that does not swallow the space before it: the space is a piece of the row, so not of the word."""

import pytest
from tasks.made import bytelevel_files
from tokenizers import AddedToken, processors
from tokenizers import Tokenizer as Engine

from bertsmith.tasks.spelling import spell, write
from bertsmith.text.bytelevel import bytelevel_engine
from bertsmith.text.settings import read_settings
from bertsmith.text.templates import read_template
from bertsmith.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("plain")
    for name, content in bytelevel_files().items():
        (folder / name).write_text(content)
    engine: Engine = bytelevel_engine(folder, read_settings(folder), {"unk": "<unk>"})[0]
    engine.add_special_tokens([AddedToken("<mask>", lstrip=False), "<s>", "</s>"])
    engine.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return Tokenizer(engine, read_template(engine), {"mask": "<mask>", "cls": "<s>", "sep": "</s>"})


def test_the_space_is_in_the_row(plain):
    assert plain.encode("it is <mask>.", specials=False).pieces[-3:] == ["Ġ", "<mask>", "."]


@pytest.mark.parametrize("text", ["it is <mask>.", "<mask> is", "(<mask>)", "he was\n<mask>"])
def test_spell(plain, text):
    start = text.index("<mask>")
    assert spell(plain, text, (start, start + 6), "Paris") == [plain.id("Paris")]


def test_write(plain):
    assert write(plain, "it is <mask>.", [((6, 12), plain.id("Paris"))]) == "it is Paris."
    assert write(plain, "it is<mask>.", [((5, 11), plain.id("Paris"))]) == "it isParis."
    assert write(plain, "it is<mask>.", [((5, 11), plain.id("ĠFrance"))]) == "it is France."
