"""The command as a process: exit status, pipes, signals, and what it imports."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bertsmith

HEAVY = {"torch", "numpy", "tokenizers", "safetensors", "transformers", "rich"}
VERBS = (
    "check",
    "finetune",
    "evaluate",
    "sweep",
    "classify",
    "tag",
    "answer",
    "fill",
    "follows",
    "embed",
    "search",
    "tokenize",
    "info",
    "models",
    "serve",
)


@pytest.mark.parametrize(
    "words, status, said",
    [
        (["embed"], 2, "Missing argument"),
        (["embed", "-", "more"], 2, "stands alone"),
        (["embed", "a", "--device", "abacus"], 2, "--device"),
        (["embed", "a", "--threads", "0"], 2, "--threads"),
        (["follows", "a"], 2, "give two texts"),
        (["follows", "-", "b"], 2, "give two texts"),
        (["embde", "a"], 2, "Did you mean 'embed'?"),
        (["info", "--model", "missing"], 1, "error: there is no folder 'missing'.\n"),
        (["follows", "a", "b", "--truncate", "windows"], 2, "'error', 'head', 'tail', 'head+tail'."),
        (["info", "here", "--model", "there"], 2, "not both ('here' and 'there')"),
        (["embed", "nan"], 1, "error: the model gave a score that is not a number"),
        (["info", "--model", "interrupt"], 130, ""),
    ],
)
def test_mistakes_have_a_status_and_a_sentence(run, words, status, said):
    ran = run(*words)
    assert ran.status == status and ran.out == ""
    assert said in ran.err and "Traceback" not in ran.err


def test_the_version_is_that_of_the_package(run):
    assert run("--version").out == f"bertsmith {bertsmith.__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example(run, verb):
    ran = run(verb, "--help")
    assert ran.status == 0
    assert "Example" in ran.out and f"  bertsmith {verb}" in ran.out


@pytest.mark.parametrize("words", [["--help"], ["embed", "--help"], ["finetune", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words):
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "bertsmith", *words], capture_output=True, text=True, check=True
    )
    imported = {line.split("|")[-1].strip().split(".")[0] for line in ran.stderr.splitlines() if "|" in line}
    assert "typer" in imported
    assert not imported & HEAVY


def test_a_pipe_gets_json_from_standard_input(start):
    process = start("embed", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(b"a\nb\n")
    assert process.returncode == 0 and err == b"" and out.count(b"\n") == 2


def test_answers_stream_while_the_input_goes_on(start):
    process = start("tokenize", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"x\n" * 4096)
    process.stdin.flush()
    assert process.stdout.readline().startswith(b'{"input": "x"')


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot wait for a pipe")
def test_a_slow_writer_gets_each_answer_at_once(start):
    process = start("embed", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    for written, text in ((b"a\nb", b"a"), (b"c\n", b"bc"), (b"\nd", b"")):  # the end of a line may come later
        process.stdin.write(written)
        assert select.select([process.stdout], [], [], 300)[0], "no answer while the input is open"
        assert process.stdout.readline().startswith(b'{"input": "%s"' % text)
    process.stdin.close()
    assert process.stdout.readline().startswith(b'{"input": "d"')
    assert process.wait(timeout=300) == 0


CLOSED = [
    ('exec "$@" <&-', ["embed", "-"], "error: standard input is closed, and - reads from it.\n"),
    ('exec "$@" <&-', ["embed", "a"], ""),
    ('exec "$@" >&-', ["embed", "a"], "error: standard output is closed, so there is no place for the answers.\n"),
    ('exec "$@" >&-', ["models"], "error: standard output is closed, so there is no place for the answers.\n"),
]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shell")
@pytest.mark.parametrize("shell, words, said", CLOSED)
def test_closed_streams_are_one_sentence(start, shell, words, said):
    process = start(*words, shell=shell, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr.read().decode() == said
    assert process.wait(timeout=300) == (1 if said else 0)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shell")
def test_an_error_does_not_go_among_the_answers(start):
    process = start("info", "--model", "missing", shell='exec "$@" 2>&-', stdout=subprocess.PIPE)
    assert process.stdout.read() == b"" and process.wait(timeout=300) == 1


def test_control_characters_of_a_name_do_not_reach_the_terminal(run, tmp_path):
    ran = run("check", str(tmp_path / "no\x1b[31m\n\x9bfile.csv"))
    assert ran.status == 1 and r"no\x1b[31m\n\x9bfile.csv does not exist" in ran.err and ran.err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_control_characters_of_data_do_not_reach_the_terminal(run, tmp_path, monkeypatch):
    path = tmp_path / "a\x1bb.csv"
    path.write_text("text,la\x07bel\n" + "".join(f"text {n},{'xy'[n % 2]}\n" for n in range(20)))
    monkeypatch.setattr("bertsmith.cli.check.wants_json", lambda asked: asked)
    ran = run("check", str(path), "--label", "2", model="")
    assert ran.status == 0 and r"a\x1bb.csv" in ran.out and r"la\x07bel" in ran.out
    assert not set(ran.out) & {"\x1b", "\x07"}


def test_an_input_that_cannot_be_read_is_one_sentence(start, tmp_path):
    with open(tmp_path / "written", "wb") as file:
        process = start("follows", "-", stdin=file, stderr=subprocess.PIPE)
    assert process.stderr.read() == b"error: cannot read standard input: Bad file descriptor.\n"
    assert process.wait(timeout=300) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shell")
def test_a_file_of_vectors_needs_no_standard_output(start, tmp_path):
    process = start("embed", "a", "--out", str(tmp_path / "a.npy"), shell='exec "$@" >&-', stderr=subprocess.PIPE)
    assert process.stderr.read().startswith(b"wrote 1 vector ")
    assert process.wait(timeout=300) == 0


@pytest.mark.parametrize(
    "words, there",
    [
        (["embed", "Grüße", "--prompt", "für: "], {"input": "Grüße", "vector": [10.0, 1.0, 0.5, 1.0]}),
        (["tokenize", "ä", "--pair", "ö"], {"input": "ä", "pair": "ö", "pieces": ["[CLS]", "ä", "ö"]}),
        (["fill", "[MASK]", "--targets", "ü", "--top-k", "1"], {"input": "[MASK]"}),
        (["follows", "ä", "ö"], {"input": "ä", "pair": "ö"}),
        (["info", "--model", "Füße"], {"source": "F\udcc3\udcbc\udcc3\udc9fe"}),
        (["info", "--model", b"\xff"], {"source": "\udcff"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_locale_changes_nothing(start, words, there):
    if sys.platform == "win32" and isinstance(words[-1], bytes):
        pytest.skip("arguments are text there")
    plain = os.environ | {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    process = start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=plain)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    record = json.loads(out)
    assert {key: record[key] for key in there} == there


def test_a_reader_that_leaves_is_no_error(start):
    process = start("tokenize", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.stdin.write(b"x\n" * 100)
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=300) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a Linux device")
def test_a_full_disk_is_one_sentence(start):
    with open("/dev/full", "wb") as full:
        process = start("tokenize", "a", stdout=full, stderr=subprocess.PIPE)
        assert process.stderr.read() == b"error: cannot write to standard output: No space left on device.\n"
        assert process.wait(timeout=300) == 1


def test_ctrl_c_ends_without_a_traceback(start):
    process = start("tokenize", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"x\n" * 4096)
    process.stdin.flush()
    process.stdout.readline()  # by now the verb is at work
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    assert process.stderr.read() == b""
    assert process.wait(timeout=300) == 130


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
def test_a_real_terminal_gets_a_table(start):
    import pty

    ours, theirs = pty.openpty()
    process = start("tokenize", "one two", stdout=theirs, env=os.environ | {"COLUMNS": "80", "TERM": "dumb"})
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    assert process.wait(timeout=300) == 0
    assert "│".encode() in seen and b"one" in seen and b"{" not in seen
