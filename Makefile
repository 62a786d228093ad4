# Every target sets up what it needs, on a fresh machine too; `make help` lists them.

PYTHON ?= python3
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install -qq --no-input

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow lint format bench clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(INSTALLED) ## Make .venv, with fewbit and its development tools in it

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "fewbit needs Python 3.11 or later; try: make PYTHON=python3.11" >&2; exit 1; }
	@echo "Installing into $(VENV): about 3.3 GB with the CPU build of PyTorch, a few minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) --upgrade pip
	@$(PIP) --editable '.[dev]'
	@touch $@

demo: setup ## Run LeNet from text; train it, quantize it, and compare
	@$(BIN)/fewbit demo

test: setup ## Run the tests, but for the slow ones
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) -m 'not slow'

test-slow: setup ## Run the slow tests
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) -m slow

lint: setup ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

format: setup ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup ## Measure kernels and models beside other tools, and print the tables
	@$(PIP) --editable '.[bench]'
	@CMAKE_ARGS=-DGGML_NATIVE=ON $(PIP) --no-binary llama-cpp-python --editable '.[llama]' \
	  || echo "llama.cpp is not measured: building it needs a C++ compiler" >&2
	@$(BIN)/python benchmarks/sizes.py
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/few_bit_kernels.py --ort
	@$(BIN)/python benchmarks/linear_layer.py --threads 1,2
	@$(BIN)/python benchmarks/models.py --threads 1,2
	@$(BIN)/python benchmarks/llama.py --threads 1,2

clean: ## Remove everything that was made here
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
