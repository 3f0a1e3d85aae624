"""`bertsmith.index`: a folder of texts becomes something that answers queries.

In: a folder, a model. Out: an `Index`, whose files lie in the folder itself (`.bertsmith-index`) or where one says.
Each time it is opened it is brought up to date.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bertsmith.arguments import checked
from bertsmith.data.findings import counted
from bertsmith.errors import BertsmithError
from bertsmith.loading import load
from bertsmith.model import Model
from bertsmith.models.files import take_folder
from bertsmith.search.documents import KINDS, find_files
from bertsmith.search.fingerprints import is_same_model, probe
from bertsmith.search.ranking import Ranking, fuse, rank_vectors, rank_words, take_best
from bertsmith.search.reranking import Reranker
from bertsmith.search.stored import Stored, open_stored, read_about
from bertsmith.search.updating import Progress, is_current, notes_of, taken, update
from bertsmith.tasks.embed import find_prompt
from bertsmith.tasks.measures import Array
from bertsmith.tasks.rerank import Rerank
from bertsmith.tasks.result import Result
from bertsmith.tasks.texts import list_names, list_texts, take_count

How = Literal["hybrid", "dense", "bm25"]
HOWS = ("hybrid", "dense", "bm25")
HIDDEN = ".bertsmith-index"
TOKENS = 128  # in a passage: what sentence encoders are trained on
DEPTH = 100  # how far down each ranking is read, to be fused
ROUND = 256  # queries ranked together


@checked("device")
def index(
    folder: str | Path,
    model: str | Path | Model | None = None,
    *,
    place: str | Path | None = None,
    only: str | Sequence[str] = (),
    passage_tokens: int | None = None,
    progress: Progress | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> "Index":
    """The texts of a folder, .txt, .md, .html and .jsonl, ready to be searched; only what changed is embedded again.

    `only` are globs for the files; `place` is a folder for the index, else `.bertsmith-index` in the folder itself;
    `passage_tokens` the longest passage, else 128 or what the model reads. `progress` is told how many passages are
    embedded, and of how many. `device` and `threads` are as in `load`.
    """
    folder = take_folder(folder)
    place = folder / HIDDEN if place is None else take_folder(place)
    globs = [only] if isinstance(only, str) else list_names("only", only)
    paths = find_files(folder, globs, place)
    if not paths:
        kinds = ", ".join(f"*{ending}" for ending in KINDS)
        none = f"no file of {kinds} is called {', '.join(globs)}" if globs else f"no file is called {kinds}"
        raise BertsmithError(f"{folder} holds no text to search: {none} (hidden ones aside).")
    if not isinstance(model, Model):
        model = load(model, device=device, threads=threads)
    limit = model.embedder.limit
    tokens = min(TOKENS, limit) if passage_tokens is None else take_count("passage_tokens", passage_tokens)
    if tokens > limit:
        raise BertsmithError(
            f"passage_tokens is {tokens:,}, but {model.embedder.folder} reads at most {limit:,} tokens of a text."
        )
    stored, notes = _bring_up(place, paths, model, tokens, progress)
    return Index(folder, model, stored, [*notes, *notes_of(stored.about)])


def _bring_up(
    place: Path, paths: dict[str, Path], model: Model, tokens: int, progress: Progress | None
) -> tuple[Stored, list[str]]:
    """The index as the files are now, and what there is to say about it."""
    prompt = find_prompt(model.embedder.sentence.prompts, ("document", "passage", "corpus"))

    cut = Counter[str]()

    def embed(texts: Sequence[str]) -> Array:
        found = model.embed(list(texts), prompt=prompt, normalize=True)
        cut.update(passages=sum(map(bool, found.truncated)), tokens=sum(found.truncated))
        return found

    mark = probe(embed)
    cut.clear()  # of texts that are no passages
    about = read_about(place)
    stored = open_stored(place, about) if about and not _difference(about, mark, tokens) else None
    if stored is not None and is_current(about, paths):
        return stored, []
    with taken(place):
        about = read_about(place)  # another process may have been quicker
        changed = _difference(about, mark, tokens) if about else ""
        stored = open_stored(place, about) if about and not changed else None
        if about and not changed and stored is None:
            changed = "it was damaged"
        if stored is None or not is_current(about, paths):
            about = update(place, paths, stored, mark, model.tokenizer, tokens, embed, progress)
            stored = open_stored(place, about)
    if stored is None:
        raise BertsmithError(f"the index {place} was changed while it was opened; try again.")
    notes = [f"the index {place} was made anew: {changed}."] if changed else []
    if cut["passages"]:
        told = f"{counted(cut['passages'], 'passage')} lost {counted(cut['tokens'], 'token')} in all"
        notes.append(f"{told}; make passages shorter.")
    return stored, notes


def _difference(about: dict[str, Any], mark: list[list[float]], tokens: int) -> str:
    """Why the vectors of an index cannot be used; nothing where they can."""
    if not is_same_model(about["model"], mark):
        return "it was made with another model"
    return f"its passages had {about['tokens']:,} tokens" if about["tokens"] != tokens else ""


class Index:
    """`notes` are sentences about files that were passed over, and about an index that was made anew."""

    def __init__(self, folder: Path, model: Model, stored: Stored, notes: Sequence[str] = ()) -> None:
        self.folder = folder
        self.model = model
        self.notes = list(notes)
        self._stored = stored

    def __len__(self) -> int:
        """How many passages there are."""
        return len(self._stored)

    def __repr__(self) -> str:
        return f"Index({self.folder}: {counted(len(self), 'passage')} of {counted(len(self.documents), 'document')})"

    @property
    def documents(self) -> list[str]:
        return self._stored.documents

    @property
    def place(self) -> Path:
        """Where its files lie."""
        return self._stored.folder.parent

    def search(
        self,
        query: str | Sequence[str],
        top_k: int = 10,
        *,
        how: How = "hybrid",
        rerank: str | Path | Model | None = None,
        rerank_depth: int = 50,
    ) -> Any:
        """The passages that answer best: `document, start, end, text, score`; a list of them for a list of queries.

        `how`: "dense" goes by the cosine of the vectors, "bm25" by shared words, "hybrid" by the ranks in both.
        `rerank` is a cross-encoder, which reads the query together with each of the first `rerank_depth` passages.
        Offsets count the characters of the document as it is read: for HTML those of its text, without the markup.
        """
        queries = [query] if isinstance(query, str) else list_texts(query)
        if not all(one.strip() for one in queries):
            raise BertsmithError("the query is empty; give some words to search for.")
        if how not in HOWS:
            raise BertsmithError(f"how={how!r} is not a choice; use one of {', '.join(HOWS)}.")
        top_k = take_count("top_k", top_k)
        depth = take_count("rerank_depth", rerank_depth) if rerank is not None else top_k
        reader = None if rerank is None else _open_reranker(rerank)
        results = []
        for start in range(0, len(queries), ROUND):
            some = queries[start : start + ROUND]
            rankings, cut = self._rank(some, max(top_k, depth), how)
            for one, ranking, tokens in zip(some, rankings, cut, strict=True):
                best = ranking if reader is None else self._rerank(reader, one, ranking)
                pairs = zip(best[0][:top_k].tolist(), best[1][:top_k].tolist(), strict=True)
                results.append(Result([self._stored.answer(number, score) for number, score in pairs], tokens))
        return results[0] if isinstance(query, str) else results

    def _rank(self, queries: list[str], count: int, how: str) -> tuple[list[Ranking], list[int]]:
        """For each query its best passages, and how many of its tokens the model did not see."""
        depth = max(count, DEPTH) if how == "hybrid" else count
        by_words = [rank_words(self._stored.bm25.scores(one), depth) for one in queries] if how != "dense" else []
        if how == "bm25":
            return by_words, [0] * len(queries)
        prompt = find_prompt(self.model.embedder.sentence.prompts, ("query", "question"))
        vectors = self.model.embed(queries, prompt=prompt, normalize=True)
        by_vectors = rank_vectors(self._stored.vectors, np.array(vectors), depth)
        if how == "dense":
            return by_vectors, vectors.truncated
        return [fuse(both, count) for both in zip(by_words, by_vectors, strict=True)], vectors.truncated

    def _rerank(self, reader: Reranker, query: str, ranking: Ranking) -> Ranking:
        numbers = ranking[0]
        scores = reader.scores(query, [self._stored.text(number) for number in numbers.tolist()])
        return take_best(numbers, scores, len(numbers))


def _open_reranker(given: str | Path | Model) -> Reranker:
    model = given if isinstance(given, Model) else load(given)
    model = model.need("classify", "compare a query with a passage", "rerank")
    settings = model.task_settings(Rerank)
    return Reranker(Rerank(model.tokenizer, model.limit, settings["truncate"], settings), model.predictor)
