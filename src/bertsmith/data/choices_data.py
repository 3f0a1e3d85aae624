"""Records become prompts with choices. In: a table and its columns by role. Out: `ChoiceExample`s.

The choices of a row stand in one cell (a list; objects of `label` and `text`, as CommonsenseQA has them; a text such as
`(A) a marsh (B) a tundra`), inside a `question` object, or in a column each: SWAG's ending0 to ending3, option1 and
option2, a gold ending and its distractors. Rows may have different numbers of them.
The answer is the label of a choice (A, B, …; the number in its column's name, less one in a table with answers of 0),
its text, or its number from 0.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertsmith.data.cells import describe, is_missing, list_cell, sound, text_cell
from bertsmith.data.columns import normalize
from bertsmith.data.examples import ChoiceExample
from bertsmith.data.labels import plain_label
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

ENDED = re.compile(r"(?:ending|choice|option|answer|alternative|candidate|solution|sol)_?([0-9]{1,2}|[a-z])")
DISTRACTOR = re.compile(r"(?:distractor|incorrect|wrong)_?(?:answer|ending|choice)?_?[0-9]{0,2}")
GOLD = ("gold", "gold_ending", "correct_answer")
LETTERED = re.compile(r"(?:^|(?<=\s))\(([A-Za-z0-9])\)\s*")
NEEDED = 'give a list of them (column "choices"), or a column each (choice0, choice1, …)'


@dataclass(frozen=True)
class Options:
    """The choices of one row, and what each is called where the data calls it something."""

    texts: Sequence[str]
    names: Sequence[str]

    def find(self, answer: Any) -> tuple[int | None, str]:
        """The number of the choice that an answer means, or None and why."""
        written = plain_label(answer)
        named = [i for i, name in enumerate(self.names) if name.casefold() == written.casefold()]
        worded = [i for i, text in enumerate(self.texts) if isinstance(answer, str) and text.strip() == written]
        counted = [int(written)] if written.isdecimal() and int(written) < len(self.texts) and not self.names else []
        lettered = [_letter(written)] if not self.names and 0 <= _letter(written) < len(self.texts) else []
        meant = {*named, *worded, *counted} or set(lettered)
        if len(meant) == 1:
            return meant.pop(), ""
        if meant:
            places = " and ".join(str(i) for i in sorted(meant))
            return None, f'the answer "{written}" may mean the choices {places} (from 0); name it another way'
        known = ", ".join(self.names) or f"0 to {len(self.texts) - 1}"
        return None, f'the answer "{written}" is none of the {len(self.texts)} choices ({known}, or their texts)'


def choice_examples(table: Table, columns: Mapping[str, str], *, gold: bool = True) -> list[ChoiceExample]:
    """`columns` are those of `find_columns`; without an answer column, or with `gold=False`, `right` is None."""
    prompt, choices, answer = columns["prompt"], columns.get("choices"), columns.get("answer")
    each: Mapping[str, str] = {} if choices is not None else find_numbered(table.columns, answer)
    if gold and answer is not None:
        each = _count_as_answers(table, answer, each)
    examples = []
    for i in range(len(table.records)):
        options = _options(table, i, prompt, choices, each)
        right = None
        if gold and answer is not None:
            right = _right(table, i, answer, options)
        examples.append(ChoiceExample(_prompt(table, i, prompt), tuple(options.texts), right, table.where(i)))
    return examples


def find_numbered(columns: Sequence[str], answer: str | None) -> dict[str, str]:
    """Column -> the name of its choice, where each choice has a column; {}: they have none."""
    ended = {column: found[1] for column in columns if (found := ENDED.fullmatch(normalize(column)))}
    if len(ended) > 1:
        return ended
    wrong = [column for column in columns if DISTRACTOR.fullmatch(normalize(column))]
    right = [column for column in columns if normalize(column) in GOLD and column == answer]
    return dict.fromkeys([*right, *wrong], "") if right and wrong else {}


def _count_as_answers(table: Table, answer: str, each: Mapping[str, str]) -> Mapping[str, str]:
    """PIQA's columns are sol1 and sol2, COPA's choice1 and choice2, but their answers are 0 and 1."""
    if "0" in each.values() or not all(name.isdecimal() for name in each.values()):
        return each
    if all(plain_label(record[answer]) != "0" for record in table.records):
        return each
    return {column: str(int(name) - 1) for column, name in each.items()}


def has_choices(columns: Sequence[str], first: Mapping[str, Any]) -> bool:
    """Whether a table looks made for choosing, by its columns and its first record."""
    names = {normalize(column): column for column in columns}
    if any(isinstance(value, dict) and "choices" in value for value in first.values()) or "choices" in names:
        return True
    gold = next((column for name, column in names.items() if name in GOLD), None)
    return bool(find_numbered(columns, gold))


def _options(table: Table, index: int, prompt: str, choices: str | None, each: Mapping[str, str]) -> Options:
    record = table.records[index]
    column, cell = prompt, record[prompt]
    if each:
        there = {c: text_cell(table, index, c) for c in each if not is_missing(record[c]) and str(record[c]).strip()}
        if any(each.values()):
            found = Options(list(there.values()), [each[c] for c in there])
        else:  # the gold one stands first: in that order a model that tells nothing apart would seem to be right
            found = Options(sorted(there.values()), [])
    else:
        if choices is not None:
            column, cell = choices, record[choices]
        elif isinstance(cell, dict):
            cell = cell.get("choices")
        else:
            raise BertsmithError(f"{table.name} has no column of choices; {NEEDED}.")
        found = _read_options(cell, table, index, column)
    if len(found.texts) < 2:
        count = "one choice is no choice" if found.texts else "there are no choices"
        raise BertsmithError(f"{table.where(index, column)}: {count}; give at least two, or take the row out.")
    return found


def _read_options(cell: Any, table: Table, index: int, column: str) -> Options:
    """From a list of texts, a list of objects, an object of lists, or a text with letters in brackets."""
    names: list[Any] = []
    texts = list_cell(cell)
    if isinstance(cell, dict) and isinstance(cell.get("text"), list | tuple):
        texts, names = list(cell["text"]), list(cell.get("label") or ())
    elif texts and all(isinstance(one, dict) for one in texts):
        names = [one["label"] for one in texts if "label" in one]
        texts = [one.get("text") for one in texts]
    elif texts is None and isinstance(cell, str):
        parts = LETTERED.split(cell)
        names, texts = parts[1::2], [part.strip() for part in parts[2::2]]
    if texts is None:
        texts = [] if is_missing(cell) else [cell]
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise BertsmithError(f"{table.where(index, column)}: choice {number} must be a text, not {describe(text)}.")
        sound(text, table, index, column)
    return Options(texts, [plain_label(name) for name in names] if len(names) == len(texts) else [])


def _right(table: Table, index: int, column: str, options: Options) -> int:
    answer = table.records[index][column]
    if not plain_label(answer):
        raise BertsmithError(f"{table.where(index, column)}: the answer is missing; give one or take the row out.")
    right, why = options.find(answer)
    if right is None:
        raise BertsmithError(f"{table.where(index, column)}: {why}.")
    return right


def _prompt(table: Table, index: int, column: str) -> str:
    """The text itself, a question's stem; of SWAG both of its sentences, where their joined form is not there."""
    cell = table.records[index][column]
    if isinstance(cell, dict):
        stem = cell.get("stem")
        if not isinstance(stem, str):
            raise BertsmithError(f'{table.where(index, column)}: its "stem" must be a text, not {describe(stem)}.')
        return sound(stem, table, index, column)
    if normalize(column) == "sent1" and "sent2" in table.columns:
        rest = table.records[index]["sent2"]
        return f"{text_cell(table, index, column)} {'' if is_missing(rest) else rest}".strip()
    return text_cell(table, index, column)


def _letter(written: str) -> int:
    return ord(written.upper()) - ord("A") if len(written) == 1 and written.isascii() and written.isalpha() else -1
