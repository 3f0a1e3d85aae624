"""What the masked-token head would say at every layer, at every place of a text (the logit lens).

In: a text, perhaps with a mask, and a model with that head. Out: the likeliest pieces by layer and place, and the rank
that the final answer has there already. Where blocks norm first, a state passes the final norm before the head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.sense_maps import Array
from bertsmith.inspection.subject import Subject
from bertsmith.models.network import Network
from bertsmith.tasks.embed import choose_layers
from bertsmith.tasks.result import check_finite
from bertsmith.tasks.texts import take_count
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer

AT_ONCE = 128  # places whose whole vocabulary is in memory


@dataclass
class Lens(Picture):
    """By layer and place: `top` and `chances` (layers, places, k), the ids of the likeliest pieces and their
    probabilities; `ranks` (layers, places) of the `final` answer (places), the first piece of the model's last layer,
    and `own` of the piece that stands there, 1 is first."""

    kind: ClassVar[str] = "lens"

    text: str
    pieces: list[str]
    masks: list[int]  # the places of masks
    layers: list[int]
    top: Array
    chances: Array
    ranks: Array
    own: Array
    final: Array
    words: dict[int, str]  # how the ids of `top` and `final` are written

    def __post_init__(self) -> None:
        self.title = "What each layer would say"

    def data(self) -> dict[str, Any]:
        ids = sorted(self.words)
        numbers = {id: number for number, id in enumerate(ids)}
        return {
            "text": self.text,
            "pieces": self.pieces,
            "masks": self.masks,
            "layers": self.layers,
            "words": [self.words[id] for id in ids],
            "top": [[[numbers[id] for id in place] for place in layer] for layer in self.top.tolist()],
            "chances": [[[float(f"{x:.4g}") for x in place] for place in layer] for layer in self.chances.tolist()],
            "ranks": self.ranks.tolist(),
            "own": self.own.tolist(),
            "final": [numbers[id] for id in self.final.tolist()],
        }

    def at(self, layer: int, place: int) -> list[dict[str, Any]]:
        """The likeliest pieces at a layer (its number) and place: `token, token_str, score`."""
        row = self.layers.index(layer)
        found = zip(self.top[row, place].tolist(), self.chances[row, place].tolist(), strict=True)
        return [{"token": id, "token_str": self.words[id], "score": chance} for id, chance in found]

    def svg(self) -> str:
        from bertsmith.inspection.lens_svg import draw_lens

        return draw_lens(self)


def lens(model: Subject, text: str, *, layers: Sequence[int] | None = None, top_k: int = 5) -> Lens:
    """What the masked-token head says at each layer (0: the embedding) and place; the last layer's is the answer."""
    network = need_mask_head(model)
    kept = min(take_count("top_k", top_k), model.checkpoint.config.vocabulary)
    depth = model.checkpoint.config.depth
    chosen = choose_layers("all" if layers is None else layers, depth + 1)
    assert chosen is not None
    row = encode_whole(model, text)
    batch = Batch.of([row.ids], [row.segments], model.device)
    with torch.inference_mode():
        states = list(network.states(batch))
        final = _read_final(network, batch, states[-1])
        found = {layer: _look(network, batch, norm_state(network, states, layer), final, kept) for layer in chosen}
    top, chances, ranks, own = (np.stack([found[layer][part] for layer in chosen]) for part in range(4))
    masks = [place for place, id in enumerate(row.ids) if id == model.tokenizer.mask_id]
    answers = final.cpu().numpy()
    words = {int(id): spell_id(model.tokenizer, int(id)) for id in np.union1d(top, answers)}
    return Lens(text, [*row.pieces], masks, chosen, top, chances, ranks, own, answers, words)


def norm_state(network: Network, states: Sequence[Tensor], layer: int) -> Tensor:
    """A layer's state as the head reads the last one, which has passed the final norm already."""
    if network.final_norm is None or layer == len(states) - 1:
        return states[layer]
    normed: Tensor = network.final_norm(states[layer])
    return normed


def _score(network: Network, batch: Batch, state: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """The log-probabilities of the vocabulary, some places at a time."""
    for start in range(0, len(state), AT_ONCE):
        places = slice(start, min(start + AT_ONCE, len(state)))
        at = torch.arange(places.start, places.stop, device=state.device)
        yield places, network.score(state, batch, "mask", at).float().log_softmax(dim=-1)


def _read_final(network: Network, batch: Batch, state: Tensor) -> Tensor:
    """The first piece of the last layer at each place."""
    return torch.cat([scores.argmax(dim=-1) for _, scores in _score(network, batch, state)])


def _look(network: Network, batch: Batch, state: Tensor, final: Tensor, top_k: int) -> tuple[Array, ...]:
    """The likeliest ids and their chances (places, k), and the ranks (places,) of the final piece and of its own."""
    parts = []
    for places, scores in _score(network, batch, state):
        best = scores.topk(top_k)
        ranks = [
            1 + (scores > scores.gather(1, ids[places, None])).sum(dim=-1)  # those before it
            for ids in (final, batch.ids)
        ]
        parts.append((best.indices, best.values.exp(), *ranks))
    top, chances, ranks_final, ranks_own = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
    check_finite(chances)
    return top, chances, ranks_final, ranks_own


def need_mask_head(model: Subject) -> Network:
    """The network, if it has the head that predicts masked tokens and reads the last states."""
    network = model.predictor.network
    if "mask" not in model.checkpoint.heads:
        there = ", ".join(name for name in model.checkpoint.heads if name != "pool") or "none"
        raise BertsmithError(
            f"this model has no head for masked tokens, which the lens reads with (heads there: {there}); give a model "
            f"with its pretraining head, such as google-bert/bert-base-uncased or one that bertsmith pretrain made."
        )
    if network.mix is not None:
        raise BertsmithError("this model's heads read a mix of several layers, so that they cannot read a single one.")
    return network


def encode_whole(model: Subject, text: str) -> Encoding:
    """The row of a text that must fit."""
    if not isinstance(text, str) or not text.strip():
        raise BertsmithError("text is empty; give a sentence.")
    row = model.tokenizer.encode(text)
    if len(row) > model.limit:
        raise BertsmithError(
            f"the text has {len(row):,} tokens, but the model reads {model.limit:,}; give a shorter one."
        )
    return row


def spell_id(tokenizer: Tokenizer, id: int) -> str:
    """A piece as people read it; as the vocabulary spells it where that is nothing."""
    try:
        piece = tokenizer.piece(id)
    except BertsmithError:  # a row of the word table that no piece has
        return f"#{id}"
    return tokenizer.decode([id], skip_specials=False).strip() or piece
