"""The wheel builds, holds what it should, and runs where the heavy extras are missing."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(PROJECT)]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return next(folder.glob("*.whl"))


def test_it_holds_the_packages_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"hybrid_ir", "ray_jobs", "serve"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for package in ("hybrid_ir", "ray_jobs", "serve"):
        for pattern in ("*.py", "prompts/*.*"):
            sources = {p.relative_to(PROJECT).as_posix() for p in (PROJECT / package).rglob(pattern)}
            assert sources <= set(names)


def test_a_missing_extra_is_named(wheel, tmp_path):
    """Only the core packages can be imported: the command line says what to install."""
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        "for name in ('torch', 'ray', 'spacy', 'faiss', 'transformers'): sys.modules[name] = None\n"
        "from hybrid_ir.cli import main; main()"
    )

    def run(*arguments):
        command = [sys.executable, "-I", "-c", program, str(wheel), *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)

    assert run("--help").returncode == 0
    notes = tmp_path / "n.md"
    notes.write_text("# A\n\nBats carry rabies.")
    result = run("index", "--corpus", str(notes), "--root", "r")
    assert result.returncode == 2
    assert "pip install 'hybrid-ir[" in result.stderr
