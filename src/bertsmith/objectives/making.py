"""The objective that a recipe asks for. In: what is asked, a corpus. Out: an `Objective`, and the rows it reads."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bertsmith.data.rows_plan import RowKind
from bertsmith.data.rows_words import begins_word
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from bertsmith.models.fitting import fresh_tensor
from bertsmith.models.network import Network
from bertsmith.objectives.combining import Stages, Sum
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.next_token import NextToken
from bertsmith.objectives.objective import Objective, Vocabulary
from bertsmith.objectives.pairs import SentencePair
from bertsmith.objectives.replaced import ReplacedTokens, share_tables

if TYPE_CHECKING:
    from bertsmith.training.recipes import Asking


GENERATOR = "generator"  # the folder of ELECTRA's, in that of the model that learns with it


@dataclass
class Made:
    objective: Any
    rows: RowKind = "single"
    generates: bool = False  # whether a generator must be made for the network
    generator: Checkpoint | None = None

    def attach(self, checkpoint: Checkpoint) -> None:
        """Give the network the parts that learn with it, so that one optimizer moves them all."""
        if self.generates:
            self.generator = make_generator(checkpoint)
            self.objective = ReplacedTokens(self.objective.masking, self.generator.network)
        for name, part in self.objective.parts().items():
            checkpoint.network.add_module(name, part)

    def save(self, folder: Path) -> None:
        """What learns beside the network goes into folders of its own, which others open too."""
        if self.generator is not None:
            (folder / GENERATOR).mkdir(exist_ok=True)
            save_checkpoint(self.generator, folder / GENERATOR)

    def go_on_from(self, folder: Path) -> bool:
        """Take the generator that lies beside a model, if there is one of this shape."""
        if self.generator is None or not (folder / GENERATOR / "config.json").exists():
            return False
        known = load_checkpoint(folder / GENERATOR)
        if known.config != self.generator.config or "mask" not in known.heads:
            return False
        copy_weights(known.network, self.generator.network)
        return True

    def to(self, device: torch.device) -> None:
        for part in self.objective.parts().values():
            part.to(device)


def copy_weights(known: Network, network: Network) -> None:
    """All numbers of one network into another of the same make."""
    with torch.no_grad():
        for name in network.names:
            network.get_parameter(name).copy_(known.tensor(name))


@dataclass
class Pending:
    """Replaced tokens before their generator is known."""

    masking: MaskedTokens
    heads: tuple[str, ...] = ("replaced",)

    def parts(self) -> dict[str, nn.Module]:
        return {}


def make_objective(asking: "Asking", corpus: Corpus, seed: int) -> Made:
    masked = _mask(asking, corpus, seed)
    pairs: dict[str, RowKind] = {"masked+next": "next", "masked+order": "order"}
    if asking.asks in pairs:
        kind = pairs[asking.asks]
        both: Objective = Sum(masked, SentencePair("next" if kind == "next" else "order"))
        return Made(both, kind)
    if asking.asks == "causal+masked":
        onward = NextToken(masked.vocabulary, asking.z_loss)
        return Made(Stages([(onward, asking.causal_share), (masked, 1 - asking.causal_share)]))
    if asking.asks == "replaced":
        return Made(Pending(masked), generates=True)
    if asking.asks == "distilled":
        return Made(_distil(asking, masked))
    return Made(masked)


def _mask(asking: "Asking", corpus: Corpus, seed: int) -> MaskedTokens:
    specials = corpus.specials
    if "mask" not in specials:
        raise BertsmithError(f"{corpus.folder} names no mask token; build the corpus with a tokenizer that has one.")
    tokenizer = corpus.tokenizer()
    begins = None
    if tokenizer is not None and (asking.whole_words or asking.spans):
        found = torch.from_numpy(begins_word(tokenizer))[: corpus.vocabulary]
        begins = torch.ones(corpus.vocabulary, dtype=torch.bool)  # ids that no piece has begin words
        begins[: len(found)] = found
    known = sorted({*specials.values(), *corpus.header.get("special_ids", ())})
    vocabulary = Vocabulary(corpus.vocabulary, specials["mask"], tuple(known), begins)
    masked, random = (0.85, 0.0) if asking.asks == "replaced" else (0.8, 0.1)  # as ELECTRA's first release has it
    return MaskedTokens(
        vocabulary, asking.rates(), masked, random, whole_words=asking.whole_words, spans=asking.spans,
        static=asking.static, seed=seed, z_loss=asking.z_loss,
    )  # fmt: skip


def _distil(asking: "Asking", masked: MaskedTokens) -> Objective:
    from bertsmith.models.adapters import open_checkpoint
    from bertsmith.models.hub import locate
    from bertsmith.objectives.distillation import Distillation

    teacher = open_checkpoint(locate(str(asking.teacher))).network
    return Distillation(masked, teacher)


def make_generator(checkpoint: Checkpoint) -> Checkpoint:
    """ELECTRA's: as deep as the network, a quarter as wide, with its tables where their shapes allow it."""
    config = checkpoint.config
    heads = max(1, config.heads // 4)
    width = max(heads * 8, config.width // 4 // heads * heads)
    narrow = replace(config, width=width, heads=heads, inner=max(8, config.inner // 4), embed_width=config.embed_width)
    head = checkpoint.family.heads(checkpoint.settings)["mask"]
    with torch.device("meta"):
        generator = Network(narrow, {"mask": head.shape(narrow, 0)})
    chance = torch.Generator().manual_seed(1)
    state = {name: fresh_tensor(name, generator.tensor(name).shape, chance) for name in generator.names}
    generator.load_state_dict(state, strict=True, assign=True)
    generator.requires_grad_(True)
    share_tables(checkpoint.network, generator)
    ids = {key: value for key, value in checkpoint.settings.items() if key.endswith("_token_id")}
    return Checkpoint(checkpoint.family, narrow, {"mask": head}, generator, ids)
