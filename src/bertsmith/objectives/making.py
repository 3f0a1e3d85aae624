"""The objective that a recipe asks for. In: what is asked, a corpus. Out: an `Objective`, and the rows it reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bertsmith.data.rows_plan import RowKind
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config, HeadShape
from bertsmith.layers.heads import Head
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from bertsmith.models.family import Family
from bertsmith.models.files import WEIGHTS, read_tensors, write_tensors
from bertsmith.models.fitting import fresh_tensor
from bertsmith.models.growing import grow_rows, grow_vocabulary
from bertsmith.models.network import Network
from bertsmith.objectives.combining import Stages, Sum
from bertsmith.objectives.distillation import Distillation
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.next_token import NextToken
from bertsmith.objectives.objective import Objective
from bertsmith.objectives.pairs import SentencePair
from bertsmith.objectives.preparing import open_teacher, read_phrases, read_vocabulary
from bertsmith.objectives.relations import AttentionRelations
from bertsmith.objectives.replaced import ReplacedTokens, share_tables
from bertsmith.objectives.wording import PAIRED, TAUGHT, Stage, name_heads, name_questions

if TYPE_CHECKING:
    from bertsmith.training.recipes import Asking


GENERATOR = "generator"  # the folder of ELECTRA's, in that of the model that learns with it
ASIDE = "aside"  # in its place, for a family that has no form for them: the weights of a generator and a judge
Build = Callable[[Network, Network | None, Head | None], Objective]  # the network that learns, its generator, a judge


@dataclass
class Made:
    objective: Any
    rows: RowKind = "single"
    generator_share: float = 0.0  # of the network's width; 0: no generator is needed
    build: Build | None = None  # the objective, where it must see the network first
    teacher: Network | None = None
    generator: Checkpoint | None = None  # of ELECTRA's family, which others open
    aside: dict[str, nn.Module] = field(default_factory=dict)  # of other families: what learns with it, by name
    notes: list[str] = field(default_factory=list)  # sentences about what a person may not expect

    @property
    def pairs(self) -> str:
        """What is asked of two texts, if anything."""
        return "" if self.rows == "single" else self.rows

    def attach(self, checkpoint: Checkpoint) -> None:
        """Give the network the parts that learn with it, so that one optimizer moves them all."""
        generator, judge = None, None
        if self.generator_share:
            made = make_generator(checkpoint, self.generator_share)
            generator = made.network
            if "replaced" in checkpoint.heads:
                self.generator = made
            else:
                judge = make_judge(checkpoint.config)
                self.aside = {GENERATOR: generator, "judge": judge}
        if self.build is not None:
            self.objective = self.build(checkpoint.network, generator, judge)
        for name, part in self.objective.parts().items():
            checkpoint.network.add_module(name, part)

    def heads(self, family: Family, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Those that the network needs; where its family has none to tell replaced tokens, one learns beside it."""
        known = family.heads(dict(settings))
        return tuple(name for name in self.objective.heads if name != "replaced" or name in known)

    def save(self, folder: Path, network: Network) -> None:
        """What learns beside the network goes into a folder of its own, which others open too where they can."""
        if self.generator is not None:
            (folder / GENERATOR).mkdir(exist_ok=True)
            save_checkpoint(self.generator, folder / GENERATOR)
        if self.aside:
            (folder / ASIDE).mkdir(exist_ok=True)
            tensors = {name: p.detach() for name, p in self._beside(network).items()}
            write_tensors(folder / ASIDE / WEIGHTS, tensors)

    def _beside(self, network: Network) -> dict[str, nn.Parameter]:
        """The parameters of the parts aside; tables that they share are the network's own and not among them."""
        return {name: p for name, p in network.named_parameters() if name.partition(".")[0] in self.aside}

    def go_on_from(self, folder: Path, network: Network, cuts: Mapping[int, Sequence[int]] | None = None) -> bool:
        """Take the generator that lies beside a model, if there is one of this shape; `cuts` are of new ids."""
        if self.aside:
            return self._go_on_aside(folder / ASIDE, network, cuts or {})
        if self.generator is None or not (folder / GENERATOR / "config.json").exists():
            return False
        known = load_checkpoint(folder / GENERATOR)
        grow_vocabulary(known, cuts or {})
        if known.config != self.generator.config or "mask" not in known.heads:
            return False
        copy_weights(known.network, self.generator.network)
        return True

    def _go_on_aside(self, folder: Path, network: Network, cuts: Mapping[int, Sequence[int]]) -> bool:
        known, own = read_tensors(folder) if folder.is_dir() else {}, self._beside(network)
        words = network.config.vocabulary
        for name in known.keys() & own.keys():
            if cuts and len(own[name]) == words != len(known[name]):
                known[name] = grow_rows(known[name], cuts, words)
        if {name: x.shape for name, x in known.items()} != {name: p.shape for name, p in own.items()}:
            return False
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(known[name])
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
    """An objective before the network is known that it is made for."""

    heads: tuple[str, ...]

    def parts(self) -> dict[str, nn.Module]:
        return {}


def make_objective(asking: "Asking", corpus: Corpus, seed: int, download: bool = False) -> Made:
    """`download`: a teacher that is not here may be fetched."""
    stages = asking.stages()
    named = name_questions(stages)
    rows: RowKind = "next" if "next" in named else "order" if "order" in named else "single"
    share = asking.generator_share if "replaced" in named else 0.0
    teacher = open_teacher(str(asking.teacher), corpus, download) if set(named) & set(TAUGHT) else None
    maker = Maker(asking, corpus, seed, teacher)
    heads = dict.fromkeys((*name_heads(stages), *(("mask",) if asking.stay_hidden else ())))
    made = Made(Pending(tuple(heads)), rows, share, teacher=teacher, notes=maker.notes)
    if share or teacher is not None:
        made.build = partial(maker.build, stages)
    else:
        made.objective = maker.build(stages, None, None, None)
    return made


