"""Which column is which. In: a table, the roles a task has, the user's choices. Out: role -> column, and why.

The rules, in this order:
1. A column that the user chose for a role has it; a number counts the columns from 1 where none has that name. For the
   labels of texts several may be chosen, a,b,c: one a label, of 0 and 1.
2. Two texts by their usual names in pairs (sentence1 and sentence2, premise and hypothesis, question and sentence, …),
   unless the user chose a column for one of the two.
3. The usual names of each role (`NAMES`, case and spaces aside), the first group of them that occurs. Two columns of
   one group are an error that names the flag to decide it.
4. For texts with labels in two columns of unknown names: the one with fewer distinct values is the label. A single
   unknown column left over is the text; it is the label only where one is required.
Where texts are brought together or ranked (tasks with the role `negative`) rule 4 does not hold, and rules 2 and 3 know
more names: anchor, positive, answer, relevance, …
"""

import difflib
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence

from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "text": (
        ("text",),
        ("sentence", "sentence1", "review", "content", "comment", "tweet", "document", "body", "message", "utterance",
         "premise", "question1", "text1", "text_a", "sentence_a", "comment_text", "review_text"),
        ("question", "query", "post", "description", "article", "abstract", "input", "title"),
    ),
    "pair": (("pair", "text_pair", "text2", "text_b", "sentence2", "sentence_b", "hypothesis", "question2"),),
    "label": (
        ("label", "labels", "gold_label"),
        ("class", "category", "target", "sentiment", "intent", "topic", "y", "gold", "emotion", "emotions", "stars",
         "rating", "score", "quality", "is_duplicate", "polarity", "similarity"),
        ("label_text", "label_name"),
    ),
    "words": (("words", "tokens"), ("form", "word", "token")),
    "tags": (
        ("tags", "ner_tags", "ner", "bio", "bio_tags", "iob", "slots"),
        ("labels", "label"),
        ("upos", "pos", "pos_tags"),
        ("chunk", "chunks", "chunk_tags"),
        ("xpos",),
    ),
    "entities": (("entities", "spans", "ents"), ("labels", "label", "annotations")),
    "question": (("question",), ("query", "question_text")),
    "context": (("context",), ("passage", "paragraph", "document", "article"), ("text",)),
    "answers": (("answers",), ("answer", "answer_text")),
    "start": (("answer_start",), ("start",)),
    "id": (("id",), ("qid", "question_id", "guid", "idx")),
    "impossible": (("is_impossible",), ("impossible",)),
    "prompt": (
        ("prompt", "startphrase"), ("question_stem", "stem"), ("question", "query"), ("sent1",),
        ("context", "premise", "sentence", "text"),
    ),
    "choices": (("choices",), ("options", "endings")),
    "answer": (("answer", "answerkey", "answer_key", "correct_answer", "gold_ending"), ("label", "gold", "target")),
    "query": (
        ("query", "search_query"), ("question", "anchor"), ("sentence1", "text1", "question1", "text_a"), ("text",),
    ),
    "passage": (
        ("passage", "positive", "pos"),
        ("document", "doc", "paragraph", "context", "answer", "response", "text_pair"),
        ("pair", "sentence2", "text2", "question2", "text_b"), ("text", "title"),
    ),
    "negative": (("negative",), ("negatives",), ("hard_negative",), ("hard_negatives",), ("neg",)),
}  # fmt: skip
# More names where texts are brought together or ranked, and not where they are classified: there an answer's column may
# be anything.
MATCHED: dict[str, tuple[tuple[str, ...], ...]] = {
    "text": (("anchor",),),
    "pair": (("positive", "pos"), ("answer", "passage", "paragraph", "context", "document", "response")),
    "label": (("relevance", "relevant", "is_relevant", "relevance_label", "grade", "gain", "similarity_score"),),
}
PAIRS = (
    ("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("question", "sentence"),
    ("text", "text_pair"), ("text", "pair"), ("sentence", "pair"), ("text1", "text2"), ("text_a", "text_b"),
    ("sentence_a", "sentence_b"), ("#1_string", "#2_string"), ("question", "passage"), ("query", "passage"),
    ("query", "document"),
)  # fmt: skip
MATCHED_PAIRS = (
    ("anchor", "positive"), ("query", "positive"), ("question", "positive"), ("text", "positive"), ("query", "pos"),
    ("sentence", "positive"), ("question", "answer"), ("query", "answer"), ("question", "context"),
    ("question", "paragraph"), ("query", "text"), ("query", "response"), ("title", "body"),
)  # fmt: skip
VALUES = frozenset({"positive", "negative", "negatives", "pos", "neg"})  # as often a label of a headless file
COMPANIONS = ("id", "idx", "index", "guid", "uid", "row", "split", "source", "date", "lang", "language", "url", "name")
KNOWN = frozenset(
    [name for groups in NAMES.values() for group in groups for name in group if name not in VALUES]
    + [name for pair in PAIRS for name in pair]
    + [*COMPANIONS]
)
REQUIRED = ("text", "words", "question", "context", "query", "passage")  # where a role of these is asked for at all


class Columns(dict[str, str]):
    """Role -> column; `notes` are sentences that say what was decided without a flag or a usual name."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def free(self, table: Table) -> list[str]:
        """The columns that have no role yet."""
        taken = {one for column in self.values() for one in cut_columns(table, column)}
        return [column for column in table.columns if column not in taken]


def cut_columns(table: Table, column: str) -> list[str]:
    """The columns that a,b,c names, where none has that very name."""
    return [column] if column in table.columns else [part.strip() for part in column.split(",")]


def find_columns(
    table: Table,
    roles: Sequence[str],
    chosen: Mapping[str, str | None] | None = None,
    *,
    required: Collection[str] | None = None,
) -> Columns:
    """The column of each role that the table has; a role in `required` without one is an error.

    Words may also come as a `text`, with `entities` marked in it; whichever of the two forms is there has its roles.
    """
    if table.kind == "conll" and "text" in roles and "words" not in roles:
        raise BertsmithError(
            f"{table.name} holds words with their tags, one a line, and no texts: it is for tagging (--task tag); "
            "where each line is a text, say --format lines."
        )
    found = Columns()
    choices = {role: column for role, column in (chosen or {}).items() if column is not None}
    is_matched = "negative" in roles
    for role, column in choices.items():
        parts = cut_columns(table, column) if role == "label" and not is_matched else [column]
        known = any(part in table.columns or part.isdecimal() for part in parts)
        found[role] = ",".join(_check_choice(table, role, part) for part in (parts if known else [column]))
    if {"text", "pair"} <= set(roles) and not {"text", "pair"} & set(choices):
        _find_pair(table, found, (*PAIRS, *MATCHED_PAIRS) if is_matched else PAIRS)
    for role in roles:
        if role not in found and not (role == "pair" and "text" in choices and not is_matched):
            _find_by_name(table, role, found, is_matched)
    if "answers" in found and "start" not in found:
        _find_by_name(table, "start", found)
    if "words" in roles:
        _choose_form(table, found, choices)
    if "label" in roles and not is_matched:
        _find_unnamed(table, found, "label" in (required or ()))
    for role in (role for role in roles if role in (REQUIRED if required is None else required)):
        if role not in found and not (role == "words" and "text" in found):
            raise _missing(table, role)
    return found


def find_roles(
    tables: Sequence[Table], roles: Sequence[str], chosen: Mapping[str, str], required: Sequence[str]
) -> list[Columns]:
    """The columns of each table; what is the label in the first is the label in the others."""
    found: list[Columns] = []
    for table in tables:
        same = {role: column for role, column in (found[0] if found else {}).items() if column in table.columns}
        found.append(find_columns(table, roles, {**same, **chosen}, required=required))
    return found


def normalize(name: str) -> str:
    """A column's name as the lists here write it."""
    return re.sub(r"[\s\-]+", "_", name.strip().lower())


def flag(role: str) -> str:
    """What the user writes to choose the column of a role."""
    return f"--{role} COLUMN"


def _check_choice(table: Table, role: str, column: str) -> str:
    if column in table.columns:
        return column
    if column.isdecimal() and 0 < int(column) <= len(table.columns):
        return table.columns[int(column) - 1]
    alike = [name for name in table.columns if _compose(name) == _compose(column)]
    if len(alike) == 1:  # é is one character or two, and nobody sees which
        return alike[0]
    near = difflib.get_close_matches(column, table.columns, 1, 0.5)
    end = f'; did you mean "{near[0]}"?' if near else "."
    raise BertsmithError(
        f'{table.name} has no column "{column}", which was chosen as {role} (columns: {_list(table.columns)}){end}'
    )


def _compose(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _find_pair(table: Table, found: Columns, known: Sequence[tuple[str, str]]) -> None:
    by_name = {normalize(column): column for column in table.columns}
    pairs = [(by_name[one], by_name[other]) for one, other in known if one in by_name and other in by_name]
    if not pairs:
        return
    several = sorted({column for pair in pairs for column in pair}, key=table.columns.index)
    others = [column for column in several if column not in pairs[0]]
    if "text" in by_name and by_name["text"] not in several:
        others.append(by_name["text"])
    if others:
        raise BertsmithError(
            f"{table.name} has several columns that may be the text and its pair: {_list([*pairs[0], *others])}; "
            f"choose with {flag('text')} and, where a pair is wanted, {flag('pair')}."
        )
    found["text"], found["pair"] = pairs[0]
    found.notes.append(f'took columns "{pairs[0][0]}" and "{pairs[0][1]}" as a pair of texts because of their names')


def _find_by_name(table: Table, role: str, found: Columns, is_matched: bool = False) -> None:
    free = found.free(table)
    for group in (*NAMES.get(role, ((role,),)), *(MATCHED.get(role, ()) if is_matched else ())):
        columns = [column for column in free if normalize(column) in group and _fits(table, role, column)]
        if len(columns) > 1:
            raise BertsmithError(
                f"{table.name} has {len(columns)} columns that may be the {role}: {_list(columns)}; choose one with "
                f"{flag(role)}."
            )
        if columns:
            found[role] = columns[0]
            return


def _fits(table: Table, role: str, column: str) -> bool:
    """`labels` may hold one tag a word or marked spans: only the values tell."""
    if role not in ("tags", "entities") or normalize(column) not in ("labels", "label"):
        return True
    first = next((value for record in table.records if (value := record[column])), None)
    marks = isinstance(first, (list, tuple)) and isinstance(first[0], (list, tuple, dict))
    return marks == (role == "entities")


def _choose_form(table: Table, found: Columns, chosen: Mapping[str, str]) -> None:
    """Words with their tags, or a text with its entities: what the user chose, else what has gold, else words."""
    if not {"words", "tags"} <= set(found):
        for role in {"text", "entities"} - set(found):
            _find_by_name(table, role, found)
    marked = "text" in found and "entities" in found
    as_words = "words" in found and ("tags" in found or not marked)
    if {"words", "tags"} & set(chosen):
        as_words = True
    elif {"text", "entities"} & set(chosen):
        as_words = False
    for role in ("text", "entities") if as_words else ("words", "tags"):
        found.pop(role, None)


def _find_unnamed(table: Table, found: Columns, need_label: bool) -> None:
    alone = len(table.columns) == 1
    left = [column for column in found.free(table) if alone or normalize(column) not in COMPANIONS]
    if "text" not in found and "label" not in found and len(left) == 2:
        one, other = left
        text, label = (one, other) if _weight(table, one) >= _weight(table, other) else (other, one)
        found["text"], found["label"] = text, label
        few, many = _weight(table, label)[0], _weight(table, text)[0]
        why = f"it has {few:,} distinct values against {many:,}" if few < many else "its values are shorter"
        found.notes.append(f'took column "{label}" as label and "{text}" as text because {why}')
    elif "text" not in found and len(left) == 1:
        found["text"] = left[0]
        found.notes.append(f'took column "{left[0]}" as text because no other is left')
    elif "text" in found and "label" not in found and need_label and len(left) == 1:
        found["label"] = left[0]
        found.notes.append(f'took column "{left[0]}" as label because no other is left')


def _weight(table: Table, column: str) -> tuple[int, int]:
    """Distinct values and, where that does not decide, characters: the text has more of both."""
    values = [str(record[column]) for record in table.records]
    return len(set(values)), sum(map(len, values))


def _missing(table: Table, role: str) -> BertsmithError:
    usual = ", ".join(name for group in NAMES.get(role, ()) for name in group[:6])
    flags = [column for column in table.columns if _holds_flags(table, column)] if role == "label" else []
    if len(flags) > 1:
        usual += f"); where each column of 0 and 1 is a label, name them all: --label {','.join(flags[:20])}"
    return BertsmithError(
        f"{table.name} has no column known as {role} (its columns: {_list(table.columns)}); name it with {flag(role)}, "
        f"or call it by a usual name ({usual}{'.' if len(flags) > 1 else ').'}"
    )


def _holds_flags(table: Table, column: str) -> bool:
    return {str(record[column]) for record in table.records} == {"0", "1"}


def _list(columns: Sequence[str]) -> str:
    shown = ", ".join(f'"{column}"' for column in columns[:20])
    return shown if len(columns) <= 20 else f"{shown} and {len(columns) - 20} more"
