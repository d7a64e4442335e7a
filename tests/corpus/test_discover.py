import os
from pathlib import Path

import pytest

from hybrid_ir.corpus.discover import discover
from hybrid_ir.corpus.formats import read
from hybrid_ir.corpus.source import file_id
from hybrid_ir.errors import BadInput
from hybrid_ir.records import Document
from hybrid_ir.settings import ReaderSettings


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("c/b.txt", "c/a.xml", "c/deep/er/z.jsonl", "c/.hidden", "c/.git/config", "c/deep/x[1].txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*paths: str) -> list[str]:
    return [file.path for file in discover(paths)]


def test_folder_is_recursive_sorted_and_without_hidden_files(corpus: Path) -> None:
    assert names("c") == ["c/a.xml", "c/b.txt", "c/deep/er/z.jsonl", "c/deep/x[1].txt"]


def test_paths_stay_as_named_and_each_file_comes_once(corpus: Path) -> None:
    assert names("c/b.txt", "c", "./c/a.xml") == names("c")
    absolute = str(corpus / "c" / "b.txt")
    assert names(absolute) == [absolute]
    assert len(names("c", absolute)) == 4


def test_globs(corpus: Path) -> None:
    assert names("c/*.txt") == ["c/b.txt"]
    assert names("c/**/*.txt") == ["c/b.txt", "c/deep/x[1].txt"]
    assert names("c/d*") == ["c/deep/er/z.jsonl", "c/deep/x[1].txt"]


def test_a_name_with_glob_signs_that_exists_is_that_file(corpus: Path) -> None:
    assert names("c/deep/x[1].txt") == ["c/deep/x[1].txt"]


@pytest.mark.parametrize("path", ["nowhere", "c/*.pdf", "empty"])
def test_nothing_found_names_the_path(corpus: Path, path: str) -> None:
    with pytest.raises(BadInput, match=path.replace("*", r"\*")):
        discover(["c", path])


def test_no_paths_at_all() -> None:
    with pytest.raises(BadInput, match="No corpus path"):
        discover([])


def test_a_link_that_leads_back_up_ends(corpus: Path) -> None:
    (corpus / "c" / "deep" / "loop").symlink_to(corpus / "c", target_is_directory=True)
    assert len(names("c")) == 4


def test_pipes_are_skipped_and_dangling_links_are_kept_for_the_reader(corpus: Path) -> None:
    os.mkfifo(corpus / "c" / "pipe")
    (corpus / "c" / "gone").symlink_to(corpus / "nowhere.txt")
    assert "c/pipe" not in names("c")
    assert "c/gone" in names("c")


def test_sizes_are_bytes(corpus: Path) -> None:
    assert discover(["c/b.txt"])[0].size == len("c/b.txt")


def test_uris_go_through_pyarrow(corpus: Path) -> None:
    root = (corpus / "c").as_uri()
    found = names(root)
    assert [path.removeprefix(root) for path in found] == ["/a.xml", "/b.txt", "/deep/er/z.jsonl", "/deep/x%5B1%5D.txt"]
    assert names(root + "/*.txt")[0] == root + "/b.txt"
    (document,) = read(discover([root + "/b.txt"])[0], ReaderSettings())
    assert isinstance(document, Document)
    assert (document.id, document.text, document.source) == ("c/b", "c/b.txt", root + "/b.txt")
    with pytest.raises(BadInput, match="nowhere"):
        discover([root + "/nowhere"])


def test_file_ids_do_not_depend_on_the_working_directory(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_id("c/b.txt") == file_id(str(corpus / "c" / "b.txt")) == file_id("s3://bucket/up/c/b.txt") == "c/b"
    monkeypatch.chdir(corpus / "c")
    assert file_id("b.txt") == file_id("./b.txt.gz") == file_id("deep/../b.txt") == "c/b"
