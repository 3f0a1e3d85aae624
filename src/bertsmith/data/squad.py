"""SQuAD's nesting of articles, paragraphs and questions (1.1 and 2.0) becomes a table with a record a question."""

from typing import Any

from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

COLUMNS = ("id", "title", "question", "context", "answers")


def is_squad(content: Any) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        return False
    return any(isinstance(article, dict) and "paragraphs" in article for article in content["data"])


def read_squad(content: dict[str, Any], name: str) -> Table:
    """`answers` is None where a question has none written (a test file), and [] where 2.0 says there is none."""
    records: list[dict[str, Any]] = []
    for number, article in enumerate(content["data"], 1):
        place = f"{name}, article {number:,}"
        for n, paragraph in enumerate(_list(article, "paragraphs", place), 1):
            where = f"{place}, paragraph {n:,}"
            context = _text(paragraph, "context", where)
            for m, asked in enumerate(_list(paragraph, "qas", where), 1):
                question = _text(asked, "question", f"{where}, question {m:,}")
                title = article.get("title")
                record = {"id": asked.get("id"), "title": title, "question": question, "context": context}
                records.append({**record, "answers": asked.get("answers"), "is_impossible": asked.get("is_impossible")})
    if not records:
        raise BertsmithError(f"{name} holds no questions.")
    columns = list(COLUMNS)
    if any(record["is_impossible"] is not None for record in records):
        columns.append("is_impossible")
    if all(record["answers"] is None for record in records):
        columns.remove("answers")
    kept = [{column: record[column] for column in columns} for record in records]
    return Table(name, tuple(columns), kept, range(1, len(kept) + 1), "question", "squad")


def _list(part: Any, key: str, where: str) -> list[Any]:
    found = part.get(key) if isinstance(part, dict) else None
    if not isinstance(found, list):
        raise BertsmithError(f'{where}: a list "{key}" is needed here, as SQuAD has it.')
    return found


def _text(part: Any, key: str, where: str) -> str:
    found = part.get(key) if isinstance(part, dict) else None
    if not isinstance(found, str):
        raise BertsmithError(f'{where}: a text "{key}" is needed here, as SQuAD has it.')
    return found
