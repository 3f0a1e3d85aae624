"""Of all that a person may choose for a fine-tuning, what this one read: that much stands on its card.

In: the choices, and the task as it is trained. Out: setting -> value, without those that nothing looked at.
"""

from dataclasses import asdict, fields
from typing import Any

from bertsmith.tasks.trained import TrainedTask
from bertsmith.training.choices import TASKS, USED_BY, TaskChoices
from bertsmith.training.settings import Training


def tell_choices(choices: TaskChoices, task: str, given_dev: bool) -> dict[str, Any]:
    """About the task; a task of a person's own may look at any."""
    idle = {name for name, users in USED_BY.items() if task in TASKS and task not in users}
    idle |= {"dev_share"} if given_dev else set()
    return {name: value for name, value in asdict(choices).items() if value is not None and name not in idle}


def tell_training(training: Training, *tasks: TrainedTask[Any, Any]) -> dict[str, Any]:
    """About training, for one task or several on one encoder."""
    read = {
        "momentum": training.optimizer == "muon",
        "cooldown": training.schedule == "trapezoid",
        "adversarial_reach": bool(training.adversarial),
        "lora_alpha": bool(training.lora),
        "lora_targets": bool(training.lora),
        "recurrent": training.features != "none",
        "cache": training.features != "none",
        **dict.fromkeys(("focal", "smoothing"), any(task.classes for task in tasks)),
        "class_weights": any(task.classes and task.weighs for task in tasks),
        **dict.fromkeys(("r_drop", "adversarial"), any(not task.together and not task.whole for task in tasks)),
    }
    known = {**{field.name: getattr(training, field.name) for field in fields(training)}, "rate": training.peak}
    return {name: value for name, value in known.items() if value is not None and read.get(name, True)}
