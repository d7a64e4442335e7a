# make demo   build an index of the sample corpus, serve it, ask it a question
# make test   lint, types, and the whole test suite
# Both make their environment in .venv first: Python 3.11 or newer, make, and a package index are all they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export HF_HUB_OFFLINE ?= 1
export RAY_USAGE_STATS_ENABLED ?= 0

.PHONY: demo test check fast clean

demo: $(READY)
	$(BIN)/python examples/demo.py

test: check
	$(BIN)/python -m pytest -q --durations=10

# Without what starts a cluster or takes long.
fast: $(READY)
	$(BIN)/python -m pytest -q -m "not slow and not cluster"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local,ray,cpu,gfm,s3,dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) .hybrid-ir build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
