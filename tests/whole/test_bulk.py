"""Answers to files: the same bytes whatever killed them in between, bounded memory, one sentence for each mistake."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole.tiny import make_encoder

import bertsmith
from bertsmith import asking, bulk, bulk_output
from bertsmith.bulk_answers import Answered
from bertsmith.bulk_output import Counts, Journal, OutputFile
from bertsmith.cli import main
from bertsmith.data import streaming
from bertsmith.data.reading import read_table
from bertsmith.data.streaming import Place, open_rows

HEADS = {
    "classify": "ForSequenceClassification", "score": "ForSequenceClassification", "tag": "ForTokenClassification",
    "answer": "ForQuestionAnswering", "choose": "ForMultipleChoice", "fill": "ForPreTraining",
    "follows": "ForPreTraining", "embed": "Model",
}  # fmt: skip
WORDS = ["the", "film", "was", "good", "bad", "river", "town", "paris", "london", "sad", "happy", "song"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tiny model for each job, made when it is first asked for."""
    place, made = tmp_path_factory.mktemp("models"), {}

    def find(job):
        if job not in made:
            made[job] = make_encoder(place / job, HEADS[job], **({"num_labels": 1} if job == "score" else {}))
        return made[job]

    return find


@pytest.fixture(scope="module")
def classifier(models):
    return bertsmith.load(models("classify"), device="cpu")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Blocks of 16 rows, so that a small file has many."""
    job = asking.JOBS["classify"]
    monkeypatch.setitem(asking.JOBS, "classify", asking.Job(job.task, job.head, job.what, job.second, chunk=16))


def texts(count, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(2, 30))) for _ in range(count)]


def write_rows(path, count, seed=0):
    path.write_text("".join(json.dumps({"id": f"r{i}", "text": t}) + "\n" for i, t in enumerate(texts(count, seed))))
    return path


def records(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


ROWS = {
    "classify": [{"text": "the film was good"}, {"text": "a sad plot"}],
    "score": [{"text": "the film", "pair": "it was good"}, {"text": "a sad plot", "pair": "it was bad"}],
    "tag": [{"words": ["Ann", "lives", "in", "Rome"]}, {"words": ["Bob"]}],
    "answer": [{"id": "q1", "question": "who lives here", "context": "Ann lives in Paris"}],
    "choose": [{"prompt": "the film was", "choices": ["good", "bad", "dull"]}],
    "fill": [{"text": "the [MASK] was good"}, {"text": "[MASK] and [MASK]"}],
    "follows": [{"text": "it was sad", "pair": "the film"}],
    "embed": [{"text": "a river"}, {"text": "the town"}],
}


@pytest.mark.parametrize("job", ROWS)
def test_each_verb_writes_to_a_file_what_it_writes_to_a_pipe(job, models, tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[job]))
    model = bertsmith.load(models(job), device="cpu")
    made = bertsmith.predict_file(job, tmp_path / "in.jsonl", tmp_path / "out.jsonl", model)
    found = records(made.out)
    assert [record["row"] for record in found] == [*range(1, len(ROWS[job]) + 1)]
    question = asking.Question(job)
    rows = open_rows(tmp_path / "in.jsonl")
    (block,) = rows.blocks(100)
    asked = question.read(rows, block.rows, question.find_columns(rows, {}))
    plain = [(row.get("text"), row.get("pair")) for row in ROWS[job]]
    match job:
        case "tag":
            wanted = [one.as_dict() for one in asking.ask_words(model, asked, {})]
        case "answer":
            wanted = [model.answer(row["question"], row["context"]).as_dict() for row in ROWS[job]]
            assert found[0]["id"] == "q1" and found[0]["context"] == ROWS[job][0]["context"]
        case "choose":
            wanted = [model.choose(row["prompt"], row["choices"]).as_dict() for row in ROWS[job]]
        case "embed":
            np.testing.assert_allclose([one["vector"] for one in found], model.embed([t for t, _ in plain]), atol=1e-6)
            return
        case "fill":
            wanted = [one.as_dict() for one in model.fill([t for t, _ in plain])]
        case _:
            pairs = [p for _, p in plain] if plain[0][1] else None
            wanted = [one.as_dict() for one in getattr(model, job)([t for t, _ in plain], pairs)]
    for record, one in zip(found, wanted, strict=True):
        assert {key: record[key] for key in one} == json.loads(asking.write_line(one))


def test_pipe_and_file_agree_to_the_byte(models, tmp_path, monkeypatch, capsysbinary):
    source = write_rows(tmp_path / "in.jsonl", 50)
    words = ["bertsmith", "classify", "--in", str(source), "--model", str(models("classify")), "--threads", "1"]
    printed = []
    for more in ([], ["--out", str(tmp_path / "out.jsonl")]):
        monkeypatch.setattr(sys, "argv", [*words, *more])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        printed.append(capsysbinary.readouterr().out)
    assert printed[0].count(b"\n") == 50 and printed == [(tmp_path / "out.jsonl").read_bytes(), b""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl", "out.jsonl.journal"]


KILLED = """
import sys
from bertsmith import asking, bulk
from bertsmith.loading import load
job = asking.JOBS["classify"]
asking.JOBS["classify"] = asking.Job(job.task, job.head, job.what, job.second, chunk=16)
model = load(sys.argv[3], device="cpu", threads=1)
print("ready", flush=True)
bulk.predict_file("classify", sys.argv[1], sys.argv[2], model)
"""


def test_killed_at_random_moments_it_goes_on_to_the_same_bytes(models, classifier, tmp_path):
    source = write_rows(tmp_path / "in.jsonl", 1500)
    bertsmith.predict_file("classify", source, tmp_path / "wanted.jsonl", classifier)
    out, rng, kills, places = tmp_path / "out.jsonl", random.Random(1), 0, []
    while kills < 2:
        command = [sys.executable, "-c", KILLED, str(source), str(out), str(models("classify"))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
            assert process.stdout.readline() == b"ready\n"
            before, journal = places[-1] if places else 0, out.with_name("out.jsonl.journal")
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not (journal.exists() and rows_of(journal) > before + 100):
                assert process.poll() is None or out.exists()
                time.sleep(0.001)
            time.sleep(rng.random() * 0.02)  # anywhere inside a block, a write or a checkpoint
            process.send_signal(signal.SIGKILL)
        places.append(rows_of(journal))
        kills += 1
        assert not out.exists()
        with out.with_name("out.jsonl.part").open("ab") as file:  # the half of a line that a kill may leave
            file.write(b'{"row": 77, "inp')
    said = []
    bertsmith.predict_file("classify", source, out, classifier, say=said.append)
    assert said == [f"going on after {places[-1]:,} rows."] and places == sorted(places) and places[0] >= 100
    assert [record["row"] for record in records(out)] == [*range(1, 1501)]
    assert labels(out) == labels(tmp_path / "wanted.jsonl")
    assert out.read_bytes() == (tmp_path / "wanted.jsonl").read_bytes()


def rows_of(journal):
    return json.loads(journal.read_text())["counts"]["rows"]


def labels(path):
    return [(record["id"], record["answers"][0]["label"]) for record in records(path)]


MEMORY = """
import sys
from bertsmith import bulk
from bertsmith.loading import load
bulk.predict_file("embed", sys.argv[1], sys.argv[2], load(sys.argv[3], device="cpu", threads=1))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the peak of a process alone")
def test_memory_does_not_grow_with_the_file(models, tmp_path):
    """Rows with much beside the text, so that reading is what would take the memory; 8 MB, and 64 MB."""
    peaks = []
    for megabytes in (8, 64):
        line = json.dumps({"text": "the film was good", "note": "x" * 30_000}) + "\n"
        source = tmp_path / f"{megabytes}.jsonl"
        source.write_text(line * (megabytes * 1_000_000 // len(line)))
        command = [sys.executable, "-c", MEMORY, str(source), str(tmp_path / f"{megabytes}.npy"), str(models("embed"))]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout) // 1024)
        assert len(np.load(tmp_path / f"{megabytes}.npy")) == len(source.read_text().splitlines())
    assert peaks[1] < peaks[0] + 30, f"MiB: {peaks}"


class FakeOutput(OutputFile):
    """Dies at a chosen write or save, leaving what a kill there would leave."""

    left = 10**9

    def _flush(self):
        data = b"".join(self._buffer)
        FakeOutput.left -= 1
        if FakeOutput.left == 0:
            os.write(self._file, data[: len(data) // 2])
            raise KeyboardInterrupt
        super()._flush()

    def save(self, journal):
        FakeOutput.left -= 1
        if FakeOutput.left == 0:
            raise KeyboardInterrupt
        super().save(journal)

    def give_name(self):
        FakeOutput.left -= 1
        if FakeOutput.left == 0:
            raise KeyboardInterrupt
        super().give_name()


class Echo:
    """In the place of the model's answers: the row's number."""

    def __init__(self, bad):
        self.bad = bad

    def __call__(self, answering, model, block):
        for row in block.rows:
            if row.number in self.bad and answering.on_error == "stop":
                raise bertsmith.BertsmithError(f"row {row.number}")
            yield Answered(b"%d\n" % row.number, row.end, row.number in self.bad)


@settings(deadline=None, max_examples=60)
@given(
    kills=st.lists(st.integers(1, 12), max_size=4), rows=st.integers(1, 60), size=st.integers(1, 20),
    bad=st.sets(st.integers(1, 60), max_size=3),
)  # fmt: skip
def test_whatever_stops_it_each_row_is_there_once(tmp_path_factory, classifier, kills, rows, size, bad):
    place = tmp_path_factory.mktemp("journal")
    source = place / "in.txt"
    source.write_text("".join(f"text {n}\n" for n in range(1, rows + 1)))
    with pytest.MonkeyPatch.context() as patch:
        job = asking.JOBS["embed"]
        patch.setitem(asking.JOBS, "embed", asking.Job(roles=job.roles, chunk=size))
        patch.setattr(bulk, "OutputFile", FakeOutput)
        patch.setattr(bulk.Answering, "answer", lambda self, model, block: Echo(bad)(self, model, block))
        patch.setattr(
            bulk,
            "describe_asked",
            lambda *_: {
                "job": "",
                "input": "",
                "format": "",
                "options": {},
                "columns": {},
                "model": {"dtype": "", "digest": ""},
            },
        )
        for kill in [*kills, 10**9]:
            FakeOutput.left = kill
            try:
                bulk.predict_file("embed", source, place / "out", classifier, on_error="skip")
            except (KeyboardInterrupt, bertsmith.BertsmithError):
                assert kill < 10**9
    assert (place / "out").read_text() == "".join(f"{n}\n" for n in range(1, rows + 1))
    journal = OutputFile(place / "out").read_journal()
    assert journal.counts == Counts(rows=rows, errors=len([n for n in bad if n <= rows])) and journal.finished
    assert Journal.parse(journal.write()) == journal


def test_a_bad_row_stops_and_after_the_fix_the_work_goes_on(classifier, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    good = write_rows(source, 40).read_text().splitlines()
    source.write_text("\n".join([*good[:20], "no json", *good[20:], '{"id": "x"}']) + "\n")
    said = []
    with pytest.raises(bertsmith.BertsmithError, match=r"in.jsonl, line 21: not JSON"):
        bertsmith.predict_file("classify", source, out, classifier, say=said.append)
    assert len(records(f"{out}.part")) == 20 and not out.exists() and "20 rows are kept" in said[0]
    source.write_text("\n".join([*good, '{"id": "x"}']) + "\n")  # a row behind those that were answered was corrected
    with pytest.raises(bertsmith.BertsmithError, match=r'in.jsonl, line 41, column "text": the text is missing'):
        bertsmith.predict_file("classify", source, out, classifier)
    made = bertsmith.predict_file("classify", source, out, classifier, on_error="skip")
    assert (made.rows, made.errors) == (41, 1)
    assert records(out)[40] == {"row": 41, "error": f'{source}, line 41, column "text": the text is missing; give one '
                                "or take the row out."}  # fmt: skip
    source.write_text("\n".join(["{}", *good[1:]]) + "\n")
    with pytest.raises(bertsmith.BertsmithError, match="has changed since; give another file, or --overwrite"):
        bertsmith.predict_file("classify", source, out, classifier)


def test_a_row_without_a_mask_is_named_by_its_row(models, tmp_path):
    """Each was called text 1, as it was when it was asked alone."""
    texts = ["the [MASK] was good", "no gap", "[MASK]", " ", "[MASK] " + "film " * 600]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    options = {"truncate": "error"}
    given = ("fill", tmp_path / "in.jsonl", tmp_path / "out.jsonl", models("fill"))
    with pytest.raises(bertsmith.BertsmithError, match=r"in.jsonl, line 2: the text has no mask; write \[MASK\] where"):
        bertsmith.predict_file(*given, options=options, say=(said := []).append)
    assert said == [f"The answers to 1 row are kept in {tmp_path / 'out.jsonl.part'}: the same command goes on."]
    bertsmith.predict_file(*given, options=options, on_error="skip", say=said.append)
    assert said[1:] == ["going on after 1 row."]
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    errors = {line["row"]: line["error"].partition(": ")[2] for line in lines if "error" in line}
    assert errors.keys() == {2, 4, 5} and all("text 1" not in told for told in errors.values())
    assert errors[5].startswith("the input has 603 tokens but at most")


def test_rows_that_were_answered_may_not_change(classifier, tmp_path):
    source, out = write_rows(tmp_path / "in.jsonl", 40), tmp_path / "out.jsonl"
    with source.open("a") as file:
        file.write("no json\n")
    with pytest.raises(bertsmith.BertsmithError, match="not JSON"):
        bertsmith.predict_file("classify", source, out, classifier)
    write_rows(source, 40, seed=1)
    with pytest.raises(bertsmith.BertsmithError, match="has changed in the 40 rows that were answered"):
        bertsmith.predict_file("classify", source, out, classifier)
    made = bertsmith.predict_file("classify", source, out, classifier, overwrite=True)
    assert made.rows == 40 and [record["input"] for record in records(out)] == texts(40, seed=1)


def test_finished_other_settings_and_overwrite(classifier, tmp_path):
    source, out, said = write_rows(tmp_path / "in.jsonl", 20), tmp_path / "out.jsonl", []
    bertsmith.predict_file("classify", source, out, classifier)
    before = out.stat().st_mtime_ns
    again = bertsmith.predict_file("classify", source, out, classifier, say=said.append)
    assert again.rows == 20 and out.stat().st_mtime_ns == before
    assert said == [f"{out} is finished already; nothing was done."]
    os.utime(source)  # touched, and the same
    bertsmith.predict_file("classify", source, out, classifier)
    with pytest.raises(bertsmith.BertsmithError, match="top_k was not given and is now 1; give another file"):
        bertsmith.predict_file("classify", source, out, classifier, options={"top_k": 1})
    made = bertsmith.predict_file("classify", source, out, classifier, options={"top_k": 1}, overwrite=True)
    assert all(len(record["answers"]) == 1 for record in records(made.out))
    with source.open("a") as file:
        file.write('{"text": "more"}\n')
    with pytest.raises(bertsmith.BertsmithError, match="has more rows now"):
        bertsmith.predict_file("classify", source, out, classifier, options={"top_k": 1})
    (tmp_path / "other.jsonl").write_text("mine")
    with pytest.raises(bertsmith.BertsmithError, match="what it was made from is not known"):
        bertsmith.predict_file("classify", source, tmp_path / "other.jsonl", classifier)
    assert (tmp_path / "other.jsonl").read_text() == "mine"


def test_options_are_the_same_however_their_lists_are_written(models, tmp_path):
    """A journal knows no tuples: the same call again must not take its own for another's."""
    source, out, said = tmp_path / "in.txt", tmp_path / "out.jsonl", []
    source.write_text("the film was [MASK]\n")
    for targets in (("good", "bad"), ["good", "bad"]):
        bertsmith.predict_file("fill", source, out, models("fill"), options={"targets": targets}, say=said.append)
    assert said == [f"{out} is finished already; nothing was done."]


def test_the_file_that_is_read_is_never_written(classifier, tmp_path):
    rows, link = tmp_path / "rows.jsonl", tmp_path / "link.jsonl"
    rows.write_text('{"text": "a good film"}\n')
    link.symlink_to(rows)
    for out in (rows, link):
        with pytest.raises(bertsmith.BertsmithError, match="is the file that is read; give another one"):
            bertsmith.predict_file("classify", rows, out, classifier, overwrite=True)
    assert rows.read_text() == '{"text": "a good film"}\n' and len(list(tmp_path.iterdir())) == 2


def test_an_option_that_a_job_does_not_have_is_refused_before_anything_is_written(classifier, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "a good film"}\n')
    with pytest.raises(bertsmith.BertsmithError, match=r"^classify has no option 'bogus'; it has labels, .*top_k"):
        bertsmith.predict_file(
            "classify", tmp_path / "rows.jsonl", tmp_path / "out.jsonl", classifier, options={"bogus": 1}
        )
    assert len(list(tmp_path.iterdir())) == 1
    bertsmith.predict_file("classify", tmp_path / "rows.jsonl", tmp_path / "out.jsonl", classifier,
                           options={"top_k": 1})  # fmt: skip


def test_a_second_process_is_refused(classifier, tmp_path):
    source, out = write_rows(tmp_path / "in.jsonl", 20), tmp_path / "out.jsonl"
    held = OutputFile(out)
    held.open()
    with pytest.raises(bertsmith.BertsmithError, match="is being written by another process"):
        bertsmith.predict_file("classify", source, out, classifier)
    held.close()
    assert bertsmith.predict_file("classify", source, out, classifier).rows == 20


def test_a_full_disk_is_a_sentence_and_what_was_written_is_kept(classifier, tmp_path, monkeypatch):
    source, out, left = write_rows(tmp_path / "in.jsonl", 60), tmp_path / "out.jsonl", [2]

    def write(file, data):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return real(file, data)

    real = os.write
    monkeypatch.setattr(bulk_output.os, "write", write)
    with pytest.raises(bertsmith.BertsmithError, match="is full; make room, and the same command goes on"):
        bertsmith.predict_file("classify", source, out, classifier)
    monkeypatch.undo()
    bertsmith.predict_file("classify", source, out, classifier)
    assert [record["row"] for record in records(out)] == [*range(1, 61)]


def test_packed_and_delimited_files_give_the_same_answers(classifier, tmp_path):
    source = write_rows(tmp_path / "in.jsonl", 40)
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(source.read_bytes()))
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    (tmp_path / "in.csv").write_text("id,text\n" + "".join(f'{row["id"]},"{row["text"]}"\n' for row in rows))
    (tmp_path / "in.json").write_text(json.dumps(rows))
    found = {}
    for name in ("in.jsonl", "in.jsonl.gz", "in.csv", "in.json"):
        made = bertsmith.predict_file("classify", tmp_path / name, tmp_path / f"{name}.out", classifier)
        found[name] = [(one["id"], one["answers"]) for one in records(made.out)]
    assert found["in.jsonl"] == found["in.jsonl.gz"] and found["in.csv"] == found["in.jsonl"] == found["in.json"]


CELL = st.text(st.sampled_from('ab ,"\n\té'), max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=12), st.integers(1, 5))
def test_a_streamed_table_is_the_table(tmp_path_factory, cells, size):
    """CSV and JSON Lines in blocks against the same files read whole; and any place is one to go on from."""
    place = tmp_path_factory.mktemp("tables")
    (place / "a.jsonl").write_text("".join(json.dumps({"text": a, "note": b}) + "\n" for a, b in cells))
    quoted = [[cell.replace('"', '""') for cell in row] for row in cells]
    (place / "a.csv").write_bytes("".join(["text,note\n", *(f'"{a}","{b}"\n' for a, b in quoted)]).encode())
    for name in ("a.jsonl", "a.csv"):
        try:
            whole = read_table(place / name)
        except bertsmith.BertsmithError:
            with pytest.raises(bertsmith.BertsmithError):
                list(open_rows(place / name).blocks(size)) or open_rows(place / name).head()
            continue
        rows = open_rows(place / name)
        blocks = list(rows.blocks(size))
        found = [row for block in blocks for row in block.rows]
        assert rows.layout.streamed and max(len(block.rows) for block in blocks) <= size
        assert [row.record for row in found] == whole.records and [row.number for row in found] == list(whole.rows)
        for block in blocks:
            rest = [row for later in rows.blocks(size, block.start) for row in later.rows]
            assert rest == [row for row in found if row.end > block.start]
        assert rows.hasher(Place()).hexdigest() != rows.hasher(found[-1].end).hexdigest()


@pytest.mark.parametrize("header", ["text;note\r\n", ""])
@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "SEP=;\n"])
def test_the_line_that_excel_puts_first(tmp_path, first, header):
    """In blocks as in one: it is no row, and those behind it keep the numbers that an editor gives them."""
    content = f'{first}{header}a, b;2\r\n"x;y";1\r\n'
    (tmp_path / "in.csv").write_bytes(content.encode("utf-8-sig"))
    whole, rows = read_table(tmp_path / "in.csv"), open_rows(tmp_path / "in.csv")
    assert [list(record.values()) for record in whole.records] == [["a, b", "2"], ["x;y", "1"]]
    found = [row for block in rows.blocks(10) for row in block.rows]
    assert rows.layout.streamed and rows.layout.columns == whole.columns
    assert [row.record for row in found] == whole.records
    assert [row.number for row in found] == list(whole.rows) == ([3, 4] if header else [2, 3])


