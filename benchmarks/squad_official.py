"""The official scores of predictions for SQuAD: what the published scripts print, from this package's own scorer.

    python benchmarks/squad_official.py DATA.json PREDICTIONS.json [MORE.json …]

DATA is a file as distributed (1.1 or 2.0), PREDICTIONS a map from question id to the text of its answer.
"""

import json
import sys
from pathlib import Path

from bertsmith.data.columns import find_roles
from bertsmith.data.reading import read_table
from bertsmith.tasks.span import Span
from bertsmith.tasks.squad_score import score_predictions


def main() -> None:
    if len(sys.argv) == 1:  # `make bench` calls every script, and the data is not shipped
        return print(__doc__)
    data, *files = sys.argv[1:]
    table = read_table(data)
    examples = Span.examples(table, find_roles([table], Span.roles, {}, Span.required)[0], {})
    print(f"{Path(data).name}: {len(examples):,} questions, in percent")
    for file in files:
        predictions = json.loads(Path(file).read_text(encoding="utf-8"))
        missing = sum(example.id not in predictions for example in examples)
        print(f"\n{Path(file).name}" + (f" (without {missing:,} of them, which count as wrong)" if missing else ""))
        for name, measure in score_predictions(predictions, examples).items():
            print(f"  {name:18} {100 * measure.point:6.2f}")


if __name__ == "__main__":
    main()
