"""What a model knows without any labels: pseudo-log-likelihood, BLiMP, masked words and perplexity of plain text.

In: a model that fills masks (loaded, or its folder) and texts. Out: plain JSON, and in `out` the same as `results.json`
and `results.md`. Nothing is trained, so there are no seeds but that of a sample.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bertsmith.arguments import checked
from bertsmith.data.shards import HEADER, Corpus
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.blimp import find_sets, judge_set, read_set, summarize
from bertsmith.evaluation.masked_accuracy import (
    count_units,
    count_words,
    guess_words,
    measure_tokens,
    rank_words,
    tell_accuracy,
    tell_perplexity,
)
from bertsmith.evaluation.tables import Row, as_markdown
from bertsmith.evaluation.unlabelled_tables import (
    blimp_notes,
    blimp_rows,
    masked_notes,
    masked_rows,
    perplexity_notes,
    perplexity_rows,
)
from bertsmith.loading import load
from bertsmith.many import open_place
from bertsmith.model import Model
from bertsmith.models.files import write_json
from bertsmith.tasks.guess_word import GuessWord
from bertsmith.tasks.likelihood import Likelihood, measure_likelihood
from bertsmith.tasks.texts import list_texts, take_count
from bertsmith.text.sources import list_sources, read_documents
from bertsmith.training.preparing import check_length
from bertsmith.training.watching import show_time
from bertsmith.unlabelled_codes import ask_codes

Say = Callable[[str], None]
RESULTS = "results.json"
PATIENCE = 10.0  # seconds between two remarks about how far it is


@checked()
def pseudo_likelihood(
    model: Model | str | Path | None, texts: str | Sequence[str], *, way: str = "plain", truncate: str = "windows"
) -> Any:
    """How likely texts are: a `Result` each of `score` (natural logarithm), `tokens`, `perplexity` (a token's).

    `way`: "plain" masks each token alone, "within-word" the later pieces of its word too. Of a text that is longer than
    the model reads, each token is seen with as much around it as fits (truncate="windows"), or the text is cut.
    """
    home = need_masks(model)
    task = Likelihood(home.tokenizer, home.limit, truncate, way)
    found = measure_likelihood(home.predictor, task, [texts] if isinstance(texts, str) else list_texts(texts))
    return found[0] if isinstance(texts, str) else found


@checked()
def evaluate_blimp(
    folder: str | Path,
    model: Model | str | Path | None = None,
    *,
    sets: Sequence[str] | None = None,
    limit: int | None = None,
    way: str = "plain",
    out: str | Path | None = None,
    overwrite: bool = False,
    say: Say | None = None,
) -> dict[str, Any]:
    """The share of BLiMP's pairs whose good sentence is likelier: `accuracy`, `fields`, `phenomena`, `sets`.

    `folder` holds the benchmark's .jsonl files; `sets` names some of them, `limit` takes the first pairs of each. A tie
    counts as wrong; a pair that is longer than the model reads is left out and counted.
    """
    place = prepare(out, overwrite)
    limit = None if limit is None else take_count("limit", limit)
    given = [read_set(path, limit) for path in find_sets(Path(folder).expanduser(), sets)]
    home = need_masks(model)
    task = Likelihood(home.tokenizer, home.limit, way=way)
    judged, start, told = [], time.monotonic(), time.monotonic()
    for number, one in enumerate(given, 1):
        judged.append(judge_set(home.predictor, task, one))
        if say and time.monotonic() - told > PATIENCE:
            told = time.monotonic()
            say(f"{number} of {len(given)} sets, {show_time(told - start)}")
    head = {"benchmark": "blimp", "folder": str(folder), "model": str(home.folder), "way": way}
    result = {**head, **summarize(judged), "seconds": time.monotonic() - start}
    keep(place, result, blimp_rows(result, with_sets=True), blimp_notes(result))
    return result


@checked()
def evaluate_masked(
    file: str | Path,
    model: Model | str | Path | None = None,
    *,
    samples: int = 5000,
    seed: int = 1,
    counts: str | Path | None = None,
    length: int | None = None,
    way: str = "plain",
    out: str | Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Words of held-out text guessed, by frequency, and the text's pseudo-perplexity a token and a word.

    `file` is text with a blank line between documents, or anything that a corpus is built from, or the folder of a
    corpus, whose held-out part is read; in a corpus of codes each code is a word. `samples` words, and as many words
    and marks for the perplexity, are drawn by `seed`; where a script puts no spaces between words, a letter is one.
    Frequencies are those in `counts`, another text; else in the file itself, and of codes in the rows for training.
    `length` is the most tokens that are read at once, else what the model takes.
    """
    place = prepare(out, overwrite)
    check_sample(samples, seed)
    codes = open_codes(file)
    if codes is not None:
        if counts is not None:
            told = f"{file} holds codes, whose frequencies are those of its rows for training"
            raise BertsmithError(f"{told}; leave counts out.")
        home = need_masks(model)
        result = {"benchmark": "masked", "file": str(file), **ask_codes(codes, home, samples, seed, length)}
        keep(place, result, masked_rows(result), masked_notes(result))
        return result
    documents = read_texts(file)
    own = count_words(documents)
    if not own:
        raise BertsmithError(f"{file} holds no word; give a text.")
    ranks = rank_words(own if counts is None else count_words(d.text for d in read_documents(list_sources(counts))))
    home = need_masks(model)
    check_length(length, home.limit, home.tokenizer, home.folder)
    most, start = length or home.limit, time.monotonic()
    guesses = guess_words(home.predictor, GuessWord(home.tokenizer, most), documents, samples, seed)
    task = Likelihood(home.tokenizer, most, way=way)
    sums = measure_tokens(home.predictor, task, documents, samples, seed)
    result = {
        "benchmark": "masked", "file": str(file), "model": str(home.folder), "way": way, "length": most,
        "documents": len(documents), "words": own.total(), "seed": seed, "samples": len(guesses),
        "is_whole": len(guesses) == own.total(), "counts": None if counts is None else str(counts),
        "units": count_units(documents), "unit_samples": len(sums),
        **tell_accuracy(guesses, ranks), "perplexity": tell_perplexity(sums), "seconds": time.monotonic() - start,
    }  # fmt: skip
    keep(place, result, masked_rows(result), masked_notes(result))
    return result


@checked()
def evaluate_perplexity(
    source: str | Path,
    model: Model | str | Path | None = None,
    *,
    samples: int = 5000,
    seed: int = 1,
    length: int | None = None,
    way: str = "plain",
    out: str | Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """The pseudo-perplexity of a text (Salazar et al. 2020): exp of minus the mean pseudo-log-likelihood.

    `perplexity` has it a `token` and a `word`, with intervals. `source` is a text, anything that a corpus is built
    from, or the folder of a corpus (of codes too), whose held-out part is read. `samples` words and marks, or codes,
    are drawn by `seed`, or all. `length` is the most tokens that are read at once, else what the model takes.
    """
    place = prepare(out, overwrite)
    check_sample(samples, seed)
    codes = open_codes(source)
    if codes is not None:
        found = ask_codes(codes, need_masks(model), samples, seed, length)
        result = {"benchmark": "perplexity", "source": str(source), **found}
        keep(place, result, perplexity_rows(result), perplexity_notes(result))
        return result
    documents = read_texts(source)
    units = count_units(documents)
    if not units:
        raise BertsmithError(f"{source} holds no word; give a text.")
    home = need_masks(model)
    check_length(length, home.limit, home.tokenizer, home.folder)
    most, start = length or home.limit, time.monotonic()
    sums = measure_tokens(home.predictor, Likelihood(home.tokenizer, most, way=way), documents, samples, seed)
    result = {
        "benchmark": "perplexity", "source": str(source), "model": str(home.folder), "way": way, "length": most,
        "documents": len(documents), "seed": seed, "units": units, "unit_samples": len(sums),
        "is_whole": len(sums) == units, "log_likelihood": float(sums[:, 0].sum()),
        "perplexity": tell_perplexity(sums), "seconds": time.monotonic() - start,
    }  # fmt: skip
    keep(place, result, perplexity_rows(result), perplexity_notes(result))
    return result


def check_sample(samples: int, seed: int) -> None:
    take_count("samples", samples)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise BertsmithError(f"seed is {seed!r}; it must be a whole number of at least 0.")


def need_masks(model: Model | str | Path | None) -> Model:
    """The model, or the one of its adapters, that has a head for masked tokens."""
    loaded = model if isinstance(model, Model) else load(model)
    return loaded.need("mask", "fill masks, by which likelihood is measured")


def is_corpus(source: str | Path) -> bool:
    return (Path(source).expanduser() / HEADER).is_file()


def open_codes(source: str | Path) -> Corpus | None:
    """The part of a corpus of codes that training never sees; None for text."""
    corpus = Corpus.open(source, "held-out") if is_corpus(source) else None
    return corpus if corpus is not None and corpus.header["tokenizer"] is None else None


def read_texts(file: str | Path) -> list[str]:
    """The documents of a text, or of the part of a corpus that training never sees."""
    if is_corpus(file):
        return read_held_out(Corpus.open(file, "held-out"))
    return [document.text for document in read_documents(list_sources(file)) if document.text.strip()]


def read_held_out(corpus: Corpus) -> list[str]:
    """As text, so that models of other tokenizers can be asked about it too."""
    tokenizer = corpus.tokenizer()
    assert tokenizer is not None  # it would be one of codes
    if not len(corpus.tokens):
        raise BertsmithError(f"{corpus.folder} holds no text apart; build it anew (corpus build --held-out).")
    texts = (tokenizer.decode(corpus.document(number).tolist()) for number in range(len(corpus)))
    return [text for text in texts if text.strip()]


def prepare(out: str | Path | None, overwrite: bool) -> Path | None:
    """The folder for the results, before anything is measured."""
    if out is None:
        return None
    place = open_place(out)
    if (place / RESULTS).exists() and not overwrite:
        raise BertsmithError(f"{place / RESULTS} is there already; give another folder, or overwrite it (overwrite).")
    return place


def keep(place: Path | None, result: dict[str, Any], rows: Sequence[Row], notes: Sequence[str]) -> None:
    if place is not None:
        write_json(place / RESULTS, result)
        lines = "\n".join(f"- {note}" for note in notes)
        table = f"# {result['benchmark']}\n\n{as_markdown(rows)}\n{lines}\n"
        (place / "results.md").write_text(table, encoding="utf-8")