def test_vectors_go_into_a_numpy_file_and_a_bad_row_is_nan(models, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "a river"}\n{"text": 3}\n{"text": "the town"}\n')
    model = bertsmith.load(models("embed"), device="cpu")
    made = bertsmith.predict_file("embed", tmp_path / "in.jsonl", tmp_path / "out.npy", model, on_error="skip")
    vectors = np.load(made.out)
    assert vectors.dtype == np.float32 and (made.rows, made.errors) == (3, 1) and np.isnan(vectors[1]).all()
    np.testing.assert_allclose(vectors[[0, 2]], model.embed(["a river", "the town"]), atol=1e-6)


@pytest.mark.parametrize(
    "job, out, options, sentence",
    [
        ("classify", "out.npy", {}, "does not give"),
        ("clasify", "out.jsonl", {}, "use one of classify, score"),
        ("classify", "nowhere/out.jsonl", {}, "there is no folder"),
        ("classify", ".", {}, "is a folder"),
        ("classify", "out.jsonl", {"columns": {"text": "nothing"}}, 'no column "nothing"'),
        ("classify", "out.jsonl", {"on_error": "pass"}, "on_error 'pass' is not known"),
        ("classify", "out.jsonl", {"engine": "dask"}, "engine 'dask' is not known"),
        ("tag", "out.jsonl", {}, "has no head to tag words"),
    ],
)
def test_mistakes_are_sentences_and_leave_nothing_behind(classifier, tmp_path, job, out, options, sentence):
    source = write_rows(tmp_path / "in.jsonl", 3)
    with pytest.raises(bertsmith.BertsmithError, match=sentence):
        bertsmith.predict_file(job, source, tmp_path / out, classifier, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.npz", "a.jsonl.gz", "a.CSV", "a.xlsx", "a.NPY"])
def test_a_name_of_another_kind_of_file_is_refused(models, classifier, tmp_path, name):
    """What is written is JSON lines; a table or a packed file of that name would be unreadable to whoever opens it."""
    (tmp_path / "in.csv").write_text("text\nthe film was good\n")
    for job, model in (("classify", classifier), ("embed", bertsmith.load(models("embed"), device="cpu"))):
        with pytest.raises(bertsmith.BertsmithError, match=r"in spite of its name; give a FILE\.jsonl\.$"):
            bertsmith.predict_file(job, tmp_path / "in.csv", tmp_path / name, model)
    assert [each.name for each in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("out", [".", "/", Path("")], ids=str)
def test_a_folder_without_a_name_is_a_sentence(classifier, tmp_path, monkeypatch, out):
    """What a shell makes of a variable that is not set comes as the folder one stands in."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.jsonl", 2)
    with pytest.raises(bertsmith.BertsmithError, match="is a folder; give a file to write the answers to"):
        bertsmith.predict_file("classify", tmp_path / "rows.jsonl", out, classifier)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_files_put_together_with_a_header_each(classifier, tmp_path):
    (tmp_path / "in.csv").write_text("text,id\na river,1\ntext,id\nthe town,2\n")
    made = bertsmith.predict_file("classify", tmp_path / "in.csv", tmp_path / "out.jsonl", classifier, on_error="skip")
    assert (made.rows, made.errors) == (3, 1)
    assert [record.get("id") for record in records(made.out)] == ["1", None, "2"]
    assert "row 3: the header stands here once more" in records(made.out)[1]["error"]


def test_no_name_to_read_from_is_a_sentence(classifier, tmp_path):
    with pytest.raises(bertsmith.BertsmithError, match="the name of the file is empty; give a path"):
        bertsmith.predict_file("classify", "", tmp_path / "out.jsonl", classifier)


def test_ray_without_ray_is_a_sentence(classifier, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    source = write_rows(tmp_path / "in.jsonl", 3)
    with pytest.raises(bertsmith.BertsmithError, match=r"pip install 'bertsmith\[ray\]'"):
        bertsmith.predict_file("classify", source, tmp_path / "out.jsonl", classifier, engine="ray")


def test_parts_of_many_machines_are_the_same_bytes(classifier, tmp_path, monkeypatch):
    """Ray's place is taken by a loop that runs each part as a worker would: from a copy that travelled."""
    import copy

    def run(function, jobs, processes, engine, gpus):
        assert engine == "ray" and processes == 1 and gpus is None
        for number, job in enumerate(reversed(jobs), 1):
            copy.copy(function)(job)
            yield number

    source = write_rows(tmp_path / "in.jsonl", 100)
    wanted = bertsmith.predict_file("classify", source, tmp_path / "wanted.jsonl", classifier).out.read_bytes()
    monkeypatch.setattr("bertsmith.bulk_parts.run", run)
    with source.open("a") as file:
        file.write("no json\n")
    with pytest.raises(bertsmith.BertsmithError, match="line 101: not JSON"):
        bertsmith.predict_file("classify", source, tmp_path / "out.jsonl", classifier, engine="ray")
    write_rows(source, 100)
    bertsmith.predict_file("classify", source, tmp_path / "out.jsonl", classifier, engine="ray")
    assert (tmp_path / "out.jsonl").read_bytes() == wanted and not (tmp_path / "out.jsonl.parts").exists()


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray_writes_the_same_bytes(classifier, tmp_path):
    ray = pytest.importorskip("ray")
    source = write_rows(tmp_path / "in.jsonl", 100)
    wanted = bertsmith.predict_file("classify", source, tmp_path / "wanted.jsonl", classifier).out.read_bytes()
    before = signal.getsignal(signal.SIGTERM)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        made = bertsmith.predict_file("classify", source, tmp_path / "out.jsonl", classifier, engine="ray")
        assert labels(made.out) == labels(tmp_path / "wanted.jsonl") and made.out.read_bytes().count(b"\n") == 100
        assert len(wanted) > 0
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)  # Ray leaves its own, which would end the process of all tests


def test_lines_that_never_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "LONGEST_LINE", 1 << 20)
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n' + "x" * (1 << 22))
    with pytest.raises(bertsmith.BertsmithError, match="line 2: longer than 1 MiB"):
        list(open_rows(tmp_path / "in.jsonl").blocks(10))
