"""How the learning rate goes over the steps: a share of the peak, a pure function of the step."""

import math
import sys
from collections.abc import Callable

from bertsmith.training.settings import Training


def _trapezoid(done: float, settings: Training) -> float:
    return min(1.0, (1 - done) / settings.cooldown) if settings.cooldown else 1.0


# From the share of the steps after the warm-up that are done.
SHAPES: dict[str, Callable[[float, Training], float]] = {
    "linear": lambda done, settings: 1 - done,
    "cosine": lambda done, settings: 0.5 * (1 + math.cos(math.pi * done)),
    "constant": lambda done, settings: 1.0,
    "trapezoid": _trapezoid,
}


USUAL_EPOCHS, MOST_EPOCHS, FEWEST_STEPS = 3, 20, 100


def count_steps(steps_an_epoch: int, settings: Training) -> int:
    """All steps of a run; small data is seen more often, as a dozen steps teach a fresh head nothing.

    `max_steps` counts for itself; where epochs are given as well, it only ends them sooner.
    """
    if settings.max_steps and settings.epochs is None:
        return settings.max_steps
    enough = min(MOST_EPOCHS, math.ceil(FEWEST_STEPS / max(1, steps_an_epoch)))
    epochs = max(USUAL_EPOCHS, enough) if settings.epochs is None else settings.epochs
    return min(max(1, round(epochs * steps_an_epoch)), settings.max_steps or sys.maxsize)


def rate_share(step: int, steps: int, settings: Training) -> float:
    """The share of the peak at this step, counted from 0; the first is above 0, the one after the last would be 0."""
    climb = round(settings.warmup * steps)
    if step < climb:
        return (step + 1) / (climb + 1)
    # The trapezoid's fall is a share of all steps, not of those after the warm-up.
    done = (step - climb) / max(1, steps - climb) if settings.schedule != "trapezoid" else step / max(1, steps)
    return max(0.0, SHAPES[settings.schedule](min(1.0, done), settings))


def layers_awake(step: int, steps_an_epoch: int, depth: int, settings: Training) -> int:
    """How many of the encoder's layers learn, counted from the top; depth + 1 is all of them and the embedding."""
    if not settings.unfreeze:
        return depth + 1
    return min(depth + 1, int(step / max(1, settings.unfreeze * steps_an_epoch)))
