# The verbs of the repository. `make demo` and `make test` need Python 3.11 and nothing else.
PYTHON ?= python3.11
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKLOADS := $(BIN)/python -m workloads
# Never call these names: they are verbs, not files.
.PHONY: help install demo test lint format golden pictures check clean
.PHONY: cluster cluster-prepare cluster-env cluster-down test-cluster test-full

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.venv/installed: requirements.txt infra/requirements.txt training/requirements/training.txt
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not on PATH; fix: install Python 3.11, or make PYTHON=/path/to/it"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing requirements.txt into .venv (torch is the big one: some 5 GB)"
	$(PIP) install --progress-bar on -r requirements.txt
	@touch $@

.venv/installed-dev: .venv/installed requirements-dev.txt
	$(PIP) install --quiet -r requirements-dev.txt
	@touch $@

# Libraries that do not go together with those of the core: one environment for each image that has some.
.venvs/%/installed: training/requirements/%.txt
	@test -x .venvs/$*/bin/python || $(PYTHON) -m venv .venvs/$*
	@echo "installing $< into .venvs/$*"
	.venvs/$*/bin/python -m pip --disable-pip-version-check install --progress-bar on -r $<
	@touch $@

install: .venv/installed ## make .venv and install what the demo needs

demo: .venv/installed ## train on this machine, resume, draw the loss, check and plan every stack
	@$(BIN)/python -m workloads.demo

test: .venv/installed-dev ## the whole suite: no root, no cluster
	@$(BIN)/python -m pytest

cluster: .venv/installed-dev ## a real one-node Kubernetes on this machine (Debian, root, Go; no container engine)
	@$(BIN)/python -m tests.cluster up

cluster-env: ## print the shell's settings for it: eval "$$(make -s cluster-env)"
	@$(PYTHON) -m tests.cluster env

cluster-down: ## remove it without a trace, but for the cache of what was built
	@$(PYTHON) -m tests.cluster down

cluster-prepare: ## build its tools and images ahead of time; needs no .venv
	@$(PYTHON) -m tests.cluster prepare

test-cluster: cluster ## the tests that need it: the real Pulumi CLI, operators and jobs
	@eval "$$($(PYTHON) -m tests.cluster env)" && $(BIN)/python -m pytest -n 0 -m "(cluster or toolchain) and not slow"

test-full: test cluster ## every test there is
	@eval "$$($(PYTHON) -m tests.cluster env)" && $(BIN)/python -m pytest -n 0 -m "cluster or toolchain or slow"

lint: .venv/installed-dev ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: .venv/installed-dev ## ruff, rewriting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

check: .venv/installed ## every stack, offline
	@$(WORKLOADS) check

golden: .venv/installed-dev ## rewrite tests/golden/ and the generated parts of docs/
	@$(BIN)/python -m workloads.reference
	@TRAINYARD_GOLDEN=rewrite $(BIN)/python -m pytest -q tests/workloads/test_golden.py

pictures: .venv/installed ## redraw the README's pictures by running what they show
	@$(BIN)/python docs/pictures.py

clean: ## remove what running left: runs/ and caches
	rm -rf runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
