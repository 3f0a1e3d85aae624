"""Real weights on texts of every kind: the vectors of all-MiniLM-L6-v2 are those of sentence-transformers."""

import random

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import bertsmith

WORDS = """
the bank by the river was closed so she took her money to another one where a man with two dogs waited for rain Paris
3.14 e-mail co-operate don't naïve Ünï 東京 москва قلب ไทย 🙂 C++ https://a.b/c?d=e #tag @you
"""

ODD = [
    "",
    " ",
    "\n\t \r\n",
    "word " * 2000,
    "two  thousand   spaces" + " " * 2000 + "end",
    "a" * 99,
    "a" * 100,
    "a" * 101,  # the longest word that the word pieces cut is 100 characters
    "x" * 5000,
    "👩‍👩‍👧‍👦 🏳️‍🌈 😀😀😀",
    "中文没有空格，但是每个字都是一个词。",
    "日本語の文章もあります",
    "한국어 문장",
    "هذا نص عربي مع تَشْكِيل",
    "שלום עולם",
    "\u202eright to left\u202c and back",
    "control\x00\x01\x07\x1b\x7fcharacters\x85here",
    "zero\u200bwidth\u200djoin\ufeffmark\u2060er",
    "soft\u00adhyphen non\u00a0breaking em\u2003space",
    "e\u0301 and é, n\u0303 and ñ, a\u0300\u0301\u0302\u0303\u0304",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "ﬁ ligature ½ ① Ⅷ ℃ ＦＵＬＬ width",
    "İstanbul ıssız STRASSE straße ΟΔΟΣ",
    "[CLS] [SEP] [MASK] [PAD] [UNK] [unused1]",
    "[MASK][MASK] [mask] ##ing ##",
    "\ud7ff\ue000\ufffd\uffff\U0010ffff",
    "…—–‘’“”«»¿¡§¶†‡•",
    "<b>html &amp; entities</b> \\n \\u0041 {json: [1, 2]}",
    "SELECT * FROM users; DROP TABLE users;--",
    "1234567890 12,345.67 1e-10 0x1F 50% $5 €5 ²³",
    "THE SAME TEXT IN CAPITALS",
    "the same text in capitals",
]


def make_texts() -> list[str]:
    draw = random.Random(0)
    lengths = [draw.choice((1, 3, 3, 8, 8, 20, 20, 60, 250, 300)) for _ in range(200 - len(ODD))]
    return ODD + [" ".join(draw.choices(WORDS.split(), k=length)) for length in lengths]


@pytest.fixture(scope="module")
def expected(demo_model) -> np.ndarray:
    theirs = SentenceTransformer(str(demo_model), device="cpu")
    return theirs.encode(make_texts(), batch_size=16)


def test_two_hundred_texts(demo_model, expected):
    texts = make_texts()
    assert len(texts) == 200
    found = bertsmith.load(demo_model).embed(texts)
    assert found.shape == expected.shape == (200, 384)
    assert np.abs(found - expected).max() < 1e-5
    assert sum(count > 0 for count in found.truncated) > 10  # some are longer than its 256 tokens


def test_alone_or_in_company_a_text_has_the_same_vector(demo_model, expected):
    model = bertsmith.load(demo_model)
    for number in (0, 3, 9, 25, 150):
        assert np.abs(model.embed(make_texts()[number]) - expected[number]).max() < 1e-5


def test_saved_and_opened_by_the_other_library(demo_model, expected, tmp_path):
    bertsmith.load(demo_model).save(tmp_path / "ours")
    theirs = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert theirs.max_seq_length == 256
    assert np.abs(theirs.encode(ODD, batch_size=16) - expected[: len(ODD)]).max() < 1e-5
