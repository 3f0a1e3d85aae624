"""What a fine-tuning run knows about itself when it ends: the one object from which report, card and metrics are made.

Every field is plain JSON (dicts, lists, strings, numbers, None). All but the task are optional; a part that is absent
leaves no trace in what is written.
"""

from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

Metrics = dict[str, "Score"]  # the main metric first


class Score(TypedDict, total=False):
    value: float
    low: float | None  # the interval's ends
    high: float | None
    n: int  # examples


class Confusion(TypedDict, total=False):
    labels: list[str]
    counts: list[list[int]]  # counts[gold][predicted]; in a file that has too many labels for it, in its place:
    gold: list[int]  # examples of each label
    right: list[int]  # those of them that were given it
    most: list[tuple[int, int, int]]  # (gold, predicted, examples) of the labels taken most for others, by number
    left_out: dict[str, int]  # how many further pairs there are, and examples in them


class LabelScore(TypedDict):
    label: str
    precision: float
    recall: float
    f1: float
    support: int  # how often it is gold
    given: NotRequired[int]  # and how often found


class Bin(TypedDict):
    confidence: float  # the mean over the bin's predictions
    accuracy: float
    count: int


class Reliability(TypedDict, total=False):
    bins: list[Bin]  # as the model answers: after the temperature, where there is one
    before: list[Bin]  # with temperature 1
    ece_before: float
    ece_after: float
    temperature: float


class Lengths(TypedDict, total=False):
    edges: list[float]  # one more than counts
    counts: list[int]
    limit: int
    policy: str  # head, tail, head+tail, windows, error
    examples: int
    examples_cut: int
    tokens: int
    tokens_cut: int


class Finding(TypedDict, total=False):
    level: str  # error, warning, note
    sentence: str
    where: str


class Data(TypedDict, total=False):
    counts: dict[str, int]  # split -> examples
    files: dict[str, str]  # split -> where they came from
    balance: dict[str, dict[str, int]]  # split -> label -> examples
    findings: list[Finding]
    facts: dict[str, Any]  # name -> value, shown as they are


class Speed(TypedDict, total=False):
    examples_per_second: float
    tokens_per_second: float
    seconds: float
    since: int  # the step from which on they are counted, where a run was taken up again
    device: str
    peak_memory: int  # bytes
    utilization: float  # of the device's peak, in matrix products (MFU)
    peak: str  # what that peak is, and who says so


class Mistake(TypedDict, total=False):
    """One wrong answer. `score` says how sure the model was; the other keys are those of the task."""

    score: float | None
    where: str  # file and row
    text: str  # classify
    pair: str | None
    gold: Any  # classify: a label or a list of them; tag: a tag a word; span: the texts of the right answers
    predicted: Any  # classify and tag: as gold; span: a text, "" where the model says there is no answer
    words: list[str]  # tag
    question: str  # span
    context: str
    gold_start: int | None  # characters into the context
    predicted_start: int | None


class Member(TypedDict, total=False):
    """One of several tasks on an encoder; `value` and what follows are of its main metric."""

    name: str
    task: str
    weight: float  # of its loss
    share: float  # of the steps
    train: int  # examples
    dev: int
    test: int
    pairs: bool  # of texts
    split: str
    metric: str
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass
class RunFacts:
    task: str  # classify, tag, span, …; several: those of `members`
    title: str = ""
    base: str = ""  # the model that was fine-tuned
    date: str = ""
    version: str = ""  # of bertsmith
    several: bool = False  # classify: any number of labels a text
    pairs: bool = False  # classify: two texts
    mask: str = "[MASK]"  # as the tokenizer spells it
    labels: list[str] = field(default_factory=list)
    metrics: dict[str, Metrics] = field(default_factory=dict)  # split -> metrics
    level: float = 0.95  # of the intervals
    curves: list[dict[str, Any]] = field(default_factory=list)  # the records of log.jsonl
    tokens: list[tuple[int, int]] = field(default_factory=list)  # (step, tokens learned from by then), some of them
    best_step: int | None = None
    confusion: Confusion | None = None
    per_label: list[LabelScore] = field(default_factory=list)
    reliability: Reliability | None = None
    thresholds: dict[str, float] = field(default_factory=dict)  # label, or "no answer" -> threshold
    errors: list[Mistake] = field(default_factory=list)
    lengths: dict[str, Lengths] = field(default_factory=dict)  # split -> lengths
    data: Data = field(default_factory=lambda: Data())
    settings: dict[str, Any] = field(default_factory=dict)
    speed: Speed = field(default_factory=lambda: Speed())
    command: str = ""  # how to run it again
    members: list[Member] = field(default_factory=list)  # of several tasks on one encoder

    @property
    def split(self) -> str:
        """The split whose scores speak for the run: one that no decision has seen, if there is one."""
        return next((name for name in ("test", "dev") if self.metrics.get(name)), next(iter(self.metrics), ""))

    @property
    def main(self) -> Metrics:
        return self.metrics.get(self.split, {})
