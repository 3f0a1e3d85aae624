"""Which combination to try next, by optuna's tree-structured Parzen estimator (Bergstra et al. 2011): an extra.

In: a `Space` and what the combinations so far came to. Out: the next ones. With one seed and the same scores it
proposes the same, so that a sweep that was interrupted asks for the runs that it has already.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.training.space import Range, Space


class Proposals:
    def __init__(self, space: Space, seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise BertsmithError(
                "search=optuna needs the extra `sweep`: pip install 'bertsmith[sweep]'; the grid needs nothing."
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna, self.space = optuna, space
        self.asked: list[Any] = []
        self.study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def ask(self, count: int) -> list[dict[str, Any]]:
        self.asked = [self.study.ask() for _ in range(count)]
        return [self._propose(trial) for trial in self.asked]

    def tell(self, scores: Sequence[float | None]) -> None:
        """In the order of the last `ask`; None: it failed."""
        failed = self.optuna.trial.TrialState.FAIL
        for trial, score in zip(self.asked, scores, strict=True):
            if score is None:
                self.study.tell(trial, state=failed)
            else:
                self.study.tell(trial, score)

    def _propose(self, trial: Any) -> dict[str, Any]:
        found = {name: _suggest_number(trial, name, span) for name, span in self.space.ranges.items()}
        for name, values in self.space.lists.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of kinds of values that it could not store in a database
                found[name] = trial.suggest_categorical(name, list(values))
        return {name: found[name] for name in (*self.space.lists, *self.space.ranges)}


def _suggest_number(trial: Any, name: str, span: Range) -> float:
    if span.whole:
        return int(trial.suggest_int(name, int(span.low), int(span.high), log=span.log))
    short = float(f"{trial.suggest_float(name, span.low, span.high, log=span.log):.3g}")  # as one would type it
    return min(max(short, span.low), span.high)
