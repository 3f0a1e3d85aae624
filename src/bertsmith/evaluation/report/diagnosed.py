"""What the data doctor found, as facts of a run."""

from typing import Any

from bertsmith.data.findings import Diagnosis
from bertsmith.evaluation.report.facts import Finding, Lengths, RunFacts


def add_diagnosis(facts: RunFacts, diagnosis: Diagnosis, policy: str) -> None:
    """Findings, counts, class balance and lengths; `policy` is what the run does with examples that are too long."""
    sides: dict[str, dict[str, Any]] = {side: diagnosis.facts.get(side) or {} for side in ("train", "dev")}
    sides = {side: known for side, known in sides.items() if known}
    data = facts.data
    data["findings"] = [Finding(level=f.level, sentence=f.sentence, where=f.where) for f in diagnosis.findings]
    data["counts"] = {**{side: known["examples"] for side, known in sides.items()}, **data.get("counts", {})}
    data["balance"] = {side: dict(known["labels"]) for side, known in sides.items() if known.get("labels")}
    plain = {
        side: {k: v for k, v in known.items() if k != "examples" and not isinstance(v, dict | list)}
        for side, known in sides.items()
    }
    data["facts"] = {**data.get("facts", {}), **{side: known for side, known in plain.items() if known}}
    for side, known in sides.items():
        lengths = known.get("lengths", {})
        if lengths.get("histogram"):
            facts.lengths[side] = _read_lengths(lengths, known["examples"], policy)


def _read_lengths(lengths: dict[str, Any], examples: int, policy: str) -> Lengths:
    bars = lengths["histogram"]
    # A bar's last length is its edge, so that one which begins at the limit holds only what is longer.
    ends = [bar["to"] or lengths["most"] for bar in bars]
    found = Lengths(edges=[bars[0]["from"], *ends], counts=[bar["count"] for bar in bars])
    found["policy"], found["examples"], found["tokens"] = policy, examples, lengths["total"]
    if "limit" in lengths:
        found["limit"], found["examples_cut"] = lengths["limit"], lengths["cut"]
        found["tokens_cut"] = 0 if policy == "windows" else lengths["dropped"]
    return found
