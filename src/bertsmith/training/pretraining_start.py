"""What a pretraining stands on. In: a corpus, a recipe, a model to go on with. Out: a `Start`, and what is made of it.

Everything that can be wrong with them is found here, before a step is made or a file written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bertsmith.data.corpus.codes import SPECIALS
from bertsmith.data.shards import Corpus, refuse_other, tokenizer_digest
from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import find_encoder, is_adapter
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint
from bertsmith.models.families import find_preset
from bertsmith.models.fresh import make_fresh, make_further
from bertsmith.models.growing import grow_vocabulary
from bertsmith.objectives.making import ASIDE, GENERATOR, Made, make_objective
from bertsmith.text.extension import cut_new_pieces
from bertsmith.text.loading import has_tokenizer, load_tokenizer
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.devices import Ranks, cast, choose_precision
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining import HeldOut, PretrainingStudy
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.recipes import Recipe


@dataclass
class Start:
    """Everything that a run stands on."""

    corpus: Corpus
    held_out: Corpus
    recipe: Recipe
    checkpoint: Checkpoint
    made: Made
    size: int  # tokens in a pass
    origin: str  # a sentence: where its weights are from


def prepare(
    corpus: str | Path, recipe: Recipe, ranks: Ranks, base: Path | None = None, download: bool = False
) -> Start:
    """`base` is the folder of a trained model that goes on learning; `download`: a teacher may be fetched."""
    train, held_out = Corpus.open(corpus), Corpus.open(corpus, "held-out")
    cuts = {} if base is None else find_new_pieces(base, train)
    longest = recipe.training.longest
    if len(train.tokens) < longest:
        told = f"{len(train.tokens):,} tokens, less than a row of {longest}" if len(train.tokens) else "no text"
        raise BertsmithError(f"{corpus} holds {told}; build it from more, or give shorter rows (lengths).")
    refuse_unfit(recipe, ranks, held_out)
    train.tokenizer()  # a corpus whose tokenizer is another one is refused
    made = make_objective(recipe.asking, train, recipe.training.seed, download)
    if base is None:
        checkpoint, origin = _begin(recipe, train, made), "The encoder begins with random weights."
    else:
        checkpoint, origin = _go_on(recipe, train, made, base, cuts)
    if checkpoint.config.limit < longest:
        told = f"rows of {longest} tokens are too long for an encoder that reads {checkpoint.config.limit}"
        raise BertsmithError(f"{told}; give {'more positions, or ' * (base is None)}shorter rows (lengths).")
    if made.teacher is not None and made.teacher.config.limit < longest:
        told = f"rows of {longest} tokens are too long for the teacher, which reads {made.teacher.config.limit}"
        raise BertsmithError(f"{told}; give shorter rows (lengths).")
    made.attach(checkpoint)
    known = base is not None and made.go_on_from(base, checkpoint.network, cuts)
    is_beside = base is not None and any((base / name).is_dir() for name in (GENERATOR, ASIDE))
    if is_beside and not known and made.generator_share:
        made.notes.append(f"The generator of {base} has another shape; a fresh one begins.")
    origin = " ".join([origin, *made.notes])
    return Start(train, held_out, recipe, checkpoint, made, recipe.training.pass_size(ranks.device.type), origin)


def refuse_unfit(recipe: Recipe, ranks: Ranks, held_out: Corpus) -> None:
    """What cannot be done together."""
    if recipe.training.patience and not len(held_out.tokens):
        told = f"patience looks at scores on held-out text, and {held_out.folder} has none"
        raise BertsmithError(f"{told}; leave patience out, or hold some out (bertsmith corpus build --held-out).")
    if recipe.training.patience and len(recipe.asking.stages()) > 1:
        told = "patience looks at one measure throughout, and this run asks for something else in each stage"
        raise BertsmithError(f"{told} ({recipe.asking.asks}); leave patience out.")
    choose_precision(recipe.training.precision, ranks.device)


def _begin(recipe: Recipe, corpus: Corpus, made: Made) -> Checkpoint:
    training = recipe.training
    sizes: dict[str, Any] = {**recipe.sizes, "vocabulary": corpus.vocabulary}
    if training.dropout is not None:
        sizes |= dict.fromkeys(("dropout", "attention_dropout", "head_dropout"), training.dropout)
    family, _ = find_preset(recipe.preset)
    heads = made.heads(family, family.fresh)
    specials, zero = corpus.specials, training.zero_outputs
    return make_fresh(recipe.preset, heads, sizes, specials, training.seed, recipe.changed, zero, made.pairs)


def find_new_pieces(base: Path, corpus: Corpus) -> dict[int, tuple[int, ...]]:
    """What the model's tokenizer makes of the pieces that the corpus's has beside its own; mostly none."""
    tokenizer, own = _read_tokenizer(base), corpus.tokenizer()
    if own is None:
        if tokenizer is not None:
            refuse_other(corpus.folder, corpus.header, tokenizer)
        return {}
    if tokenizer is None:
        told = f"{base} has no tokenizer, so nothing says what the ids of {corpus.folder} mean to it"
        raise BertsmithError(f"{told}; put its own into its folder, or give a corpus of codes to a model of codes.")
    if tokenizer_digest(tokenizer) == corpus.header["tokenizer"]:
        return {}
    try:
        return cut_new_pieces(tokenizer, own)
    except BertsmithError as error:
        raise BertsmithError(
            f"{corpus.folder} was made with another tokenizer than that of {base}, which it does not extend either: "
            f"{error}; build the corpus with the model's own, or with what `bertsmith tokenizer extend` made of it."
        ) from None


def _go_on(
    recipe: Recipe, corpus: Corpus, made: Made, base: Path, cuts: Mapping[int, Sequence[int]]
) -> tuple[Checkpoint, str]:
    known = load_checkpoint(find_encoder(base))
    grow_vocabulary(known, cuts)
    words = known.config.vocabulary
    told = f"{base} knows {words:,} ids, and {corpus.folder} holds {corpus.vocabulary:,}"
    if corpus.header["tokenizer"] is None and words != corpus.vocabulary:
        # Special ids stand behind the codes: a mask of the one would be a code of the other.
        codes = words - len(SPECIALS)
        raise BertsmithError(f"{told}, of which the last are special; build the corpus with vocabulary {codes:,}.")
    if words < corpus.vocabulary:
        raise BertsmithError(f"{told}; build the corpus with the model's own tokenizer.")
    heads = made.heads(known.family, known.settings)
    checkpoint = make_further(known, heads, recipe.training.seed, recipe.training.dropout, made.pairs)
    own = [name for name in heads if name in known.heads]
    fresh = [name for name in heads if name not in known.heads]
    told = f"; its head for {' and '.join(own)} goes on training" if own else ""
    told += f"; a fresh head for {' and '.join(fresh)} was put on it" if fresh else ""
    left = [name for name in known.heads if name not in heads and name != "pool"]
    told += f"; its head for {' and '.join(left)} is left out" if left else ""
    told += f"; {len(cuts):,} new pieces begin as the means of those they were cut into" if cuts else ""
    return checkpoint, f"The encoder of {base} goes on learning{told}."


def _read_tokenizer(base: Path) -> Tokenizer | None:
    """A model's tokenizer; None for one of codes, which has none."""
    if is_adapter(base):
        raise BertsmithError(f"{base} is an adapter; give the folder of a whole model to go on with.")
    folder = find_encoder(base)
    return load_tokenizer(folder) if has_tokenizer(folder) else None


def make_study(start: Start, training: Pretraining, steps: int) -> PretrainingStudy:
    study = PretrainingStudy(start.corpus, start.made.objective, training, steps, start.size, start.made.rows)
    teacher = start.made.teacher
    if teacher is not None and teacher.config.relative:
        study.can_twin = False  # the teacher would be compiled and recorded with it (training/passes.py)
    return study


def open_held_out(start: Start, training: Pretraining, ranks: Ranks, say: Say) -> HeldOut | None:
    """What scores the text that was held out; None where there is none, or none that rows can be made of."""
    if not len(start.held_out.tokens):
        say("no text was held out, so the encoder is not scored on any (bertsmith corpus build --held-out).")
        return None
    try:
        study = make_study(replace(start, corpus=start.held_out), training, 1)
        study.passes[-1].rows_of(0)
    except BertsmithError as error:
        say(f"the encoder is not scored on held-out text: {error}")
        return None
    precision = partial(cast, choose_precision(training.precision, ranks.device), ranks.device)
    return HeldOut(study, start.checkpoint.network, ranks.device, precision)
