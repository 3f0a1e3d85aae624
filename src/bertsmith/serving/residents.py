"""The models that a server holds, by id, and what each can be asked.

In: `ID=FOLDER` or a folder, as people name them. Out: `Model`s and their `Card`s; an adapter is a model of its own on
its base's memory, called `ID:ADAPTER`.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.model import Model
from bertsmith.models.graph import GraphNetwork
from bertsmith.resident import find_declared, rank_how
from bertsmith.searching import Index
from bertsmith.serving.asks import Card, Refusal
from bertsmith.serving.sizes import refuse_many_passages

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]|/(?=[A-Za-z0-9]))*")  # no dots that climb, nothing to quote in a URL
# What Hugging Face calls the job of a head, and ours for it, in the order in which a model's main job is chosen.
PIPELINES = {
    "classify": "text-classification",
    "score": "text-classification",
    "rerank": "text-ranking",
    "tag": "token-classification",
    "answer": "question-answering",
    "choose": "multiple-choice",
    "fill": "fill-mask",
}
JOBS_OF = {"tag": ("tag",), "span": ("answer",), "choose": ("choose",), "mask": ("fill",), "follows": ("follows",)}
VECTORS, TOKENS, LOOKS = ("embed", "hidden", "similar"), ("tokenize", "decode"), ("attention", "step", "senses")
HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: JSON cannot hold it
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
LENS, EXPLAINED = "mask", ("classify", "span", "tag", "mask", "choose", "follows")  # heads that can be looked through


def name_models(given: Iterable[str]) -> dict[str, str]:
    """Ids and folders from `ID=FOLDER` or `FOLDER`, whose last part is then the id."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        if not equals or "/" in name or "\\" in name:
            name, folder = Path(one).name, one
        if not NAME.fullmatch(name):
            raise BertsmithError(
                f"{name[:60]!r} cannot be the id of a model, which has letters, digits and . _ - alone; give "
                f"--model ID={folder}."
            )
        if name in found:
            raise BertsmithError(f"two models are called {name!r}; give each its own id: --model ID={folder}.")
        found[name] = folder
    return found


class Residents:
    """The served models; the first is the default unless another is named."""

    def __init__(
        self, models: Mapping[str, Model], default: str | None = None, indexes: Mapping[str, Index] | None = None
    ) -> None:
        """`indexes` are what the models of these ids can search."""
        self.models: dict[str, Model] = {}
        self.indexes = dict(indexes or {})
        for name, model in models.items():
            self.models[name] = model
            self.models |= {f"{name}:{adapter}": other for adapter, other in model.adapters.items()}
        self.default = default or next(iter(self.models))
        if self.default not in self.models:
            raise BertsmithError(f"--default {default!r} is not served; the models are {', '.join(self.models)}.")
        self.cards = {name: make_card(name, model, name in self.indexes) for name, model in self.models.items()}
        self.device = next(iter(self.models.values())).device

    def find(self, name: str, job: str) -> str:
        """The id of the model that is meant, which can do the job."""
        name = name or self.default
        if name not in self.models:
            raise Refusal("model", f"there is no model {name[:80]!r}; the models are {', '.join(self.models)}.")
        if job not in self.cards[name].jobs:
            able = [card.id for card in self.cards.values() if job in card.jobs]
            others = f"; {', '.join(able)} can" if able else "; no model here can"
            raise Refusal("job", f"the model {name!r} cannot {job}{others}.")
        return name

    def search(self, name: str, given: Mapping[str, Any]) -> Any:
        refuse_many_passages(self.indexes[name], given)
        options = {key: value for key, value in given.items() if key != "query"}
        found = self.indexes[name].search(given["query"], **options)
        for answer in (answer for one in (found if isinstance(found, list) else [found]) for answer in one):
            # A file's name may be no UTF-8, its text hold half a pair; one for one, so that offsets hold.
            answer |= {key: HALF.sub("\ufffd", value) for key, value in answer.items() if isinstance(value, str)}
        return found

    def decode(self, name: str, given: Mapping[str, Any]) -> Any:
        """The text of token ids; one that the tokenizer does not have is named."""
        tokenizer, ids = self.models[name].tokenizer, given["ids"]
        rows = [ids] if ids and isinstance(ids[0], int) else ids
        for row in rows:
            wrong = next((id for id in row if not 0 <= id < tokenizer.size), None)
            if wrong is not None:
                raise BertsmithError(f"{wrong} is no token id of {name}; they go from 0 to {tokenizer.size - 1:,}.")
        texts = [tokenizer.decode(row, skip_specials=given.get("skip_specials", True)) for row in rows]
        return texts[0] if rows is not ids else texts

    def list_cards(self) -> list[Card]:
        """The default first."""
        return sorted(self.cards.values(), key=lambda card: card.id != self.default)


