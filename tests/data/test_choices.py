"""Choices in every layout that data sets have, and what cannot be read."""

import json

import pytest

from bertsmith.checking import choose_kind
from bertsmith.data.columns import find_columns
from bertsmith.data.doctor import diagnose
from bertsmith.data.examples import ChoiceExample
from bertsmith.data.reading import read_table
from bertsmith.data.splits import split_off
from bertsmith.errors import BertsmithError
from bertsmith.tasks.choose import Choose

OBJECTS = [{"label": "A", "text": "a marsh"}, {"label": "B", "text": "a tundra"}, {"label": "C", "text": "a desert"}]
FOG = "There is fog around"
WANTED = (FOG, ("a marsh", "a tundra", "a desert"), 1)
LAYOUTS = {
    "CommonsenseQA": {"answerKey": "B", "id": "7", "question": {"choices": OBJECTS, "stem": FOG}},
    "its rows on the hub": {"id": "7", "question": FOG, "answerKey": "B",
                            "choices": {"label": ["A", "B", "C"], "text": [one["text"] for one in OBJECTS]}},
    "OpenBookQA's table": {"ID": "7", "Question Stem": FOG, "Choices": "(A) a marsh (B) a tundra (C) a desert",
                           "Complete Question": "…", "Answer Key": "B"},
    "numbers for names": {"question": FOG, "answerKey": "2",
                          "choices": [{"label": str(n), "text": one["text"]} for n, one in enumerate(OBJECTS, 1)]},
    "SWAG": {"video-id": "v", "startphrase": FOG, "sent1": "There is fog", "sent2": "around", "gold-source": "gold",
             "ending0": "a marsh", "ending1": "a tundra", "ending2": "a desert", "label": "1"},
    "SWAG without its start": {"sent1": "There is fog", "sent2": "around", "ending0": "a marsh", "ending1": "a tundra",
                               "ending2": "a desert", "label": 1},
    "WinoGrande": {"sentence": FOG, "option1": "a marsh", "option2": "a tundra", "option3": "a desert", "answer": "2"},
    "SocialIQA": {"question": FOG, "answerA": "a marsh", "answerB": "a tundra", "answerC": "a desert", "label": "B"},
    "a list and a number": {"prompt": FOG, "choices": list(WANTED[1]), "answer": 1},
    "a list and a text": {"prompt": FOG, "choices": list(WANTED[1]), "answer": "a tundra"},
    "a list and a letter": {"prompt": FOG, "choices": list(WANTED[1]), "answer": "b"},
    "a list in a cell": {"prompt": FOG, "choices": json.dumps(WANTED[1]), "answer": "1"},
}  # fmt: skip


def read(record, gold=True, **columns):
    table = read_table(record if isinstance(record, list) else [record], name="train")
    assert columns or choose_kind(None, table, {}) == "choose"
    required = [role for role in Choose.required if gold or role != "answer"]
    return Choose.examples(table, find_columns(table, Choose.roles, columns, required=required), {}, gold)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    (example,) = read(LAYOUTS[layout])
    assert (example.prompt, example.choices, example.right) == WANTED and example.where == "train, row 1"
    (unknown,) = read({k: v for k, v in LAYOUTS[layout].items() if k not in ("answerKey", "Answer Key")}, gold=False)
    assert (unknown.prompt, unknown.choices, unknown.right) == (*WANTED[:2], None)


@pytest.mark.parametrize("columns", [("sol1", "sol2"), ("choice1", "choice2")])
def test_answers_from_0_beside_columns_from_1(columns):
    """As PIQA and COPA have them; without any 0 the columns' own numbers are meant."""
    made = [{"prompt": FOG, **dict(zip(columns, "ab", strict=True)), "label": label} for label in (1, "0", 1.0)]
    assert [one.right for one in read(made)] == [1, 0, 1]
    counted = [{**one, "label": label} for one, label in zip(made, "121", strict=True)]
    assert [one.right for one in read(counted)] == [0, 1, 0]
    with pytest.raises(
        BertsmithError, match=r'row 3, .* the answer "2" is none of the 2 choices \(0, 1, or their texts'
    ):
        read([*made[:2], {**made[2], "label": 2}])


