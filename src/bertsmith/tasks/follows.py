"""Does B follow A? BERT's next-sentence head, ALBERT's sentence-order head, or one that learnt classes of pairs."""

from collections.abc import Sequence

from torch import Tensor

from bertsmith.tasks.classify import Classify
from bertsmith.tasks.embed import one_row_each
from bertsmith.tasks.result import Result, check_finite
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.trained import Settings
from bertsmith.text.tokenizer import Tokenizer


class Follows(Task[tuple[str, str], Result]):
    name = "follows"
    head = "follows"
    windows = False

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, labels: Sequence[str]) -> None:
        super().__init__(tokenizer, limit, truncate)
        self.refuse_windows()
        self.labels = labels

    def rows(self, examples: Sequence[tuple[str, str]]) -> list[list[Row]]:
        texts, pairs = [a for a, _ in examples], [b for _, b in examples]
        return one_row_each(self.encode_all(texts, pairs))

    def answer(self, example: tuple[str, str], rows: Sequence[Row], scores: Sequence[Tensor]) -> Result:
        chances = scores[0][0].softmax(dim=-1)
        check_finite(chances.numpy())
        pairs = zip(self.labels, chances.tolist(), strict=True)
        answers = [{"label": label, "score": chance} for label, chance in pairs]
        return Result(sorted(answers, key=lambda a: -a["score"]), truncated=rows[0].dropped)


class FollowsByClass(Classify):
    """Asked of a head that was trained to classify pairs; what `Follows` refuses it refuses too."""

    name = "follows"
    windows = False

    def __init__(self, tokenizer: Tokenizer, limit: int, truncate: str, settings: Settings) -> None:
        super().__init__(tokenizer, limit, truncate, settings)
        self.refuse_windows()