def make_card(name: str, model: Model, can_search: bool = False) -> Card:
    able = [model, *model.adapters.values()]
    jobs = list(dict.fromkeys(job for one in able for job in list_jobs(one)))
    own = list_jobs(model)  # an adapter has an id and a main job of its own
    main = next((PIPELINES[job] for job in PIPELINES if job in own), "feature-extraction")
    return Card(
        id=name,
        jobs=(*jobs, *_list_common(model), *(["search"] if can_search else [])),
        pipeline=main,
        labels=tuple(model.checkpoint.labels),
        limit=_find_length(model),
        width=model.vector_width,
        pooling="+".join(model.embedder.sentence.pooling.modes),
        dtype=model.dtype,
        device=str(model.device),
        family=str(model.checkpoint.settings.get("model_type", model.checkpoint.config.family)),
        batch_tokens=model.predictor.budget,
        revision=digest(model),
        created=int(model.folder.stat().st_mtime),
        prompts=tuple(model.embedder.sentence.prompts),
        mask=model.tokenizer.mask_token or "",
        vector_limit=model.embedder.limit,
        kind="classifier" if "classify" in own else "reranker" if "rerank" in own else "embedding",
    )


def _find_length(model: Model) -> int:
    """Of the longest row that it reads: a fine-tuning may have settled on less than the encoder can."""
    settings = model.trained.get("settings")
    length = settings.get("length") if isinstance(settings, dict) else None
    return min(model.limit, length) if isinstance(length, int) else model.limit


def _list_common(model: Model) -> tuple[str, ...]:
    """What every encoder can be asked; a graph gives scores or vectors, and has no insides."""
    network = model.checkpoint.network
    if isinstance(network, GraphNetwork):
        return (*(VECTORS if network.has_vectors else ()), *TOKENS)
    return (*VECTORS, *TOKENS, *LOOKS)


def list_jobs(model: Model) -> list[str]:
    """What the heads of one model can be asked; a head of classes is for numbers or for ranking, too."""
    heads = model.checkpoint.heads
    jobs = [job for head in heads for job in JOBS_OF.get(head, ())]
    jobs += ["follows"] * (find_declared(model, "follows") is not None)  # an adapter does it
    if not isinstance(model.checkpoint.network, GraphNetwork):
        jobs += ["lens"] * (LENS in heads) + ["attribution"] * any(head in heads for head in EXPLAINED)
    if "classify" not in model.checkpoint.heads:
        return jobs
    head: Any = model.checkpoint.network.heads["classify"]
    task = model.trained.get("task")
    ranks = ["rerank"] if rank_how(model) else []
    if task in ("regress", "rerank") or (task is None and head.shape.outputs == 1):
        return [*jobs, "rerank", "score"] if task == "rerank" else [*jobs, "score", *ranks]
    return [*jobs, "classify"]


def digest(model: Model) -> str:
    """What the weights of a model are known by."""
    total = hashlib.sha256()
    for path in _list_weights(model):
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                total.update(block)
    return total.hexdigest()[:16]


def _list_weights(model: Model) -> list[Path]:
    """The graph's files where it is one; else those of its folder, or of its encoder, which may lie in one below."""
    network = model.checkpoint.network
    if isinstance(network, GraphNetwork):
        return network.graph.files
    homes = (model.folder, model.sentence.encoder)
    found = ([path for kind in WEIGHTS for path in sorted(home.glob(kind))] for home in homes)
    return next((files for files in found if files), [])
