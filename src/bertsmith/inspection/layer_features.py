"""What each layer of an encoder says of each text or word, for probes to read.

In: examples of classification or tagging. Out: (items, layers, width) and each item's label. Only what a probe reads is
kept of a batch, so that memory holds one vector an item and layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.data.examples import TagExample, TextExample
from bertsmith.errors import BertsmithError
from bertsmith.inspection.subject import Subject
from bertsmith.layers.heads import read
from bertsmith.models.network import Network
from bertsmith.tasks.alignment import align
from bertsmith.tasks.tag_rows import Layout, TagRow
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.text_rows import lay_out

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Items:
    """Texts, or words in their sentences: what each layer says of them, and what they are."""

    features: Array  # (items, layers, width) float32
    labels: list[str]
    types: list[str]  # a word's spelling, or a text: of which a control may be a function
    groups: list[int]  # the number of the example that an item is of: words of one sentence are no strangers
    truncated: int  # tokens that were cut away


class Layers(Task[Any, Any]):
    """The states of all layers at the places that a row asks for, or the row's first token or mean."""

    name = "probe"

    def __init__(self, subject: Subject, reads: str) -> None:
        super().__init__(subject.tokenizer, subject.limit, "head")
        self.reads = reads

    def scores(self, network: Network, batch: Batch, rows: Sequence[Row]) -> list[Tensor]:
        starts = np.cumsum((0, *batch.lengths))[:-1]
        at = [start + place for start, row in zip(starts, rows, strict=True) for place in row.at]
        places = torch.tensor(at, dtype=torch.long, device=batch.ids.device)
        found = [x.index_select(0, places) if at else read(x, batch, self.reads) for x in network.states(batch)]
        sizes = [len(row.at) if at else 1 for row in rows]
        return list(torch.stack(found, dim=1).float().cpu().split(sizes))  # (items, layers, width) each


def read_texts(subject: Subject, examples: Sequence[TextExample], reads: str, most: int) -> Items:
    """A vector a text: the first token's, or the mean of all."""
    kept = [example for example in examples if example.labels is not None][:most]
    wrong = next((example for example in kept if len(example.labels or ()) != 1), None)
    if wrong is not None:
        raise BertsmithError(f"{wrong.where or 'an example'} has not one label but several or none; a probe wants one.")
    rows = lay_out(subject.tokenizer, kept, [None] * len(kept), subject.limit, "head")
    found = subject.predictor.run(Layers(subject, reads), [some[0] for some in rows])
    labels = [example.labels[0] for example in kept if example.labels]
    texts = [f"{example.text}\0{example.pair or ''}" for example in kept]
    cut = sum(some[0].dropped for some in rows)
    return Items(_join(subject, found), labels, texts, list(range(len(kept))), cut)


def read_words(subject: Subject, examples: Sequence[TagExample], most: int) -> Items:
    """A vector a word: its first piece's. A long sentence is read in windows, each word where it lies most central."""
    layout = Layout(subject.tokenizer, subject.limit, "windows")
    labels: list[str] = []
    types: list[str] = []
    groups: list[int] = []
    asked: list[TagRow] = []
    for number, example in enumerate(examples):
        if example.tags is None:
            continue
        whole = subject.tokenizer.encode(example.text)
        offsets = whole.offsets[layout.lead : layout.lead + len(whole) - layout.specials]
        words = align(example.text, example.spans, offsets)
        for row in layout.rows(whole, words, False, None, example.where):
            if row.words:
                asked.append(row)
                labels += [example.tags[word] for word in row.words]
                types += [example.words[word] for word in row.words]
                groups += [number] * len(row.words)
        if len(labels) >= most:
            break
    found = subject.predictor.run(Layers(subject, "all"), asked)
    return Items(_join(subject, found), labels, types, groups, 0)


def _join(subject: Subject, found: list[Tensor]) -> Array:
    config = subject.checkpoint.config
    return torch.cat(found).numpy() if found else np.zeros((0, config.depth + 1, config.width), np.float32)
