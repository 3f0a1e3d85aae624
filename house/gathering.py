"""Labelled sets that others gave out, brought into the files that the house model's heads are trained on.

In: the folder of the sets in their makers' formats. Out: JSONL (text, pair, label) or SQuAD's JSON, shuffled by a fixed
seed, each pair of texts once, and a count for each set. `shipped` leaves out what may be measured with, but whose
licence does not go with a model that is given to everybody (NC: not for commerce; none stated).
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from bertsmith.data.reading import read_table
from bertsmith.text.sentences import split_sentences
from bertsmith.text.sources import list_sources, read_documents

FIRST, SECOND = ("premise", "sentence1", "text1", "question1"), ("hypothesis", "sentence2", "text2", "question2")
Records = list[dict[str, Any]]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Source:
    path: str  # below the folder of the sets
    licence: str
    is_shipped: bool = True
    times: int = 1  # in the mix
    elsewhere: float = 0.0  # the share of its questions that are asked once more, where their answer is not


# MNLI's dev_matched is asked for, so MNLI counts twice. What was made by machine (conjnli_auto) or by retrieval with a
# single judge (semi_automatic_wiki) stays out.
NLI = (
    Source("glue/MNLI/train.subset10k.tsv", "OANC and others (MultiNLI)", times=2),
    Source("nli/mnli_train_more.jsonl", "OANC and others (MultiNLI)", times=2),
    Source("nli/mnli_dev_mismatched_part.jsonl", "OANC and others (MultiNLI)"),
    Source("nli/snli_train_subset.jsonl", "CC BY-SA 4.0"),
    Source("nli/snli_dev.jsonl", "CC BY-SA 4.0"),
    Source("nli/cnli_counterfactual.jsonl", "Apache 2.0"),
    Source("nli/scitail.jsonl", "Apache 2.0"),
    Source("nli/conjnli_dev.jsonl", "MIT"),
    Source("nli_more/te_new_protocols.jsonl", "CC BY-SA 3.0"),
    Source("nli/sick.jsonl", "CC BY-NC-SA 3.0", is_shipped=False),
    Source("nli/xnli_en_dev.jsonl", "CC BY-NC 4.0", is_shipped=False),
    Source("nli/xnli_en_test.jsonl", "CC BY-NC 4.0", is_shipped=False),
    Source("nli/esxnli_en.jsonl", "not stated", is_shipped=False),
    Source("nli/anli_small.jsonl", "CC BY-NC 4.0", is_shipped=False),
    Source("nli_more/litl_crowd.jsonl", "not stated", is_shipped=False),
)
# The first three are SQuAD 1.1's 22,184 questions. SubjQA's answers are opinions, COVID-QA's texts are books: left out.
SQUAD = (
    Source("squad/train-v1.1.subset.json", "CC BY-SA 4.0", elsewhere=0.5),
    Source("qa/squad_train_more.json", "CC BY-SA 4.0", elsewhere=0.5),
    Source("qa/squad_train_cs224n_detok.json", "CC BY-SA 4.0", elsewhere=0.5),
    Source("qa/qamr.json", "MIT", elsewhere=0.15),
    Source("qa/policyqa.json", "MIT"),
    Source("qa/bipar_en.json", "CC BY-NC 4.0", is_shipped=False),
)
UNANSWERABLE = Source("squad/train-v2.0.first-10-articles.json", "CC BY-SA 4.0", times=2)
SENTIMENT = (Source("glue/SST-2/train.tsv", "not stated (Rotten Tomatoes)"), Source("imdb/train.jsonl", "not stated"))
DUPLICATES = (
    Source("glue/QQP/train.subset10k.tsv", "Quora's terms", is_shipped=False),
    Source("nli/pairs/qqp_train_more.jsonl", "Quora's terms", is_shipped=False),
)


def read_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Two texts and a label of each record; those without a label are left out."""
    for record in read_table(path).records:
        first, second = (next(str(record[name]) for name in names if record.get(name)) if any(
            record.get(name) for name in names) else "" for names in (FIRST, SECOND))  # fmt: skip
        label = next((str(record[name]) for name in ("gold_label", "label", "is_duplicate") if name in record), "")
        if first and second and label not in ("", "-"):
            yield first, second, label


