"""What stands behind a mask as the sentence around it changes. In: variants of a sentence. Out: their distributions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.inspection.lens import encode_whole, need_mask_head, spell_id
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.sense_maps import Array
from bertsmith.inspection.subject import Subject
from bertsmith.tasks.masks import find_spans
from bertsmith.tasks.result import check_finite
from bertsmith.tasks.texts import list_texts, take_count

MOST = 20  # variants that one picture holds


@dataclass
class Masks(Picture):
    """`chances` (variants, words): the probability of each word that is among the likeliest of one variant; `entropies`
    in bits; `distances` from the first variant: the share of probability that moved (total variation)."""

    kind: ClassVar[str] = "masks"

    texts: list[str]
    spans: list[tuple[int, int]]
    ids: list[int]
    words: list[str]
    chances: Array
    entropies: list[float]
    distances: list[float]

    def __post_init__(self) -> None:
        self.title = "What stands behind the mask"

    def data(self) -> dict[str, Any]:
        return {
            "words": self.words,
            "variants": [
                {"text": text, "start": start, "end": end, "chances": [float(f"{x:.4g}") for x in row],
                 "entropy": round(entropy, 3), "distance": round(distance, 4)}
                for text, (start, end), row, entropy, distance in zip(
                    self.texts, self.spans, self.chances.tolist(), self.entropies, self.distances, strict=True)
            ],
        }  # fmt: skip

    def svg(self) -> str:
        from bertsmith.inspection.lens_svg import draw_masks

        return draw_masks(self)


def compare_masks(model: Subject, texts: Sequence[str], *, top_k: int = 5) -> Masks:
    """The distributions behind the one mask of each variant of a sentence, side by side: the `top_k` of each."""
    network = need_mask_head(model)
    given = list_texts([texts] if isinstance(texts, str) else texts)
    if not 1 <= len(given) <= MOST:
        raise BertsmithError(f"{len(given)} variants were given; compare 1 to {MOST}.")
    kept = min(take_count("top_k", top_k), model.checkpoint.config.vocabulary)
    rows, spans, places = [], [], []
    for number, text in enumerate(given, 1):
        row = encode_whole(model, text)
        masks = find_spans(model.tokenizer, row)
        if len(masks) != 1:
            raise BertsmithError(
                f"variant {number} has {len(masks)} masks; write {model.tokenizer.mask_token} once in each."
            )
        rows.append(row)
        spans.append(masks[0])
        places.append(row.ids.index(model.tokenizer.mask_id))  # type: ignore[arg-type]  # find_spans needs one
    chances = np.stack([_read(model, network, row, place) for row, place in zip(rows, places, strict=True)])
    order = _choose(chances, kept)
    entropies = [float(-(row * np.log2(np.maximum(row, 1e-300))).sum()) for row in chances]
    moved = [float(np.abs(row - chances[0]).sum() / 2) for row in chances]
    words = [spell_id(model.tokenizer, id) for id in order]
    return Masks(given, spans, order, words, chances[:, order], entropies, moved)


def _read(model: Subject, network: Any, row: Any, place: int) -> Array:
    """The probabilities of the whole vocabulary at a place."""
    batch = Batch.of([row.ids], [row.segments], model.device)
    with torch.inference_mode():
        at = torch.tensor([place], device=model.device)
        scores = network.score(network(batch), batch, "mask", at)[0].double().softmax(dim=-1)
    found: Array = scores.cpu().numpy()
    check_finite(found)
    return found


def _choose(chances: Array, top_k: int) -> list[int]:
    """The likeliest ids of each variant, the first one's first, each once."""
    best = (np.argsort(-row, kind="stable")[:top_k].tolist() for row in chances)
    return list(dict.fromkeys(id for some in best for id in some))
