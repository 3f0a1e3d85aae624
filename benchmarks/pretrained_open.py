"""Whether a folder that pretraining wrote opens in its `transformers` class, and says there what it says here.

In: a folder, a corpus, what was asked. Out: the class, the keys that were missing, unexpected or of another shape, and
the loss of one batch of held-out rows on both sides, in full precision on the CPU.
"""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.data.rows_plan import Phase, open_passes
from bertsmith.data.shards import Corpus
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.objectives.making import Made, make_objective
from bertsmith.objectives.objective import Asked
from bertsmith.training.recipes import Asking

CLOSE = 1e-4  # of the loss: both sides add in another order
PAIRS = ("next_sentence_label", "sentence_order_label")  # what the classes call it, whichever the question was


def compare(folder: Path, corpus: Path, asking: Asking, length: int = 128, rows: int = 16) -> dict[str, Any]:
    """`asking` is what the run asked; a student of a teacher is asked for masked tokens here."""
    import transformers

    checkpoint, text = load_checkpoint(folder), Corpus.open(corpus, "held-out")
    made = make_objective(asking, text, 0)
    made.attach(checkpoint)
    made.go_on_from(folder, checkpoint.network)
    checkpoint.network.eval()
    asked = ask(made, text, length, rows)
    name = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"][0]
    model, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    keys = {kind: sorted(map(str, info[kind])) for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")}
    with torch.no_grad():
        hidden = checkpoint.network(asked.batch)
        found = made.objective.losses(checkpoint.network, hidden, asked.batch, asked.given)
        means = {each: float(total / count) for each, (total, count) in found.items()}
        if "replaced" in means:
            ours, theirs = means["replaced"], judge(model.eval(), asked)
        else:
            ours, theirs = sum(means.values()), fill(model.eval(), asked)
    close = abs(ours - theirs) <= CLOSE * abs(theirs)
    return {"class": name, **keys, "loss": ours, "their_loss": theirs, "opens": close and not any(keys.values())}


def ask(made: Made, corpus: Corpus, length: int, rows: int) -> Asked:
    """What the objective makes of the first held-out rows, the same each time."""
    size = min(rows * length, max(length, len(corpus.tokens)))
    (passes,) = open_passes(corpus, [Phase(length)], size, made.rows)
    read = passes.rows_of(0)
    batch = Batch.of_flat(read.ids, read.segments, read.lengths, torch.device("cpu"))
    given = {} if read.pairs is None else {"pairs": torch.from_numpy(np.asarray(read.pairs))}
    torch.manual_seed(0)
    with torch.no_grad():
        asked: Asked = made.objective.ask(batch, given, read.ordinary, 1.0)
    return asked


def inputs(model: Any, batch: Batch) -> dict[str, Tensor]:
    """The batch padded, with what the class takes."""
    given = {"input_ids": batch.pad(batch.ids, 0), "attention_mask": batch.mask.long()}
    takes = inspect.signature(model.forward).parameters
    if "token_type_ids" in takes and getattr(model.config, "type_vocab_size", 0) > 1:
        given["token_type_ids"] = batch.pad(batch.segments, 0)
    return given


def fill(model: Any, asked: Asked) -> float:
    """The class's own loss, of masked tokens and of pairs where it has them."""
    labels = torch.full_like(asked.batch.ids, -100).scatter(0, asked.given["at"], asked.given["gold"])
    given: dict[str, Any] = {"labels": asked.batch.pad(labels, -100)}
    if "pairs" in asked.given:
        takes = inspect.signature(model.forward).parameters
        given[next(name for name in PAIRS if name in takes)] = asked.given["pairs"]
    return float(model(**inputs(model, asked.batch), **given).loss)


def judge(model: Any, asked: Asked) -> float:
    """By ElectraForPreTraining's scores; its own loss counts special tokens too, which ours leaves out."""
    batch, judged = asked.batch, asked.given["judged"]
    scores = model(**inputs(model, batch)).logits[batch.mask]  # (tokens,), row after row as ours lie
    cost = F.binary_cross_entropy_with_logits(scores, asked.given["replaced"].float(), reduction="none")
    return float(cost[judged].mean())
