"""A task of one's own: how many stars a text deserves, a number learned by its squared error."""

import numpy as np
import torch

from bertsmith.data.examples import TextExample
from bertsmith.data.labels import text_examples
from bertsmith.tasks import measures
from bertsmith.tasks.result import Result
from bertsmith.tasks.task import Row
from bertsmith.tasks.trained import TrainedTask


class Stars(TrainedTask):
    name = "stars"
    head = "classify"  # which of the encoder's heads it trains: one score a row
    problem = "regression"  # so config.json tells others
    metric = "close"  # the best checkpoint is the one with most of these; more must be better
    roles, required = ("text", "label"), ("text", "label")  # the columns that are looked for

    @classmethod
    def examples(cls, table, columns, choices, gold=True):
        return text_examples(table, columns, gold=gold)

    @classmethod
    def settle(cls, examples, choices):
        """What is saved with the model; `labels` are the names of the head's outputs, here a single one."""
        stars = [float(example.labels[0]) for example in examples]
        bounds = {"least": min(stars), "most": max(stars)}
        return {"labels": ["stars"], "truncate": choices.get("truncate") or "head", **bounds}

    def rows(self, examples: list[TextExample]):
        least, most = self.settings["least"], self.settings["most"]
        texts = [example.text for example in examples]
        made = []
        encodings = self.tokenizer.encode_many(texts, length=self.limit, truncate=self.truncate)
        for example, encoding in zip(examples, encodings, strict=True):
            # The gold of one row, (1, outputs).
            gold = example.labels and np.array([[(float(example.labels[0]) - least) / (most - least)]], np.float32)
            made.append([Row(encoding.ids, encoding.segments, dropped=encoding.dropped, gold=gold)])
        return made

    def loss(self, scores, gold, batch, criterion):
        """What each row costs, (rows,), from scores and gold, both (rows, 1)."""
        missed = scores.float().sigmoid() - gold.nan_to_num(0.0)
        return torch.where(gold.isnan(), 0.0, missed.square())[:, 0]

    def answer(self, example, rows, scores):
        least, most = self.settings["least"], self.settings["most"]
        stars = least + (most - least) * float(scores[0].sigmoid())
        return Result([{"score": stars}], truncated=rows[0].dropped)

    def score(self, answers, examples):
        """Each metric as a sum over examples, so that every one has its interval."""
        found = np.array([answer[0]["score"] for answer in answers])
        error = np.abs(found - [float(example.labels[0]) for example in examples])
        return {"close": measures.mean(error <= 0.5), "error": measures.mean(error)}
