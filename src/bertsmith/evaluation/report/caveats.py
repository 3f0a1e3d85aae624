"""What one should know before quoting a run's scores, in sentences, from the facts of the run."""

from bertsmith.data.findings import counted
from bertsmith.evaluation.report.confused import count_gold, count_right
from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.numbers import is_number, show_score
from bertsmith.evaluation.report.wording import describe_cutting

FEW, RARE = 200, 10  # examples: a split whose scores are loose; a label whose scores say little


def find_caveats(facts: RunFacts) -> list[str]:
    nothing = tell_baseline(facts)
    found = [nothing] if nothing else []
    found += [*_about_choices(facts), *_about_size(facts), *_about_labels(facts), *_about_cutting(facts)]
    broken = sum("loss" in record and not is_number(record["loss"]) for record in facts.curves)
    if broken:
        found.append(f"The training loss was not a finite number in {counted(broken, 'record')} of the log.")
    return found


def tell_baseline(facts: RunFacts) -> str:
    """Where the model does no better than one that reads nothing; else the empty string."""
    if facts.several:
        return _tell_several(facts)
    if facts.task == "tag":
        return _tell_tags(facts)
    gold = count_gold(facts.confusion) if facts.confusion else []
    total, right = sum(gold), sum(count_right(facts.confusion)) if facts.confusion else 0
    most = max(gold, default=0)  # examples of the most frequent label
    if facts.task != "classify" or not total or right > most:
        return ""
    label = _quote(facts.confusion["labels"][gold.index(most)]) if facts.confusion else ""
    return _no_better(facts, "accuracy", right / total, f"saying {label} to everything", most / total)


def _tell_several(facts: RunFacts) -> str:
    found = [row["label"] for row in facts.per_label if row["recall"] > 0]
    if len(facts.per_label) < 2:
        return ""
    if len(found) < 2:
        which = f"only the label {_quote(found[0])} is ever" if found else "no label is ever"
        return f"On {facts.split}, {which} rightly given: the model has learned next to nothing."
    score = facts.main.get("micro_f1", {})
    top = max(facts.per_label, key=lambda row: row["support"])
    gold = sum(row["support"] for row in facts.per_label)
    blind = 2 * top["support"] / (score.get("n", 0) + gold)
    if "n" not in score or score["value"] > blind:
        return ""
    return _no_better(facts, "micro F1", score["value"], f"giving {_quote(top['label'])} to everything", blind)


def _tell_tags(facts: RunFacts) -> str:
    gold = sum(row["support"] for row in facts.per_label)
    if not gold:
        return ""
    if "f1" in facts.main:  # of entities
        found = any(row["recall"] > 0 for row in facts.per_label)
        return "" if found else f"On {facts.split}, no entity is ever found: the model has learned next to nothing."
    top = max(facts.per_label, key=lambda row: row["support"])
    blind, value = top["support"] / gold, facts.main.get("accuracy", {}).get("value", 1.0)
    if value > blind:
        return ""
    return _no_better(facts, "accuracy", value, f"saying {_quote(top['label'])} to every word", blind)


def _no_better(facts: RunFacts, name: str, value: float, what: str, blind: float) -> str:
    told = f"On {facts.split}, the {name} of {show_score(value)} is no better than {what}"
    return f"{told}, which would give {show_score(blind)}."


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
    few = [one["name"] for one in facts.members if 0 < one.get("n", 0) < FEW]
    if few:
        told = f"fewer than {FEW} examples were scored, so differences inside the interval mean nothing."
        found.append(f"{', '.join(few)}: {told}")
    elif 0 < n < FEW:
        told = f"{counted(n, 'example')} in {facts.split} {'is' if n == 1 else 'are'} few"
        found.append(f"{told}: differences inside the interval mean nothing.")
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
    shown = ", ".join(map(_quote, labels[:6]))
    more = f" and {len(labels) - 6} more" if len(labels) > 6 else ""
    return f"Label{'s' * (len(labels) > 1)} {shown}{more}"


def _quote(label: str) -> str:
    return f"“{label if len(label) <= 40 else label[:39] + '…'}”"


def _about_cutting(facts: RunFacts) -> list[str]:
    told = [(split, describe_cutting(lengths)) for split, lengths in facts.lengths.items()]
    return [f"In {split}, {sentence}" for split, sentence in told if sentence and "nothing is cut" not in sentence]
