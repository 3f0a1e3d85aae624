"""The wheel that a user installs: what it holds, and that it works away from the checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built by the backend that is installed here: no network."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, ROOT], check=True
    )
    (file,) = folder.glob("bertsmith-*.whl")
    return file


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Runs a program of a fresh environment that holds the wheel and sees the libraries of this one."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home / "env", symlinks=os.name != "nt")
    places = sysconfig.get_paths("venv", {"base": str(home / "env"), "platbase": str(home / "env")})
    programs = Path(places["scripts"])
    subprocess.run([*PIP, "--python", programs / "python", "install", "--no-deps", "--no-index", wheel], check=True)
    # After the install, lest pip take an editable bertsmith in there for the one wanted. Python does not read the .pth
    # files of a folder that it finds by a .pth file: that editable one stays unseen.
    (Path(places["purelib"]) / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BERTSMITH"))}

    def run_program(name, *words):
        command = [programs / name, *words]
        return subprocess.run(command, cwd=home, env=clean, stdout=subprocess.PIPE, text=True, check=True).stdout

    return run_program


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "bertsmith/py.typed" in names and "bertsmith/cli/app.py" in names
    assert {name.split("/")[0] for name in names} == {"bertsmith", f"{'-'.join(wheel.stem.split('-')[:2])}.dist-info"}
    assert not [name for name in names if "test" in name or "__pycache__" in name]
    files = [path for path in (ROOT / "src/bertsmith").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {path.relative_to(ROOT / "src").as_posix() for path in files} <= set(names)  # report.css, too


def test_the_installed_package_is_the_one_imported(run):
    found = run("python", "-c", "import bertsmith, sys; print(bertsmith.__file__); print(sys.prefix)").split()
    assert Path(found[0]).is_relative_to(found[1]) and not Path(found[0]).is_relative_to(ROOT)


def test_the_installed_command_works(run, wheel):
    assert run("bertsmith", "--version") == f"bertsmith {wheel.name.split('-')[1]}\n"
    rows = [json.loads(line) for line in run("bertsmith", "models", "--json").splitlines()]
    assert "bert" in {row["family"] for row in rows}
