"""Files of tagged words as the shared tasks wrote them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.data.conll import read_conll
from bertsmith.data.reading import read_table

NEWS = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n-DOCSTART- -X- O O\n\n\nGerman JJ I-NP I-MISC\n"
CHUNKS = "He PRP B-NP\n# # I-NP\n1.8 CD I-NP\n\n# # B-NP\n2 CD I-NP\n"
TABS = "Rome\tB-LOC\r\nNew York\tB-LOC\r\n\r\nok\tO\r\n"
COMMENTS = "# id 17 domain=en\na _ _ O\n\n# id 18 x y z\nb _ _ O\n"
NUMBERED = "1 Rome B-LOC O\n2 is O O\n\n1 ok O O\n"
UNIVERSAL = """# sent_id = 1
# text = He didn't.
1\tHe\the\tPRON\tPRP\t_\t3\tnsubj\t_\t_
2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdid\tdo\tAUX\tVBD\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t2:conj\t_

# sent_id = 2
1\t#\t#\tSYM\tSYM\t_\t0\troot\t_\t_
"""
CASES = {
    # file: columns, words a sentence, last column a sentence, lines
    "eng.train": (NEWS, ("words", "pos", "chunk", "tags"), [["EU", "rejects"], ["German"]], [3, 9]),
    "train.txt": (CHUNKS, ("words", "column 2", "tags"), [["He", "#", "1.8"], ["#", "2"]], [1, 5]),
    "a.conll": (TABS, ("words", "tags"), [["Rome", "New York"], ["ok"]], [1, 4]),
    "a.bio": (COMMENTS, ("words", "column 2", "column 3", "tags"), [["a"], ["b"]], [2, 5]),
    "a.iob": ("a\u00a0b O\n\x85 O\n", ("words", "tags"), [["a\u00a0b", "\x85"]], [1]),
    "b.tsv": ("Rome\tB-LOC\nis\tO\n\nbig\tO\n", ("words", "tags"), [["Rome", "is"], ["big"]], [1, 4]),
    "c.conll": (NUMBERED, ("id", "words", "column 3", "tags"), [["Rome", "is"], ["ok"]], [1, 4]),
    "d.conll": ("only\nwords\n\nhere\n", ("words",), [["only", "words"], ["here"]], [1, 4]),
    # A word may begin with the sign of comments, the first word of all too; a comment may be as wide as the rest.
    "e.conll": ("#Rome\tNNP\nis\tVBZ\n\n#big\tJJ\n", ("words", "tags"), [["#Rome", "is"], ["#big"]], [1, 4]),
    "f.conll": ("#Rome NNP\nis VBZ\n", ("words", "tags"), [["#Rome", "is"]], [1]),
    "g.conll": ("# id 1\na X O\n\n# id 2\nb X O\n", ("words", "column 2", "tags"), [["a"], ["b"]], [2, 5]),
    "h.conll": ("# 1\na NN\n\n# 2\n# n 3\nb NN\n", ("words", "tags"), [["a"], ["b"]], [2, 6]),
    "i.conll": ("# #\n5 CD\n\n# #\n6 CD\n", ("words", "tags"), [["#", "5"], ["#", "6"]], [1, 4]),
    "j.conll": ("Rome\tB-LOC\ris\tO\r\rbig\tO\r", ("words", "tags"), [["Rome", "is"], ["big"]], [1, 4]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_files(tmp_path, name):
    content, columns, words, lines = CASES[name]
    (tmp_path / name).write_bytes(content.encode())
    table = read_table(tmp_path / name)
    assert table.kind == "conll" and table.unit == "line" and table.columns == columns
    assert [record["words"] for record in table.records] == words and table.rows == lines
    assert all(len(cells) == len(record["words"]) for record in table.records for cells in record.values())


@pytest.mark.parametrize("name", ["a.conllu", "a.conll", "a.txt", "a"])
def test_universal(tmp_path, name):
    (tmp_path / name).write_text(UNIVERSAL)
    table = read_table(tmp_path / name)
    assert table.columns[:5] == ("id", "form", "lemma", "upos", "xpos") and table.rows == [3, 10]
    assert [record["form"] for record in table.records] == [["He", "did", "n't"], ["#"]]
    assert table.records[0]["upos"] == ["PRON", "AUX", "PART"]


PROSE = ("Hello world\n\nGood bye\n", "text\tlabel\na\tx\nb\ty\n", "one\ttwo\n\nthree\tfour\n")


@pytest.mark.parametrize("text", PROSE)
def test_other_files_are_not_taken_for_it(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    assert read_table(tmp_path / "a.txt").kind != "conll"


word = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=" #"), min_size=1, max_size=6).filter(
    lambda word: word != "-DOCSTART-"
)
sentences = st.lists(st.lists(st.tuples(word, st.sampled_from(["O", "B-X", "I-X"])), min_size=1), min_size=1)


@given(sentences, st.sampled_from([" ", "\t"]), st.sampled_from(["\n", "\r\n"]), st.integers(1, 3))
def test_what_was_written_comes_back(sentences, gap, end, blanks):
    lines, starts = [], []
    for sentence in sentences:
        starts.append(len(lines) + 1)
        lines += [gap.join(pair) for pair in sentence] + [""] * blanks
    table = read_conll(end.join(lines), "a")
    numbered = table.columns[0] == "id"  # words that happen to count 1, 2, …
    assert numbered or [list(zip(r["words"], r["tags"], strict=True)) for r in table.records] == sentences
    assert table.rows == starts
