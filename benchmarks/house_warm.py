"""The house model's row of tasks that start from its NLI adapter, by adapters that go on from it: minutes on a CPU.

    GLUE="bertsmith evaluate --benchmark glue DIR --model src/bertsmith/house/adapters/nli --lora 8 --seeds 5"
    GLUE="$GLUE --length 256 --precision bf16 --evaluate-every 100000"      # the weights of the last step count
    $GLUE --tasks rte  --rate 1.5e-4 --epochs 3 --out warm-rte
    $GLUE --tasks stsb --rate 5e-4   --epochs 3 --out warm-stsb
    $GLUE --tasks mrpc --rate 3e-4   --epochs 2 --out warm-mrpc
    python benchmarks/house_warm.py warm-rte warm-stsb warm-mrpc --out FILE # with CoLA and SST-2 of results/house.json

benchmarks/house.py fine-tunes all weights, from a model that was fine-tuned so; that wants a GPU. A median has its
seeds beside it, and the 95 % interval of the run in their middle.
"""

import argparse
import json
from datetime import date
from pathlib import Path
from typing import Any

from house_rows import WARM_FIVE
from house_summary import take_mean, take_median
from origins import find_commit, name_machine

KNOWN = Path(__file__).parent / "results" / "house.json"
METRICS = {"rte": "accuracy", "stsb": "spearman", "mrpc": "accuracy"}


def read_task(folder: Path) -> tuple[str, dict[str, Any]]:
    """What `evaluate --benchmark glue --out FOLDER` left of its one task."""
    (task,) = json.loads((folder / "results.json").read_text(encoding="utf-8"))["tasks"]
    metric = METRICS[task["task"]]
    runs = [json.loads((folder / run["folder"] / "metrics.json").read_text(encoding="utf-8"))["metrics"]["dev"][metric]
            for run in task["runs"]]  # fmt: skip
    told = {**take_median(runs, metric), "of_seeds": len(runs), "settings": task["settings"]}
    return f"{task['task']}-warm", {**told, "seconds": round(sum(run["seconds"] for run in task["runs"]))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="DIR", help="what evaluate --out DIR wrote, a task each"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=1, help="that each run had")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    if not options.folders:  # `make bench` calls every script
        return parser.print_help()
    straight = json.loads(KNOWN.read_text(encoding="utf-8"))["summary"]["house"]["glue5"]["tasks"]
    tasks = {name: straight[name] for name in ("cola", "sst2")} | dict(map(read_task, options.folders))
    found = take_mean(tasks, WARM_FIVE)
    head = {"about": f"{name_machine(options)}, a run at a time on each core", "date": str(date.today()),
            "commit": find_commit(), "command": "python benchmarks/house_warm.py"}  # fmt: skip
    text = json.dumps({"summary": {"house": {"glue5-warm": found}}, **head}, indent=1) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(json.dumps({"value": found["value"], **{name: one["scores"] for name, one in tasks.items()}}))


if __name__ == "__main__":
    main()
