"""Standard input, the chunks, and what is said about what was cut or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.cli import inputs
from bertsmith.cli.inputs import Input, ask
from bertsmith.errors import BertsmithError


def test_lines_keep_their_order_and_empty_ones_their_place(run, monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK", 2)
    ran = run("embed", "-", stdin="\ufeffa\r\n\nc\u2028d\nlast".encode())
    assert [record["input"] for record in ran.records] == ["a", "", "c\u2028d", "last"]


def test_no_lines_give_no_answers(run):
    ran = run("embed", "-")
    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_text_stays_utf8(run):
    ran = run("tokenize", "-", stdin="Grüße 🙂\n".encode())
    assert "Grüße 🙂" in ran.out


def test_pairs_come_in_columns(run):
    ran = run("follows", "-", stdin=b"a\tb\nc\t\n")
    assert [(record["input"], record["pair"]) for record in ran.records] == [("a", "b"), ("c", "")]


@pytest.mark.parametrize("line, count", [("a", "1 tab-separated column,"), ("a\tb\tc", "3 tab-separated columns,")])
def test_a_wrong_number_of_columns_names_the_line(run, line, count):
    ran = run("follows", "-", stdin=f"a\tb\n{line}\n".encode())
    assert ran.status == 1 and ran.err == f"error: line 2: {count} where 2 are needed.\n"
    assert len(ran.records) == 1


def test_what_is_not_utf8_names_the_line(run):
    ran = run("embed", "-", stdin=b"good\nb\xe9d\n")
    assert ran.status == 1 and ran.err == "error: line 2: not valid UTF-8 (byte 2 of the line).\n"
    assert [record["input"] for record in ran.records] == ["good"]


def test_a_word_of_the_command_that_is_not_utf8_is_refused(run):
    assert run("embed", "good", "b\udce9d").err == "error: text 2: not valid UTF-8.\n"


@pytest.mark.parametrize(
    "words, where",
    [
        (["tokenize", "a", "--pair", "b\udce9d"], "--pair"),
        (["fill", "[MASK]", "--targets", "good,b\udce9d"], "--targets"),
        (["embed", "a", "--prompt", "b\ud800d"], "--prompt"),
        (["follows", "a", "b\udce9d"], "text B"),
    ],
)
def test_an_option_that_is_not_utf8_is_refused(run, words, where):
    ran = run(*words)
    assert (ran.status, ran.out, ran.err) == (1, "", f"error: {where}: not valid UTF-8.\n")


@pytest.mark.parametrize("targets", ["a,,b", "", "a,", " ,a"])
def test_empty_targets_are_a_mistake_in_the_command(run, targets):
    ran = run("fill", "[MASK]", "--targets", targets)
    assert ran.status == 2 and f"--targets {targets!r} has an empty word" in ran.err


@pytest.mark.parametrize(
    "verb, line, others",
    [("embed", "w " * 11, "|windows"), ("fill", "[MASK] " + "w " * 10, ""), ("follows", "\tw" + " w" * 10, "")],
)
def test_only_policies_that_the_verb_has_are_offered(run, verb, line, others):
    ran = run(verb, "-", stdin=line.encode())
    assert "--truncate error|" in ran.err and f"tail|head+tail{others} to change)" in ran.err
    assert ("windows" in run(verb, "--help").out) == (verb != "follows")


@pytest.mark.parametrize(
    "bad, sentence", [("", "empty, where a text with a mask is needed."), ("x", "there is no [MASK] in the text.")]
)
def test_fill_names_the_line_at_fault_and_answers_those_before(run, bad, sentence):
    lines = ["[MASK]"] * 10 + [bad] + ["[MASK]"] * 10
    ran = run("fill", "-", stdin="\n".join(lines).encode())
    assert ran.status == 1 and ran.err == f"error: line 11: {sentence}\n"
    assert len(ran.records) == 10


def test_one_text_at_fault_needs_no_number(run):
    assert run("fill", "x").err == "error: there is no [MASK] in the text.\n"
    assert run("fill", "[MASK]", "x").err == "error: text 2: there is no [MASK] in the text.\n"


def test_what_was_cut_is_said_once(run):
    long = "w " * 11
    ran = run("embed", "-", stdin=f"{long}\nshort\n{long}\n".encode())
    assert [record["truncated"] for record in ran.records] == [3, 0, 3]
    assert ran.err == "cut: 2 of 3 inputs, 6 tokens (policy head; --truncate error|tail|head+tail|windows to change)\n"


def test_cutting_can_be_refused(run):
    ran = run("embed", "-", "--truncate", "error", stdin=b"short\n" + b"w " * 9)
    assert ran.status == 1 and ran.err == "error: line 2: the text is 1 tokens too long.\n"


def test_a_fault_of_no_input_names_none(run):
    assert run("follows", "-", stdin=b"a\tb\n", model="headless").err == "error: there is no head.\n"


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 50))
def test_halving_answers_exactly_what_stands_before_the_fault(good, size):
    chunk = [Input(f"line {number}", "good" if fine else "bad") for number, fine in enumerate(good, 1)]
    chunks = [chunk[start : start + size] for start in range(0, len(chunk), size)]

    def question(texts):
        if any(each.text == "bad" for each in texts):
            raise BertsmithError("bad.")
        return [each.where for each in texts]

    answered = []
    fault = None
    try:
        for each, answer in ask(chunks, question):
            assert each.where == answer
            answered.append(answer)
    except BertsmithError as error:
        fault = str(error)
    stop = good.index(False) if False in good else len(good)
    assert answered == [f"line {number}" for number in range(1, stop + 1)]
    assert fault == (f"line {stop + 1}: bad." if stop < len(good) else None)
