"""Runs the loop over made rows without a data file, and the reference beside it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from oracle import pad
from torch.nn import functional as F

from bertsmith.models.checkpoint import Checkpoint, save_checkpoint
from bertsmith.models.fitting import fit_head
from bertsmith.tasks.task import Row
from bertsmith.training.devices import Ranks
from bertsmith.training.folder import RunFolder
from bertsmith.training.loop import Loop, Watcher
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy


def fit(checkpoint: Checkpoint, task: Any, dropout: float | None = 0.0, seed: int = 0) -> Checkpoint:
    return fit_head(checkpoint, task.head, task.labels, seed=seed, dropout=dropout, problem=task.problem)[0]


def make_loop(
    folder: Path,
    checkpoint: Checkpoint,
    task: Any,
    rows: Sequence[Sequence[Row]],
    settings: Training,
    evaluate: Callable[[], dict[str, float]] | None = None,
    watchers: Sequence[Watcher] = (),
) -> Loop:
    run = RunFolder(folder)
    run.claim({}, overwrite=False)
    run.lock.release()  # as the end of a process would: tests start a run in the same one again

    def write(to: Path) -> None:
        save_checkpoint(checkpoint, to)

    study = TaskStudy(task, rows, settings)
    return Loop(checkpoint.network, study, settings, run, Ranks(), write, evaluate, watchers)


def gradients(loop: Loop, step: int = 0) -> dict[str, torch.Tensor]:
    """Those of one step, before clipping."""
    loop.network.train()
    loop.passes.run(loop.study.works(step, 0, 1, loop.progress.budget), step)
    return {name: p.grad.clone() for name, p in loop.network.named_parameters() if p.grad is not None}


def reference_loss(model: Any, task: str, rows: Sequence[Row]) -> torch.Tensor:
    """The mean over rows, or over labelled tokens, of the reference's scores, padded on the right."""
    ids, segments = ([torch.tensor(getattr(row, name)) for row in rows] for name in ("ids", "segments"))
    given = {"input_ids": pad(ids, model.config.pad_token_id, "right")}
    given["attention_mask"] = pad([torch.ones_like(row) for row in ids], 0, "right")
    if getattr(model.config, "type_vocab_size", 0):
        given["token_type_ids"] = pad(segments, 0, "right")
    found = model(**given)
    if task == "classify":
        return F.cross_entropy(found.logits.float(), torch.tensor([row.gold for row in rows]))
    if task == "tag":
        wanted = torch.full(given["input_ids"].shape, -100)
        for place, row in zip(wanted, rows, strict=True):
            place[torch.tensor(row.at)] = torch.as_tensor(row.gold)
        wanted[wanted < 0] = -100
        return F.cross_entropy(found.logits.float().flatten(0, 1), wanted.flatten())
    costs = [
        F.cross_entropy(scores[i, : len(row.ids)].float()[None], torch.tensor([row.gold[0, side]]))
        for i, row in enumerate(rows)
        for side, scores in enumerate((found.start_logits, found.end_logits))
    ]
    return torch.stack(costs).mean()


def train_reference(model: Any, task: str, chosen: Sequence[Sequence[Row]], settings: Training) -> list[float]:
    """A plain loop over the reference: the losses; the model has changed."""
    plain = [p for p in model.parameters() if p.ndim > 1]
    bare = [p for p in model.parameters() if p.ndim <= 1]  # biases and norms
    groups = [{"params": plain, "weight_decay": settings.weight_decay}, {"params": bare, "weight_decay": 0.0}]
    betas = (settings.beta1, settings.beta2)
    optimizer = torch.optim.AdamW(groups, lr=settings.rate, betas=betas, eps=settings.eps, foreach=False)
    losses, steps = [], len(chosen)
    climb = round(settings.warmup * steps)
    for step, rows in enumerate(chosen):
        share = (step + 1) / (climb + 1) if step < climb else (steps - step) / (steps - climb)
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * share
        loss = reference_loss(model, task, rows)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], settings.clip)
        optimizer.step()
        losses.append(loss.item())
    return losses
