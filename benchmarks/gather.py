"""Training files that are spread over several files, put into one and shuffled.

    python benchmarks/gather.py --data DIR          # writes DIR/made/mnli.jsonl and DIR/made/qqp.jsonl

MNLI: the 10,000 of glue and those of nli/mnli_train_more.jsonl; QQP: the 10,000 of glue and nli/pairs.
"""

import argparse
import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path


def read_tsv(path: Path, first: str, second: str, label: str) -> Iterator[tuple[str, str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield row[first], row[second], row[label]


def read_jsonl(path: Path, first: str, second: str) -> Iterator[tuple[str, str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row[first], row[second], str(row["label"])


def gather(data: Path) -> dict[str, list[tuple[str, str, str]]]:
    glue, nli = data / "glue", data / "nli"
    mnli = [
        *read_tsv(glue / "MNLI/train.subset10k.tsv", "sentence1", "sentence2", "gold_label"),
        *read_jsonl(nli / "mnli_train_more.jsonl", "premise", "hypothesis"),
    ]
    qqp = [
        *read_tsv(glue / "QQP/train.subset10k.tsv", "question1", "question2", "is_duplicate"),
        *read_jsonl(nli / "pairs/qqp_train_more.jsonl", "text1", "text2"),
    ]
    return {"mnli": mnli, "qqp": qqp}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with glue and nli")
    options = parser.parse_args()
    if options.data is None:  # `make bench` calls every script, and the data cannot be shipped
        print("give --data DIR to write DIR/made")
        return
    made = options.data / "made"
    made.mkdir(exist_ok=True)
    for name, rows in gather(options.data).items():
        random.Random(0).shuffle(rows)
        lines = (json.dumps({"sentence1": a, "sentence2": b, "label": label}) + "\n" for a, b, label in rows)
        (made / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        print(f"{made.name}/{name}.jsonl: {len(rows):,} pairs")


if __name__ == "__main__":
    main()