class Maker:
    """Makes the objective of each question once, however many stages ask it."""

    def __init__(self, asking: "Asking", corpus: Corpus, seed: int, teacher: Network | None) -> None:
        self.asking, self.seed, self.teacher = asking, seed, teacher
        self.vocabulary = read_vocabulary(corpus, has_words=asking.whole_words or asking.spans)
        if asking.whole_words and self.vocabulary.begins is None:
            raise BertsmithError(f"{corpus.folder} holds codes, in which there are no words; leave whole_words out.")
        self.phrases = [] if asking.phrases is None else read_phrases(Path(asking.phrases), corpus)
        self.notes: list[str] = []

    def build(
        self, stages: Sequence[Stage], network: Network | None, generator: Network | None, judge: Head | None
    ) -> Objective:
        known = {name: self._make(name, network, generator, judge) for name in name_questions(list(stages))}
        built = []
        for stage in stages:
            weights = [term.weight for term in stage.terms]
            whole = Sum(*(known[term.question] for term in stage.terms), weights=weights)
            alone = len(weights) == 1 and weights[0] == 1.0
            built.append((known[stage.terms[0].question] if alone else whole, stage.share))
        return built[0][0] if len(built) == 1 else Stages(built)

    def _make(self, question: str, network: Network | None, generator: Network | None, judge: Head | None) -> Objective:
        if question in PAIRED:
            return SentencePair("next" if question == "next" else "order")
        if question == "causal":
            return NextToken(self.vocabulary, self.asking.z_loss)
        if question == "replaced":
            assert generator is not None
            masking = self._mask(0.85, 0.0)  # as first released
            return ReplacedTokens(masking, generator, self.asking.replaced_weight, self.asking.stay_hidden, judge)
        if question == "distilled":
            assert network is not None and self.teacher is not None
            return self._distil(network, self.teacher)
        if question == "relations":
            assert network is not None and self.teacher is not None
            return AttentionRelations(self.vocabulary, self.teacher, network, self._count_relations(network))
        return self._mask()

    def _mask(self, masked: float | None = None, random: float | None = None) -> MaskedTokens:
        asking = self.asking
        masked = asking.mask_replace if masked is None else masked
        random = asking.random_replace if random is None else random
        return MaskedTokens(
            self.vocabulary, asking.rates(), masked, random, whole_words=asking.whole_words, spans=asking.spans,
            phrases=self.phrases, static=asking.static, seed=self.seed, z_loss=asking.z_loss,
        )  # fmt: skip

    def _distil(self, network: Network, teacher: Network) -> Objective:
        soft, hard, cosine = self.asking.losses_of_distillation()
        ours, theirs = network.config.width, teacher.config.width
        if cosine and ours != theirs:
            if not soft and not hard:
                told = f"distil_weights {self.asking.distil_weights!r} leave the angle between states alone"
                raise BertsmithError(f"{told}, which needs the teacher's width; give width {theirs}, or other weights.")
            cosine = 0.0
            self.notes.append(
                f"The teacher's states are {theirs} wide and the student's {ours}, so their angle is left out."
            )
        return Distillation(
            self._mask(), teacher, temperature=self.asking.temperature, soft=soft, hard=hard, cosine=cosine,
            over="places" if self.asking.distil_masked else "tokens",
        )  # fmt: skip

    def _count_relations(self, network: Network) -> int:
        """As many as the teacher has attention heads where both widths divide into them, else as many as do."""
        ours, theirs = network.config.width, self.teacher.config.width if self.teacher else 1
        most = self.teacher.config.heads if self.teacher else 1
        return next(heads for heads in range(most, 0, -1) if ours % heads == 0 and theirs % heads == 0)


def make_generator(checkpoint: Checkpoint, share: float = 0.25) -> Checkpoint:
    """ELECTRA's: as deep as the network, a share as wide in whole heads, with its tables where shapes allow it."""
    config = checkpoint.config
    heads = max(1, int(config.heads * share))
    width = config.width // config.heads * heads
    inner = max(8, int(config.inner * share))
    narrow = replace(config, width=width, heads=heads, inner=inner, embed_width=config.embed_width)
    head = replace(checkpoint.family.heads(checkpoint.settings)["mask"], dense="embed_width")  # as wide as its table
    with torch.device("meta"):
        generator = Network(narrow, {"mask": head.shape(narrow, 0)})
    fill_fresh(generator, {name: generator.tensor(name) for name in generator.names})
    share_tables(checkpoint.network, generator)
    ids = {key: value for key, value in checkpoint.settings.items() if key.endswith("_token_id")}
    return Checkpoint(checkpoint.family, narrow, {"mask": head}, generator, ids)


def make_judge(config: Config) -> Head:
    """What tells replaced tokens, as ELECTRA's head does, for families that have none."""
    shape = HeadShape("tokens", outputs=1, dense=config.width, activation="gelu")
    with torch.device("meta"):
        judge = Head(config, shape)
    fill_fresh(judge, dict(judge.named_parameters()))
    return judge


def fill_fresh(module: nn.Module, wanted: Mapping[str, torch.Tensor]) -> None:
    """Numbers to begin with, for tensors that have none."""
    chance = torch.Generator().manual_seed(1)
    state = {name: fresh_tensor(name, tensor.shape, chance) for name, tensor in wanted.items()}
    module.load_state_dict(state, strict=True, assign=True)
    module.requires_grad_(True)
