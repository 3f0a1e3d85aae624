"""Cleaning changes nothing twice, and sentences joined are the text they were cut from."""

import re
import textwrap
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.text.normalizing import cut_paragraphs, normalize_text
from bertsmith.text.sentences import sentence_ends, split_sentences

HARD = [
    "Dr. Smith met Mr. J. K. Jones at 3.14 p.m. on Jan. 5. | He left.",
    "The U.S. Government said no. | The end.",
    "He moved to the U.S. | The family followed.",
    "Apple Inc. | The company grew. | It paid $3.50 per share.",
    "It was in 1979. | Then came 1980.",
    "Am 3. Oktober 1990 war es so weit. | Alle feierten.",
    "1. First point. | 2. Second point.",
    '"Stop!" he said. | "Go." | She went.',
    "Wait... | What? | Yes! | No.",
    "He paused... and went on.",
    "See Fig. 3 and cf. Miller et al. for more. | (It is long.) | Good.",
    "Visit www.example.com or mail a.b@c.org today. | Thanks.",
    "Version 2.0.1 is out. | Pi is 3.14159, e is 2.71828.",
    "今日は。|元気ですか？|はい！|「そう。」|と言った。",
    "यह एक वाक्य है। | यह दूसरा है।",
    "هل هذا جيد؟ | نعم.",
    "یہ ایک جملہ ہے۔ | یہ دوسرا ہے۔",
    "¿Qué hora es? | ¡Vamos! | Son las 3.",
    "the gene is there. | in p. syringae it is not. | so be it",
    "a heading|\n|Text below. | More.",
]


@pytest.mark.parametrize("marked", HARD)
def test_hard_cases(marked):
    wanted = re.split(r" ?\|(?!\n)", marked)
    text = re.sub(r"\|", "", re.sub(r" \| ", " ", marked))
    found = [sentence.strip(" ") for sentence in split_sentences(text)]
    if "\n" in marked:
        assert found == ["a heading\n", "Text below.", "More."]
    else:
        assert found == [part.strip() for part in wanted]


pieces = st.lists(
    st.one_of(
        st.sampled_from(
            ["Dr.", "e.g.", "U.S.", "3.14", "1,000.5", ".", "!", "?", "…", "。", "！", "।", "؟", '"', ")", " ", "  ",
             "\n", "A", "b", "J.", "1979", "the", "中", "ö", "\u3000", "\u2029"]
        ),
        st.text(max_size=4),
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(pieces)
def test_sentences_joined_are_the_text_and_numbers_stay_whole(parts):
    text = "".join(parts)
    sentences = split_sentences(text)
    assert "".join(sentences) == text
    assert all(sentences)
    cuts = set(sentence_ends(text)[:-1])
    for number in re.finditer(r"\d+(?:[.,。]\d+)*", text):
        assert not cuts & set(range(number.start() + 1, number.end()))


@settings(max_examples=400, deadline=None)
@given(pieces)
def test_cleaning_a_clean_text_changes_nothing(parts):
    text = normalize_text("".join(parts))
    assert normalize_text(text) == text
    assert unicodedata.is_normalized("NFC", text)
    assert not re.search(r"[^\S\n ]|  |\n\n\n| \n|\n ", text) and text == text.strip()
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in text.replace("\n", ""))
    # A sentence of a clean text has something in it, and no line goes on over a sentence's end.
    for sentence in split_sentences(text):
        assert sentence.strip() and "\n" not in sentence.rstrip("\n")
    assert "".join("\n".join(cut_paragraphs(text)).split()) == "".join(text.split())


def test_cleaning_keeps_what_a_reader_sees():
    assert normalize_text("\ufeffa\u00adb \t\u3000c\r\nd\x00\x1b e\u2028f  \n\n\n\n g") == "ab c\nd e\nf\n\ng"
    assert normalize_text("e\u0301") == "é"
    assert normalize_text("می\u200cخواهم") == "می\u200cخواهم"
    assert normalize_text("\ud800x") == "\ufffdx"


def test_wrapped_lines_are_joined_where_blank_lines_part_paragraphs():
    wrapped = "a line that is wrapped at about seventy characters, as mail was\nand that goes on here"
    assert cut_paragraphs(f"{wrapped}\n\nshort\nlines") == [wrapped.replace("\n", " "), "short", "lines"]
    chinese = "東富山站是隸屬於愛之風富山鐵道及日本貨物鐵道的鐵路車站，座落於富山縣富山市，車站編號為十，其中。"
    assert cut_paragraphs(f"{chinese}\n{chinese}\n\n短") == [chinese, chinese, "短"]


PROSE = (
    "In this perplexity, whilst sitting down to clear up his thoughts and to consider of his future motions, Bertram "
    "suddenly remembered that immediately before the attack on the revenue officers a note had been put into his hand. "
    "This note he now drew from his pocket: it was written in pencil, and said that he would find the Abbey by noon."
)


@pytest.mark.parametrize("width", [60, 64, 72, 80, 100])
def test_a_document_whose_lines_were_filled_to_a_width_is_one_paragraph(width):
    """As in the texts of Project Gutenberg, where each line was a sentence of its own."""
    text = textwrap.fill(PROSE, width)
    assert text.count("\n") >= 3 and cut_paragraphs(text) == [PROSE]
    assert len(split_sentences(cut_paragraphs(text)[0])) == 2


def test_lines_that_end_by_themselves_stay_paragraphs():
    for lines in (
        ["A title that is a little longer than many titles are", "And the first sentence of what stands below it."],
        ["The first of a few sentences, each on a line of its own.", "Here is the second of them, much as long.",
         "The third one is the longest of them all, as it has some more words."],
        ["He was the first to go, and nobody saw him come back.", "She was the second to go, and everybody saw her."],
        ["So are you to my thoughts as food to life,", "Or as sweet-season'd showers are to the ground;"],
    ):  # fmt: skip
        assert cut_paragraphs("\n".join(lines)) == lines


def test_whether_a_text_has_capitals_is_asked_once():
    """Asked at each mark it would read the whole text each time: a page in small letters took minutes."""

    class Counting(str):
        asked = 0

        def islower(self):
            Counting.asked += 1
            return super().islower()

    text = Counting("what a day! it went on! " * 50)
    assert len(split_sentences(text)) == 100 and Counting.asked == 1
