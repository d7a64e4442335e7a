"""Questions by the name of a dataset on a hub, and what is said where it cannot be had; MIRAGE's benchmark.json."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hybrid_ir.errors import BadInput
from hybrid_ir.evaluation.run.grid import short
from hybrid_ir.evaluation.sets import question_sets

NAME, COMMIT = "tiny/questions", "c" * 40
ROW = {"question": "Which?", "options": {"A": "x", "B": "y"}, "answer": "B", "PMID": [7]}
BENCHMARK = json.dumps({"medqa": {"0001": ROW, "0002": {**ROW, "answer": "C"}}, "mmlu": {"1": ROW}}).encode()


class Hub(BaseHTTPRequestHandler):
    """The few answers that a download of one file needs."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0]
        there = path.startswith(f"/datasets/{NAME}/resolve/")
        body = BENCHMARK if there and path.endswith("/benchmark.json") else b""
        self.send_response(200 if body else 404)
        headers = {"Content-Length": str(len(body)), "ETag": '"e1"', "X-Repo-Commit": COMMIT}
        if not body:
            headers["X-Error-Code"] = "EntryNotFound" if there else "RepoNotFound"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def load(endpoint, home, name):
    """In a process of its own: the hub's library reads its environment when it is imported."""
    code = (
        "import sys; from pathlib import Path; from hybrid_ir.evaluation.sets import question_sets\n"
        "from hybrid_ir.errors import HybridIRError\n"
        "try:\n    found = question_sets.load(sys.argv[1], None, Path('.'), limit=None, strict=False)\n"
        "except HybridIRError as error:\n    sys.exit(f'{type(error).__name__}: {error}')\n"
        "print(found.summary(), found.questions[0].id, found.questions[0].gold)"
    )
    environment = {"HF_HOME": str(home), "PATH": "/usr/bin"}
    environment |= {"HF_ENDPOINT": endpoint} if endpoint else {"HF_HUB_OFFLINE": "1"}
    command, root = [sys.executable, "-c", code, name], Path(__file__).parents[2]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root, check=False)


@pytest.mark.slow
def test_a_file_of_a_hub_is_downloaded_once(hub, tmp_path):
    found = load(hub, tmp_path, f"hub:{NAME}/benchmark.json#medqa")
    assert found.stdout == "medqa: 1 questions, 1 lines could not be used. 0001 ('7',)\n", found.stderr
    assert load(None, tmp_path, f"hub:{NAME}/benchmark.json#medqa").stdout == found.stdout
    assert "has no file absent.json" in load(hub, tmp_path, f"hub:{NAME}/absent.json#medqa").stderr
    assert "the hub has no such dataset" in load(hub, tmp_path, "hub:tiny/none/x.jsonl").stderr
    offline = load(None, tmp_path / "empty", f"hub:{NAME}/benchmark.json#medqa").stderr
    assert "Unavailable: hub:tiny/questions/benchmark.json could not be downloaded" in offline
    assert "bring the file and name its path" in offline


def test_a_set_out_of_mirages_file(tmp_path):
    (tmp_path / "benchmark.json").write_bytes(BENCHMARK)

    def loaded(name, strict=False):
        return question_sets.load(name, None, tmp_path, limit=None, strict=strict)

    found = loaded("benchmark.json#medqa")
    assert [(one.id, one.answer, one.gold) for one in found.questions] == [("0001", "B", ("7",))]
    assert "question 0002: the answer 'C' is not among the options" in found.problems[0]
    assert (found.name, short("benchmark.json#medqa"), short("a/b.csv")) == ("medqa", "medqa", "b")
    with pytest.raises(BadInput, match="question 0002"):
        loaded("benchmark.json#medqa", strict=True)
    with pytest.raises(BadInput, match=r"no set 'benchmark'; it has medqa, mmlu: name one behind a #"):
        loaded("benchmark.json")
    for text, said in (("[1]", "MIRAGE's form"), ("{", "cannot be read as JSON"), ('{"medqa": {}}', "no question")):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(BadInput, match=said):
            loaded("bad.json#medqa")
    with pytest.raises(BadInput, match="hub:OWNER/NAME/PATH"):
        loaded("hub:x.jsonl")
