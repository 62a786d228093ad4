# Every target sets up what it needs, on a fresh machine too; `make help` lists them.

PYTHON ?= python3
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install -qq --no-input
LOCK := requirements/ci.lock
TORCH := $(shell grep -o 'torch==[0-9.]*' pyproject.toml)
UV := uv==0.13.7

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow lint format architecture runtime docs coverage bench fuzz lock release-check clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(INSTALLED) ## Make .venv, with fewbit and its development tools in it

# With CI=true, which GitHub and .ci/run set, packages are those of the lock file, checked by hash.
# torch is not in it: which build pip takes, and so its hash, depends on the machine. It comes by its
# pin, after the rest, so that only what its build needs besides (CUDA's libraries) is chosen freely.
$(INSTALLED): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "fewbit needs Python 3.11 or later; try: make PYTHON=python3.11" >&2; exit 1; }
	@echo "Installing into $(VENV): about 3.3 GB with the CPU build of PyTorch, a few minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) --upgrade pip
ifeq ($(CI),true)
	@$(PIP) --no-deps --require-hashes --only-binary :all: --requirement $(LOCK)
	@$(PIP) $(TORCH)
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip check
else
	@$(PIP) --editable '.[dev]'
endif
	@touch $@

demo: setup ## Run LeNet from text; train it, quantize it, and compare
	@$(BIN)/fewbit demo

test: setup ## Run the tests, but for the slow ones
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not slow'

test-slow: setup ## Run the slow tests
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal -m slow

lint: setup ## Check style, types, and which package imports which
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo --no-cache

format: setup ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

architecture: setup ## Draw packages and imports into docs/architecture.md, and write the tables of targets
	@$(BIN)/python tools/architecture.py
	@$(BIN)/python tools/targets.py

runtime: setup ## Compile the runtime that libraries carry, from C to LLVM IR
	@$(BIN)/python tools/runtime.py

docs: setup ## Check the documentation: its links, its commands and its programs
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) tests/test_docs.py tests/test_readme.py tests/test_examples.py

coverage: setup ## Try models of timm, torchvision, transformers and of wheels, and write docs/coverage.md
	@$(BIN)/python tools/coverage.py --resume

bench: setup ## Measure kernels and models beside other tools, and print the tables
	@$(PIP) --editable '.[bench]'
	@CMAKE_ARGS=-DGGML_NATIVE=ON $(PIP) --no-binary llama-cpp-python --editable '.[llama]' \
	  || echo "llama.cpp is not measured: building it needs a C++ compiler" >&2
	@$(BIN)/python benchmarks/sizes.py
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/few_bit_kernels.py --ort
	@$(BIN)/python benchmarks/linear_layer.py --threads 1,2
	@$(BIN)/python benchmarks/models.py --threads 1,2
	@$(BIN)/python benchmarks/llama.py --threads 1,2

fuzz: setup ## Compile a thousand random graphs, compare, and reduce what fails; SEED=N begins there
	@OMP_NUM_THREADS=1 $(BIN)/python tools/fuzz.py --count $(or $(COUNT),1000) $(if $(SEED),--seed $(SEED))

lock: setup ## Write the lock file anew, with the newest versions that pyproject.toml allows
	@$(PIP) $(UV)
	@$(BIN)/uv pip compile -q pyproject.toml --extra dev --upgrade --universal --python-version 3.11 \
	  --config-file requirements/uv.toml --generate-hashes --only-binary :all: --no-emit-package torch \
	  --no-emit-index-url --custom-compile-command 'make lock' --output-file $(LOCK) >/dev/null

release-check: setup ## Build the wheel, install it in an empty environment, and run the demo from it
	@.ci/release-check

clean: ## Remove everything that was made here
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
