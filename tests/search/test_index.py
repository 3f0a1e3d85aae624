"""An index answers as the slow way does, follows its files, and survives what happens to it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from whole.tiny import make_encoder

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.model import Model
from bertsmith.search import vectors
from bertsmith.search.fingerprints import PROBES
from bertsmith.search.updating import taken
from bertsmith.searching import index

FILES = {
    "rivers.txt": "The river runs through Oslo.\nAnn lives at the river.\nBob works in the town.\n",
    "films.md": "# Films\n\nThe film was good, and the plot was great.\n\nThe cast was dull.\n",
    "deep/songs.html": "<p>The song was <b>fine</b>.</p><script>let x</script><p>It was sad.</p>",
    "news.jsonl": '{"text": "The party won the vote."}\n{"text": "An atom is a wave. A cell is not."}\n',
}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "texts"
    for name, content in FILES.items():
        write(place / name, content)
    return place


@pytest.fixture
def embedded(monkeypatch):
    """The texts that were embedded, in order."""
    found = []
    real = Model.embed

    def embed(self, texts, **options):
        if tuple(texts) != PROBES:
            found.extend(texts)
        return real(self, texts, **options)

    monkeypatch.setattr(Model, "embed", embed)
    return found


def write(path, content, age=100):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns - age * 10**9))


def passages(made):
    return sorted((a["document"], a["start"], a["text"]) for a in made.search("the", 100, how="dense"))


def test_answers_say_where_they_stand(folder, encoder):
    made = index(folder, encoder)
    assert len(made) == 7 and made.notes == []
    texts = {"deep/songs.html": "The song was fine.\n\nIt was sad.", "news.jsonl:1": "The party won the vote.",
             "news.jsonl:2": "An atom is a wave. A cell is not."}  # fmt: skip
    for answer in made.search("who lives at the river", 20, how="dense"):
        assert list(answer) == ["document", "start", "end", "text", "score"]
        text = texts.get(answer["document"]) or FILES[answer["document"]]
        assert text[answer["start"] : answer["end"]] == answer["text"]
    assert made.search("river Ann", 1, how="bm25")[0]["text"] == "Ann lives at the river."


def test_dense_is_the_cosine_of_the_model_s_own_vectors(folder, encoder):
    made = index(folder, encoder)
    found = made.search("the sad song", 20, how="dense")
    texts = [answer["text"] for answer in found]
    expected = encoder.embed(texts, normalize=True) @ encoder.embed("the sad song", normalize=True)
    assert [answer["score"] for answer in found] == pytest.approx(expected.tolist(), abs=1e-3)
    assert sorted(expected, reverse=True) == pytest.approx(expected.tolist(), abs=1e-3)


def test_several_queries_are_answered_as_one_by_one(folder, encoder):
    made = index(folder, encoder)
    queries = ["the river", "a good film", "vote"]
    for how in ("bm25", "dense", "hybrid"):
        together = made.search(queries, 3, how=how)
        for query, result in zip(queries, together, strict=True):
            alone = made.search(query, 3, how=how)
            assert [a["text"] for a in result] == [a["text"] for a in alone]
    assert made.search([]) == []


def test_hybrid_is_the_fusion_of_both(folder, encoder):
    made = index(folder, encoder)
    both = [made.search("the river", 50, how=how) for how in ("bm25", "dense")]
    ranks = [{answer["text"]: rank for rank, answer in enumerate(found, 1)} for found in both]
    for answer in made.search("the river", 50, how="hybrid"):
        assert answer["score"] == pytest.approx(sum(1 / (60 + r[answer["text"]]) for r in ranks if answer["text"] in r))


def test_only_what_changed_is_embedded_again(folder, encoder, embedded):
    index(folder, encoder)
    assert len(embedded) == 7
    embedded.clear()
    index(folder, encoder)
    assert embedded == []
    write(folder / "rivers.txt", FILES["rivers.txt"] + "Cyd was happy.\n")
    (folder / "films.md").rename(folder / "movies.md")
    (folder / "news.jsonl").unlink()
    made = index(folder, encoder)
    assert embedded == ["Cyd was happy."]
    embedded.clear()
    assert passages(made) == passages(index(folder, encoder, place=folder.parent / "fresh"))
    assert {answer[0] for answer in passages(made)} == {"rivers.txt", "movies.md", "deep/songs.html"}
    assert len(list((folder / ".bertsmith-index").glob("generation-*"))) == 1


def test_a_change_within_the_same_tick_and_size_is_noticed(folder, encoder):
    path = folder / "rivers.txt"
    write(path, "Ann lives in Oslo.\n", age=0)
    index(folder, encoder)
    time = path.stat().st_mtime_ns
    path.write_text("Ann lives in Rome.\n")
    os.utime(path, ns=(time, time))
    assert "Ann lives in Rome." in [answer[2] for answer in passages(index(folder, encoder))]


def test_a_file_that_was_only_touched_costs_no_new_generation(folder, encoder, embedded):
    index(folder, encoder)
    os.utime(folder / "rivers.txt")
    embedded.clear()
    index(folder, encoder)
    assert embedded == []
    assert [path.name for path in (folder / ".bertsmith-index").glob("gen*")] == ["generation-000001"]


def test_another_model_or_length_makes_it_anew_with_a_sentence(folder, encoder, tmp_path):
    index(folder, encoder)
    other = bertsmith.load(make_encoder(tmp_path / "other", seed=7), device="cpu")
    assert "made with another model" in index(folder, other).notes[0]
    assert index(folder, other).notes == []
    made = index(folder, other, passage_tokens=10)
    assert "its passages had 64 tokens" in made.notes[0]
    assert len(made) > 7


def test_a_damaged_index_is_made_anew(folder, encoder):
    before = passages(index(folder, encoder))
    with (folder / ".bertsmith-index" / "generation-000001" / "vectors.npy").open("r+b") as file:
        file.truncate(50)
    again = index(folder, encoder)
    assert "damaged" in again.notes[0] and passages(again) == before


KILLED = """
import os, signal, sys
import bertsmith
from bertsmith.model import Model
from bertsmith.search import vectors
from bertsmith.searching import index
vectors.CHUNK, real, calls = 2, Model.embed, []
def embed(self, texts, **options):
    calls.append(texts)
    if len(calls) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, texts, **options)