def test_a_gold_ending_and_its_distractors():
    """The gold one stands first in such files: the order of the choices must not tell."""
    records = [{"startphrase": FOG, "gold": f"{letter} marsh", "distractor": "m tundra"} for letter in "az"]
    one, other = read(records)
    assert (one.choices, one.right) == (("a marsh", "m tundra"), 0)
    assert (other.choices, other.right) == (("m tundra", "z marsh"), 1)


def test_rows_may_have_other_numbers_of_choices(tmp_path):
    rows = [{"prompt": "p", "choices": [str(i) + "x" for i in range(n)], "answer": n - 1} for n in (2, 5, 3)]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = read_table(path)
    found = Choose.examples(table, find_columns(table, Choose.roles, required=Choose.required), {})
    assert [(len(e.choices), e.right) for e in found] == [(2, 1), (5, 4), (3, 2)]
    csv = [{"prompt": "p", "choice0": "a", "choice1": "b", "choice2": third, "label": 1} for third in ("c", "", None)]
    assert [len(e.choices) for e in read(csv)] == [3, 2, 2]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"choices": []}, 'column "choices": there are no choices; give at least two, or take the row out.'),
        ({"choices": None}, 'column "choices": there are no choices; give at least two, or take the row out.'),
        ({"choices": ["a"]}, 'column "choices": one choice is no choice; give at least two, or take the row out.'),
        ({"choices": ["a", 3]}, 'column "choices": choice 2 must be a text, not a number (3).'),
        ({"answer": 3}, 'column "answer": the answer "3" is none of the 3 choices (0 to 2, or their texts).'),
        ({"answer": "D"}, 'column "answer": the answer "D" is none of the 3 choices (0 to 2, or their texts).'),
        ({"answer": "a lake"}, 'the answer "a lake" is none of the 3 choices (0 to 2, or their texts).'),
        ({"answer": -1}, 'the answer "-1" is none of the 3 choices (0 to 2, or their texts).'),
        ({"answer": ""}, 'column "answer": the answer is missing; give one or take the row out.'),
        ({"answer": None}, 'column "answer": the answer is missing; give one or take the row out.'),
        ({"choices": ["0", "1", "2"], "answer": "1"}, None),
        ({"choices": ["1", "2", "3"], "answer": "1"}, 'the answer "1" may mean the choices 0 and 1 (from 0); name it'),
        ({"prompt": 7}, 'column "prompt": a text is needed here, not a number (7).'),
        ({"prompt": {"stem": 3, "choices": []}}, 'column "prompt": its "stem" must be a text, not a number (3).'),
    ],
)
def test_what_cannot_be_read_names_row_and_column(changes, why):
    good = {"prompt": FOG, "choices": list(WANTED[1]), "answer": 1}
    if why is None:
        assert read([good, {**good, **changes}])[1].right == 1
        return
    with pytest.raises(BertsmithError) as error:
        read([good, {**good, **changes}])
    assert str(error.value).startswith("train, row 2") and why in str(error.value)


def test_no_column_of_choices():
    with pytest.raises(BertsmithError, match="train has no column of choices; give a list of them"):
        read({"prompt": FOG, "answer": "x"}, prompt="prompt")


def test_a_prompt_is_never_on_both_sides():
    examples = [ChoiceExample(f"prompt {i // 3}", (f"a {i}", f"b {i}"), 0) for i in range(60)]
    train, dev = split_off(examples)
    assert dev and not {e.prompt for e in train} & {e.prompt for e in dev}


def test_the_doctor_on_choices():
    fine = [ChoiceExample(f"p {i}", (f"a {i}", "b"), i % 2, f"t.csv, row {i + 2}") for i in range(30)]
    found = diagnose(fine, None, "choose", lengths=None, limit=None)
    assert found.findings == [] and found.facts["train"]["places"] == {"0": 15, "1": 15}
    twice = ChoiceExample("q", ("x", "x", " "), 0, "t.csv, row 99")
    told = [f.sentence for f in diagnose([*fine, twice], fine[:3], "choose", lengths=None, limit=None).findings]
    assert "The same choice twice in 1 example (t.csv, row 99)." in told
    assert "An empty choice in 1 example (t.csv, row 99)." in told
    assert any(sentence.startswith("All 3 dev prompts (100 %) stand in train too") for sentence in told)
