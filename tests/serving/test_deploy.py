"""What can be known of the image and the unit without building the one or starting the other."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bertsmith.cli.app import app
from bertsmith.serving.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
WORDS = {"FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN", "LABEL", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
         "ENTRYPOINT", "CMD"}  # fmt: skip


@pytest.fixture(scope="module")
def flags():
    page = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    return set(re.findall(r"^\s+(--[a-z-]+)", page, re.MULTILINE))


@pytest.fixture(scope="module")
def steps():
    """The stages of the Dockerfile: (instruction, its words)."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    pairs = [tuple(line.split(None, 1)) for line in joined if line.strip()]
    starts = [place for place, (word, _) in enumerate(pairs) if word == "FROM"]
    return [pairs[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def test_every_line_of_the_dockerfile_is_an_instruction(steps):
    assert len(steps) == 2 and {word for stage in steps for word, _ in stage} <= WORDS
    for stage in steps:
        for word, rest in stage:
            if rest.startswith("["):
                assert all(isinstance(part, str) for part in json.loads(rest)), word
            elif word == "RUN":
                checked = subprocess.run(["sh", "-n", "-c", rest], capture_output=True, text=True)
                assert checked.returncode == 0, checked.stderr
            elif word == "HEALTHCHECK":
                assert all(re.fullmatch(r"--[a-z-]+=\d+s?", part) for part in rest.partition(" CMD ")[0].split())


def test_what_is_copied_is_there_and_not_ignored(steps):
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    kept = {rule[1:] for rule in rules if rule.startswith("!")}
    assert rules[0] == "*" and all((ROOT / name).exists() for name in kept)
    stage_name, copied = steps[0][0][1].split()[-1], []
    for stage in steps:
        for word, rest in stage:
            if word == "COPY" and rest.startswith("--from="):
                assert rest.split()[0] == f"--from={stage_name}"
            elif word == "COPY":
                copied += rest.split()[:-1]
    assert set(copied) == kept


def test_the_wheel_has_what_the_image_copies(steps):
    """pyproject.toml names files that the build reads: they must be in the context."""
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    copied = " ".join(rest for word, rest in steps[0] if word == "COPY")
    assert all(name in copied for name in re.findall(r'"(README\.md|LICENSE)"', pyproject))
    assert re.search(r"^serve = \[", pyproject, re.MULTILINE)
    installs = [rest for word, rest in steps[0] if word == "RUN" and " install " in rest]
    assert installs and all("--constraint constraints.txt" in rest for rest in installs)


def test_the_image_runs_as_nobody_special(steps):
    users = [rest for word, rest in steps[-1] if word == "USER"]
    assert len(users) == 1 and users[0].isdecimal() and int(users[0]) > 0
    last = [word for word, _ in steps[-1]]
    assert last.index("USER") > max(place for place, word in enumerate(last) if word in ("RUN", "COPY"))


def test_the_image_s_command_is_one_of_ours(steps, flags):
    found = dict(steps[-1])
    command = [*json.loads(found["ENTRYPOINT"]), *json.loads(found["CMD"])]
    assert command[:2] == ["bertsmith", "serve"]
    assert {word for word in command if word.startswith("--")} <= flags
    port = command[command.index("--port") + 1]
    assert port == found["EXPOSE"] == str(Settings().port) and f"127.0.0.1:{port}/health" in found["HEALTHCHECK"]
    probe = json.loads(found["HEALTHCHECK"].partition(" CMD ")[2])
    compile(probe[2], "probe", "exec")


def read_unit():
    text = (DEPLOY / "bertsmith.service").read_text(encoding="utf-8")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] not in "#[")


def test_the_unit_s_command_is_one_of_ours(flags):
    unit = read_unit()
    words = shlex.split(unit["ExecStart"])
    assert words[1] == "serve" and fnmatch(words[0], "/*/bin/bertsmith")
    assert {word for word in words if word.startswith("--")} <= flags
    drain = float(words[words.index("--drain") + 1])
    assert float(unit["TimeoutStopSec"]) > drain + 7  # the notice and what the processes have beyond it
    assert unit["KillMode"] == "mixed" and unit["DynamicUser"] == "yes" and unit["ProtectSystem"] == "strict"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_understands_the_unit(tmp_path):
    text = (DEPLOY / "bertsmith.service").read_text(encoding="utf-8")
    path = tmp_path / "bertsmith.service"
    path.write_text(text.replace(shlex.split(read_unit()["ExecStart"])[0], sys.executable))
    ran = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True)
    if "Failed to" in ran.stderr and "bertsmith.service" not in ran.stderr:
        pytest.skip(f"systemd-analyze does not work here: {ran.stderr.splitlines()[0]}")
    assert ran.returncode == 0 and "bertsmith.service" not in ran.stderr, ran.stderr