def gather_nli(data: Path, shipped: bool = False) -> tuple[Records, dict[str, int]]:
    """SciTail says "not entailment" where its makers have "neutral"."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    counts: dict[str, int] = {}
    extra: Records = []
    for source in chosen(NLI, shipped):
        before = len(found)
        for first, second, label in read_pairs(data / source.path):
            record = {"text": first, "pair": second, "label": "neutral" if label == "not_entailment" else label}
            if (first, second) not in found:
                found[first, second] = record
                extra += [record] * (source.times - 1)
        counts[source.path] = len(found) - before
    return shuffle([*found.values(), *extra]), counts


def gather_questions(data: Path, shipped: bool = False, unanswerable: bool = False) -> tuple[Records, dict[str, int]]:
    """Articles of SQuAD's JSON; with `unanswerable` those of 2.0 too, of which a third has no answer, and questions
    that are asked where their answer is not."""
    articles: Records = []
    counts = {}
    for source in (*chosen(SQUAD, shipped), *((UNANSWERABLE,) if unanswerable else ())):
        some = json.loads((data / source.path).read_text(encoding="utf-8"))["data"]
        counts[source.path] = sum(len(one["qas"]) for article in some for one in article["paragraphs"])
        for turn in range(source.times):
            articles += [rename(article, f"{source.path}-{turn}-") for article in some]
        if unanswerable and source.elsewhere:
            asked = [rename(article, f"{source.path}-elsewhere-") for article in ask_elsewhere(some, source.elsewhere)]
            counts[f"{source.path}, asked elsewhere"] = sum(len(one["qas"]) for a in asked for one in a["paragraphs"])
            articles += asked
    return articles, counts


def ask_elsewhere(articles: Records, share: float, seed: int = 1) -> Records:
    """A share of the questions, each asked of another paragraph of its article that says none of its answers."""
    chance = random.Random(seed)
    found: Records = []
    for article in articles:
        moved: dict[int, list[dict[str, Any]]] = {}
        for place, one in enumerate(article["paragraphs"]):
            for qa in one["qas"]:
                said = [answer["text"].lower() for answer in qa["answers"]]
                others = [at for at, other in enumerate(article["paragraphs"])
                          if at != place and not any(text in other["context"].lower() for text in said)]  # fmt: skip
                if said and others and chance.random() < share:
                    moved.setdefault(chance.choice(others), []).append({**qa, "answers": [], "is_impossible": True})
        paragraphs = [{**article["paragraphs"][at], "qas": qas} for at, qas in sorted(moved.items())]
        found += [{**article, "paragraphs": paragraphs}] if paragraphs else []
    return found


def rename(article: dict[str, Any], before: str) -> dict[str, Any]:
    """The article with questions that no other set's are mistaken for."""
    paragraphs = [
        {**one, "qas": [{**qa, "id": f"{before}{qa['id']}"} for qa in one["qas"]]} for one in article["paragraphs"]
    ]
    return {**article, "paragraphs": paragraphs}


def gather_sentiment(data: Path, shipped: bool = False) -> tuple[Records, dict[str, int]]:
    """Sentences and whole reviews."""
    names = {"0": "negative", "1": "positive", "neg": "negative", "pos": "positive"}
    records: Records = []
    counts = {}
    for source in chosen(SENTIMENT, shipped):
        some = read_table(data / source.path).records
        counts[source.path] = len(some)
        records += [{"text": str(one.get("sentence") or one.get("text")), "label": names[str(one["label"])]}
                    for one in some]  # fmt: skip
    return shuffle(records), counts


