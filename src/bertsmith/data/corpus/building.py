"""A build from its sources to the finished folder, in steps that a killed process takes up where they were left.

In: what was asked for. Out: the folder. Everything is made in `.NAME.building` beside it, which is renamed at the end.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.data.corpus.codes import SPECIALS
from bertsmith.data.corpus.comparing import NAMES, STAYS, compare
from bertsmith.data.corpus.dropping import EXCERPTS, REASONS, Dropped, Reasons, excerpt
from bertsmith.data.corpus.engines import Engine, run
from bertsmith.data.corpus.excluding import gather_grams
from bertsmith.data.corpus.reporting import notes_on, write_page
from bertsmith.data.corpus.settings import CorpusSettings
from bertsmith.data.corpus.staging import GRAMS, TOLD, Job, read_staged, stage
from bertsmith.data.corpus.writing import (
    SHARDS,
    SHARES,
    Kept,
    Writing,
    dropped_after,
    make_files,
    most_on_disk,
    share,
    write_json,
    write_part,
)  # fmt: skip
from bertsmith.data.findings import counted
from bertsmith.data.shards import (
    FILES,
    FORMAT,
    HEADER,
    SPLITS,
    TOKENIZER,
    TOKENIZER_FILE,
    choose_dtype,
    file_digest,
)
from bertsmith.errors import BertsmithError
from bertsmith.text.parts import cut_parts
from bertsmith.text.sources import Source
from bertsmith.text.tokenizer import Tokenizer

REPORT, PAGE, ASKED = "report.json", "report.md", "settings.json"
Say = Callable[[str], None]
_STAGED = 4  # of how parts are made and what they tell: those that another version left are made anew
_PATIENCE = 10.0  # seconds between two lines about progress


@dataclass
class Build:
    asked: dict[str, Any]  # settings, tokenizer, sources and excluded files, as they are compared with those of before
    settings: CorpusSettings
    sources: list[Source]
    excluded: list[Path]
    tokenizer: Tokenizer | None
    building: Path
    processes: int
    engine: Engine
    say: Say
    unread: Mapping[str, int]  # files in folders that are no sources, by how their names end

    def carry_out(self) -> Path:
        """All steps; gives the folder that holds the finished corpus, still aside."""
        begun = time.monotonic()
        self._prepare()
        jobs = self._jobs()
        key = digest([job.key for job in jobs])
        shares = _read_json(self.building / SHARES)
        if shares is None or shares["key"] != key:
            (self.building / SHARES).unlink(missing_ok=True)
            shutil.rmtree(self.building / SHARDS, ignore_errors=True)
            self._follow("staged", run(stage, jobs, self.processes, self.engine), len(jobs))
            shares = self._compare(jobs, key)
        for job in jobs:  # nothing is compared any more
            (job.folder / "signatures.bin").unlink(missing_ok=True)
        self._write(jobs, shares)
        return self._finish(shares, time.monotonic() - begun)

    def has_work(self) -> bool:
        """Whether a part is done that a later call would not have to do again."""
        tokens = (self.building / "parts").glob("*/tokens.bin")
        return any(file.stat().st_size > 0 for file in tokens if not file.parent.name.endswith(".aside"))

    def _prepare(self) -> None:
        self.building.mkdir(parents=True, exist_ok=True)
        if self.tokenizer is not None:
            self.tokenizer.save(self.building / TOKENIZER)
        grams = self.building / GRAMS
        told = _read_json(grams / TOLD)
        if told is not None and told["asked"] == self.asked["exclude"]:
            return
        shutil.rmtree(grams, ignore_errors=True)
        if self.excluded:
            found, files = gather_grams(self.excluded, self.settings.gram)
            grams.mkdir()
            found.save(grams)
            write_json(grams / TOLD, {"asked": self.asked["exclude"], "files": files})

    def _jobs(self) -> list[Job]:
        """A part's key changes with all that its result depends on, so what another build left is never taken."""
        common = {name: self.asked[name] for name in ("settings", "tokenizer", "exclude")}
        files = {source.path: file for source, file in zip(self.sources, self.asked["sources"], strict=True)}
        jobs = []
        for part in cut_parts(self.sources, unit="line" if self.settings.codes else self.settings.unit):
            key = digest([_STAGED, common, files[part.source.path], part.start, part.end])
            jobs.append(Job(key, part, self.settings, self.building, digest(common)))
        wanted = {job.key for job in jobs}
        for folder in (self.building / "parts").glob("*"):
            if folder.name not in wanted:  # of other settings, or cut short
                shutil.rmtree(folder, ignore_errors=True)
        return jobs

    def _follow(self, what: str, progress: Any, total: int) -> None:
        told = time.monotonic()
        for done in progress:
            if time.monotonic() - told > _PATIENCE:
                told = time.monotonic()
                self.say(f"{done:,} of {total:,} parts {what}.")

    def _compare(self, jobs: Sequence[Job], key: str) -> dict[str, Any]:
        folders = [job.folder for job in jobs]
        told = [json.loads((folder / TOLD).read_text(encoding="utf-8")) for folder in folders]
        dropped = Reasons()
        for one in told:
            for reason, more in one["dropped"].items():
                dropped[reason].merge(more)
        verdicts = compare(folders, self.settings)
        shares = share(folders, verdicts, self.building, key)
        for folder in folders:
            for reason, (count, characters) in dropped_after(folder).items():
                dropped[reason].merge({"count": count, "characters": characters, "excerpts": []})
            self._quote(folder, dropped)
        if not shares["totals"]["train"]["tokens"]:
            raise BertsmithError(_nothing_left(sum(one["documents"] for one in told), dropped))
        kind, vocabulary = self._vocabulary(folders)
        shared: dict[str, int] = {}
        for one in told:
            for file, count in one["shared"].items():
                shared[file] = shared.get(file, 0) + count
        sizes = [sum(file.stat().st_size for file in folder.iterdir() if file.name != TOLD) for folder in folders]
        shares |= {
            "kind": kind.str, "vocabulary": vocabulary, "shared": shared,
            "dropped": {reason: asdict(dropped[reason]) for reason in REASONS if reason in dropped},
            "read": {name: sum(one[source] for one in told) for name, source in
                     (("documents", "documents"), ("characters", "characters"), ("bytes", "size"), ("cut", "cut"),
                      ("filled", "filled"))},
            "tokens": sum(one["tokens"] for one in told), "unknown": sum(one["unknown"] for one in told),
            "cpu": sum(one["cpu"] for one in told), "seconds": sum(one["seconds"] for one in told),
            "most": most_on_disk(sizes, [*shares["shares"], shares["totals"]], kind.itemsize),
        }  # fmt: skip
        write_json(self.building / SHARES, shares)
        return shares

    def _vocabulary(self, folders: Sequence[Path]) -> tuple[np.dtype[Any], int]:
        if self.tokenizer is not None:
            return choose_dtype(self.tokenizer.size), self.tokenizer.size
        largest = [int(codes.max(initial=0)) for folder in folders if len(codes := self._tokens(folder))]
        vocabulary = (self.settings.vocabulary or max(largest) + 1) + len(SPECIALS)
        return choose_dtype(vocabulary), vocabulary

    @property
    def _staged_kind(self) -> np.dtype[Any]:
        return np.dtype("<u4") if self.tokenizer is None else choose_dtype(self.tokenizer.size)

    def _tokens(self, folder: Path) -> np.ndarray:
        return read_staged(folder, "tokens", self._staged_kind)

    def _quote(self, folder: Path, dropped: Reasons) -> None:
        """Excerpts of what comparing dropped, from its tokens."""
        kept = Kept(folder)
        ends = np.cumsum(kept.sentences)
        last = np.cumsum(kept.sentence_counts)
        first_paragraph = np.cumsum(kept.paragraph_counts) - kept.paragraph_counts
        owners = np.repeat(kept.documents, kept.paragraph_counts)
        for verdict, reason in NAMES.items():
            of_documents = first_paragraph[kept.documents == verdict]
            of_paragraphs = np.flatnonzero((kept.paragraphs == verdict) & (owners == STAYS))
            quoted = dropped[reason].excerpts
            for paragraph in [*of_documents, *of_paragraphs][: 20 * EXCERPTS]:
                if len(quoted) >= EXCERPTS:
                    break
                sentence = int(last[paragraph] - kept.sentence_counts[paragraph])
                begin = int(ends[sentence - 1]) if sentence else 0
                ids = self._tokens(folder)[begin : min(begin + 48, int(ends[last[paragraph] - 1]))].tolist()
                text = " ".join(map(str, ids)) if self.tokenizer is None else self.tokenizer.decode(ids)
                if excerpt(text) not in quoted:
                    quoted.append(excerpt(text))
            if not dropped[reason].count:
                del dropped[reason]

    def _write(self, jobs: Sequence[Job], shares: dict[str, Any]) -> None:
        target = self.building / SHARDS
        make_files(target, shares["totals"], np.dtype(shares["kind"]))
        parts = [
            Writing(job.folder, target, one, self._staged_kind.str, shares["kind"])
            for job, one in zip(jobs, shares["shares"], strict=True)
        ]
        self._follow("written", run(write_part, parts, self.processes, self.engine), len(parts))

    def _finish(self, shares: dict[str, Any], seconds: float) -> Path:
        folder = self.building / SHARDS
        splits = {
            split: {**shares["totals"][split],
                    "sha256": {name: file_digest(folder / split / file) for name, file in FILES.items()}}
            for split in SPLITS
        }  # fmt: skip
        specials, special_ids = self._specials(shares["vocabulary"])
        if self.tokenizer is not None:
            self.tokenizer.save(folder / TOKENIZER)
        report = self._report(shares, seconds, folder)
        write_json(folder / REPORT, report)
        (folder / PAGE).write_text(write_page(report), encoding="utf-8")
        write_json(folder / ASKED, self.asked)
        header = {
            "format": FORMAT, "kind": "text" if self.tokenizer else "codes", "dtype": shares["kind"],
            "vocabulary": shares["vocabulary"], "tokenizer": self.asked["tokenizer"], "specials": specials,
            "special_ids": special_ids, "splits": splits,
        }  # fmt: skip
        if self.tokenizer is not None:
            header["tokenizer_sha256"] = file_digest(folder / TOKENIZER / TOKENIZER_FILE)
        write_json(folder / HEADER, header)
        return folder

    def _specials(self, vocabulary: int) -> tuple[dict[str, int], list[int]]:
        if self.tokenizer is None:
            specials = {role: vocabulary - len(SPECIALS) + place for place, role in enumerate(SPECIALS)}
            return specials, sorted(specials.values())
        named = {role: self.tokenizer.id(token) for role, token in sorted(self.tokenizer.specials.items())}
        return {role: id for role, id in named.items() if id is not None}, sorted(self.tokenizer.special_ids)

    def _report(self, shares: dict[str, Any], seconds: float, folder: Path) -> dict[str, Any]:
        files = (_read_json(self.building / GRAMS / TOLD) or {"files": []})["files"]
        text = shares["read"]["bytes"]
        final = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        report = {
            "settings": self.asked["settings"], "sources": self.asked["sources"], "read": shares["read"],
            "unread": dict(self.unread),
            "dropped": shares["dropped"], "kept": shares["totals"],
            "unknown": shares["unknown"] / max(shares["tokens"], 1),
            "exclude": [{**file, "paragraphs": shares["shared"].get(str(number), 0)} for number, file in
                        enumerate(files)],
            "speed": {
                "seconds": seconds, "cpu_seconds": shares["cpu"], "processes": self.processes,
                "megabytes_per_second": text / 1e6 / seconds,
                "megabytes_per_cpu_second": text / 1e6 / max(shares["cpu"], 1e-9),
            },
            "disk": {"final": final, "most": shares["most"], "most_to_text": shares["most"] / max(text, 1)},
        }  # fmt: skip
        return report | {"notes": notes_on(report)}


def digest(content: Any) -> str:
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _read_json(path: Path) -> Any:
    """None: it is not there, or was not finished."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _nothing_left(documents: int, dropped: Reasons) -> str:
    empty = dropped.get("empty", Dropped())
    if documents == empty.count:
        return "The sources hold no text; give files with documents in them."
    counts = ", ".join(
        f"{counted(told.count, 'paragraph') if reason == 'excluded' else told.count} {reason}"
        for reason, told in dropped.items()
    )
    return (
        f"Of {counted(documents, 'document')} nothing is left to train on ({counts or 'all are held out'}); give more "
        "text, or fewer filters (--no-filters, --shortest, --tokens-per-character, --exclude, --held-out 0)."
    )
