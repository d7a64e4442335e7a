"""The direction of imports: what computes knows nothing of what distributes."""

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
FILES = sorted((PROJECT / "hybrid_ir").rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_the_library_imports_neither_ray_nor_what_runs_on_it(path):
    if path == PROJECT / "hybrid_ir" / "cli.py":
        return  # the front door
    assert not {name.partition(".")[0] for name in imported(path)} & {"ray", "ray_jobs", "serve"}


@pytest.mark.parametrize("package", ["ray_jobs", "serve"])
def test_jobs_and_service_do_not_know_each_other(package):
    other = {"ray_jobs": "serve", "serve": "ray_jobs"}[package]
    for path in (PROJECT / package).rglob("*.py"):
        assert other not in {name.partition(".")[0] for name in imported(path)}, path
