"""What one should know before quoting a run's scores, in sentences, from the facts of the run."""

from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.numbers import is_number
from bertsmith.evaluation.report.wording import describe_cutting

FEW, RARE = 200, 10  # examples: a split whose scores are loose; a label whose scores say little


def find_caveats(facts: RunFacts) -> list[str]:
    found = [*_about_choices(facts), *_about_size(facts), *_about_labels(facts), *_about_cutting(facts)]
    broken = sum("loss" in record and not is_number(record["loss"]) for record in facts.curves)
    if broken:
        found.append(f"The training loss was not a finite number in {broken:,} records of the log.")
    return found


def _about_choices(facts: RunFacts) -> list[str]:
    if not facts.metrics.get("dev"):
        return []
    chosen = ["the checkpoint"] if facts.best_step is not None else []
    chosen += ["the thresholds" if len(facts.thresholds) > 1 else "the threshold"] if facts.thresholds else []
    chosen += ["the temperature"] if facts.reliability and "temperature" in facts.reliability else []
    if not chosen:
        return []
    what = chosen[0] if len(chosen) == 1 else ", ".join(chosen[:-1]) + " and " + chosen[-1]
    told = f"The dev set chose {what}, so its scores are a little better than new data will give"
    return [f"{told}; the test set chose nothing." if facts.metrics.get("test") else f"{told}; no test set was scored."]


def _about_size(facts: RunFacts) -> list[str]:
    if not facts.main:
        return []
    scores = list(facts.main.values())
    n = next((score["n"] for score in scores if score.get("n")), 0)
    found = []
    if 0 < n < FEW:
        found.append(f"{n} examples in {facts.split} are few: differences inside the interval mean nothing.")
    if any(is_number(score.get("low")) for score in scores):
        found.append(
            f"The {100 * facts.level:g} % intervals come from resampling the examples of one run; another seed or "
            "other training examples move the scores too."
        )
    return found


def _about_labels(facts: RunFacts) -> list[str]:
    found = []
    rare = [row["label"] for row in facts.per_label if row["support"] < RARE]
    if rare:
        found.append(f"{_name(rare)}: fewer than {RARE} examples each in what was scored, so these scores say little.")
    balance = facts.data.get("balance", {}).get("train", {})
    unseen = [row["label"] for row in facts.per_label if row["support"] and not balance.get(row["label"])]
    # Where most are missing the two tables count different things: entities here, tags there.
    if unseen and len(unseen) * 2 < len(facts.per_label):
        found.append(f"{_name(unseen)}: not in the training data, so never predicted.")
    return found


def _name(labels: list[str]) -> str:
    shown = ", ".join(f"“{label if len(label) <= 40 else label[:39] + '…'}”" for label in labels[:6])
    more = f" and {len(labels) - 6} more" if len(labels) > 6 else ""
    return f"Label{'s' * (len(labels) > 1)} {shown}{more}"


def _about_cutting(facts: RunFacts) -> list[str]:
    told = [(split, describe_cutting(lengths)) for split, lengths in facts.lengths.items()]
    return [f"In {split}, {sentence}" for split, sentence in told if sentence and "nothing is cut" not in sentence]