def gather_search(data: Path, shipped: bool = False) -> tuple[Records, dict[str, int]]:
    """What belongs together: a question and its paragraph, a sentence and what follows from it (beside it what
    contradicts it), and, where it need not be shipped, two ways to ask the same."""
    records: Records = []
    articles, _ = gather_questions(data, shipped)
    for article in articles:
        for one in article["paragraphs"]:
            records += [{"text": qa["question"], "pair": one["context"]} for qa in one["qas"]
                        if not qa.get("is_impossible") and len(one["context"].split()) > 2]  # fmt: skip
    counts = {"questions": len(records)}
    by_premise: dict[str, dict[str, str]] = {}
    for record in gather_nli(data, shipped)[0]:
        by_premise.setdefault(record["text"], {})[record["label"]] = record["pair"]
    triples = [{"text": text, "pair": some["entailment"], "negative": some["contradiction"]}
               for text, some in by_premise.items() if {"entailment", "contradiction"} <= set(some)]  # fmt: skip
    counts["entailed, with a contradiction"] = len(triples)
    same = [{"text": first, "pair": second} for source in chosen(DUPLICATES, shipped)
            for first, second, label in read_pairs(data / source.path) if label == "1"]  # fmt: skip
    counts["asked twice"] = len(same)
    # A column that only some have would be another kind of example: questions get the one of their neighbours.
    plain = shuffle([*records, *same])
    for one, other in zip(plain, neighbours([record["pair"] for record in plain]), strict=True):
        one["negative"] = other
    return shuffle([*(one for one in plain if one["negative"]), *triples]), counts


def neighbours(pairs: list[str]) -> list[str]:
    """For each text the next one that is another; several questions are asked of one paragraph. "": there is none."""
    found = []
    for place, pair in enumerate(pairs):
        turns = (pairs[(place + step) % len(pairs)] for step in range(1, len(pairs)))
        found.append(next((other for other in turns if other != pair), ""))
    return found


def gather_follows(text: Path, pairs: int = 100_000, seed: int = 1) -> tuple[Records, dict[str, int]]:
    """Sentences and the next one of their document, and as many with one of another document (BERT's next sentence)."""
    chance = random.Random(seed)
    documents: list[list[str]] = []
    for document in read_documents(list_sources(text)):
        sentences = [one.strip() for one in split_sentences(document.text[:20_000])]
        good = [one for one in sentences if 5 <= len(one.split()) <= 60]
        documents += [good] if len(good) > 3 else []
    records: Records = []
    for turn in range(pairs if len(documents) > 1 else 0):
        mine, other = chance.sample(documents, 2)
        at = chance.randrange(len(mine) - 1)
        second, label = (mine[at + 1], "follows") if turn % 2 else (chance.choice(other), "random")
        records.append({"text": mine[at], "pair": second, "label": label})
    return shuffle(records), {"documents": len(documents), "pairs": len(records)}


def chosen(sources: Iterable[Source], shipped: bool) -> list[Source]:
    return [source for source in sources if source.is_shipped or not shipped]


def shuffle(records: list[Item], seed: int = 1) -> list[Item]:
    random.Random(seed).shuffle(records)
    return records


def write_records(path: Path, records: Records) -> Path:
    """JSON lines, or for articles SQuAD's form."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part")
    if path.suffix == ".json":
        aside.write_text(json.dumps({"version": "1.1", "data": records}, ensure_ascii=False), encoding="utf-8")
    else:
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        aside.write_text("".join(lines), encoding="utf-8")
    aside.replace(path)
    return path


def make_once(path: Path, gather: Callable[[], tuple[Records, dict[str, int]]]) -> Path:
    """The file, gathered unless it is there, and a line that says of what."""
    if not path.exists():
        records, counts = gather()
        write_records(path, records)
        parts = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        print(f"{path.name}: {len(records):,} records of {parts}", flush=True)
    return path


def shorten(path: Path, out: Path, lines: int = 400) -> Path:
    """A copy of the beginning of a file, for runs that only ask whether they run."""
    short = out / "-".join(path.parts[-3:])
    if not short.exists():
        out.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".json":
            article = json.loads(path.read_text(encoding="utf-8"))["data"][0]
            write_records(short, [{**article, "paragraphs": article["paragraphs"][:3]}])
        else:
            with path.open(encoding="utf-8") as file:
                short.write_text("".join(islice(file, lines)), encoding="utf-8")
    return short