Model.embed = embed
index(sys.argv[1], bertsmith.load(sys.argv[2], device="cpu", threads=1))
"""


def test_a_killed_update_goes_on_where_it_was(folder, encoder, embedded):
    ran = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(encoder.folder)])
    assert ran.returncode == -signal.SIGKILL
    pending = folder / ".bertsmith-index" / "pending" / "vectors.bin"
    with pending.open("ab") as file:
        file.write(b"half a record")
    made = index(folder, encoder)
    assert len(embedded) == 3  # of 7, after two chunks of two
    embedded.clear()
    assert passages(made) == passages(index(folder, encoder, place=folder.parent / "fresh"))
    fresh, resumed = (Path(p) / "generation-000001" / "vectors.npy" for p in (folder.parent / "fresh", made.place))
    assert np.allclose(np.load(fresh), np.load(resumed), atol=1e-3)
    assert not pending.exists()


def test_two_at_once_is_a_sentence_but_reading_goes_on(folder, encoder):
    index(folder, encoder)
    with taken(folder / ".bertsmith-index"):
        assert len(index(folder, encoder)) == 7
        write(folder / "more.txt", "Eve runs.\n")
        with pytest.raises(BertsmithError, match="another process is writing the index"):
            index(folder, encoder)
    assert len(index(folder, encoder)) == 8


def test_an_open_index_answers_while_another_replaces_it(folder, encoder):
    made = index(folder, encoder)
    before = made.search("the river", 3).answers
    write(folder / "rivers.txt", "Nothing is left.\n")
    index(folder, encoder)
    assert made.search("the river", 3).answers == before


def test_files_that_cannot_be_read_are_passed_over_with_a_note(folder, encoder):
    (folder / "lost.txt").symlink_to(folder / "nowhere.txt")
    (folder / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\xff")
    made = index(folder, encoder)
    assert len(made) == 7 and len(made.notes) == 2
    assert made.notes[0].startswith("lost.txt cannot be read") and "picture.txt" in made.notes[1]
    assert index(folder, encoder).notes == made.notes
    assert [path.name for path in made.place.glob("gen*")] == ["generation-000001"]
    (folder / "picture.txt").write_text("A picture of the river.\n")
    assert len(index(folder, encoder).notes) == 1


def test_a_file_is_no_place_for_an_index(folder, encoder):
    with pytest.raises(BertsmithError, match="cannot be written: File exists; name another place"):
        index(folder, encoder, place=folder / "rivers.txt")


def test_a_pipe_is_not_waited_for(folder, encoder):
    os.mkfifo(folder / "pipe.txt")
    assert index(folder, encoder).notes == ["pipe.txt cannot be read: it is a pipe or a device, not a file."]
    assert len(index(folder, encoder)) == 7


def test_a_folder_that_cannot_be_looked_into_is_a_note(folder, encoder, monkeypatch):
    look = os.scandir

    def refuse(path):
        if not isinstance(path, int) and Path(path).name == "deep":
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", refuse)
    made = index(folder, encoder)
    assert len(made) == 6 and made.notes[0].startswith("deep/ cannot be read")
    monkeypatch.undo()
    made = index(folder, encoder)
    assert len(made) == 7 and made.notes == []


def test_a_folder_without_texts_is_a_sentence(tmp_path, encoder):
    with pytest.raises(BertsmithError, match="holds no text to search"):
        index(tmp_path, encoder)
    with pytest.raises(BertsmithError, match=r"no file of \*\.txt, .* is called \*\.rst, notes\.txt "):
        index(tmp_path, encoder, only=["*.rst", "notes.txt"])
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(BertsmithError, match="no text to search in 1 file; all of them are empty"):
        index(tmp_path, encoder)
    (tmp_path / "empty.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BertsmithError, match="could not be read, the first because: empty"):
        index(tmp_path, encoder)


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"query": " \n"}, "the query is empty"),
        ({"query": ["the", ""]}, "the query is empty"),
        ({"query": "a", "top_k": 0}, "top_k is 0"),
        ({"query": "a", "how": "magic"}, "how='magic' is not a choice"),
    ],
)
def test_wrong_questions_are_sentences(folder, encoder, asked, said):
    with pytest.raises(BertsmithError, match=said):
        index(folder, encoder).search(**asked)


def test_passages_longer_than_the_model_reads_are_refused(folder, encoder):
    with pytest.raises(BertsmithError, match="reads at most 64 tokens"):
        index(folder, encoder, passage_tokens=100)


@pytest.mark.parametrize("outputs", [1, 2])
def test_reranking_goes_by_the_cross_encoder_s_scores(folder, encoder, tmp_path, outputs):
    import torch
    import transformers

    place = make_encoder(tmp_path / "judge", "ForSequenceClassification", num_labels=outputs, problem_type="regression"
                         if outputs == 1 else "single_label_classification")  # fmt: skip
    found = index(folder, encoder).search("the river", 7, how="dense", rerank=place)
    reference = transformers.BertForSequenceClassification.from_pretrained(place).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    with torch.no_grad():
        texts = [answer["text"] for answer in found]
        logits = reference(**tokenizer(["the river"] * len(texts), texts, return_tensors="pt", padding=True)).logits
    expected = logits[:, 0].sigmoid() if outputs == 1 else logits.softmax(dim=-1)[:, 1]
    assert [answer["score"] for answer in found] == pytest.approx(expected.tolist(), abs=1e-4)
    assert expected.tolist() == sorted(expected.tolist(), reverse=True)


def test_a_model_that_cannot_rerank_says_so(folder, encoder, tmp_path):
    made = index(folder, encoder)
    with pytest.raises(BertsmithError, match="has no head to compare"):
        made.search("river", rerank=encoder)
    many = make_encoder(tmp_path / "many", "ForSequenceClassification", num_labels=5)
    with pytest.raises(BertsmithError, match="5 classes"):
        made.search("river", rerank=many)


def test_vectors_on_disk_are_half_floats_that_numpy_maps(folder, encoder):
    made = index(folder, encoder)
    found = np.load(made.place / "generation-000001" / "vectors.npy", mmap_mode="r")
    assert found.dtype == np.float16 and found.shape == (7, 32)
    assert json.loads((made.place / "index.json").read_text())["files"]["rivers.txt"]["count"] == 3
    assert vectors.KIND == "<f2"
