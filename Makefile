PYTHON ?= python3
READY := .venv/.ready
BIN := .venv/bin
DEMO := .cache/demo

.DEFAULT_GOAL := help
.PHONY: help setup test test-thorough coverage lint types demo bench bench-comparison bench-search eval fuzz mutants test-containers environments docs pages clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Everything for development, in .venv (PYTHON=python3.12 to choose one, from 3.11 on)
	@scripts/mongod-libraries
	@scripts/pgbouncer
	@scripts/postgresql
	@scripts/strace

$(READY): pyproject.toml constraints.txt scripts/virtual-environment
	@scripts/virtual-environment $(PYTHON) .venv --editable '.[all]' --group dev
	@touch $@

# Two more than there are cores, because many tests wait for time-outs, but not more than there is memory for their servers.
# Each process has servers of its own; where you named yours, one process has them to itself.
PROCESSES ?= $(if $(FIREFLY_TEST_POSTGRES_URL)$(FIREFLY_TEST_MONGODB_URL),0,$(shell expr $$(nproc) + 2))

# Modules are compiled once, and not by every process that a test starts, also where a machine says otherwise.
export PYTHONDONTWRITEBYTECODE =

SUITE = $(BIN)/pytest --numprocesses $(PROCESSES) --maxprocesses 4 --dist worksteal

test: setup ## The suite on every backend (PROCESSES=0 for one process; ONLY="unit cli" for some folders)
	@$(SUITE) -m "not thorough" $(ONLY:%=tests/%)

test-thorough: setup ## The rest of it: lost servers, system calls, PgBouncer, random histories, pages of the docs
	@$(SUITE) -m thorough $(ONLY:%=tests/%)

coverage: setup ## Both with branch coverage, which takes twice as long
	@$(SUITE) --cov

lint: $(READY) ## Style, formatting and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

types: $(READY) ## Types and docstrings as a user's editor sees them: tests/typing under mypy --strict and Pyright
	@scripts/types

demo: $(DEMO)/.ready ## An agent's process is killed in the middle of an answer; another process goes on
	@rm -f $(DEMO)/memory.db*
	@$(DEMO)/venv/bin/python examples/demo.py $(DEMO)/memory.db

$(DEMO)/.ready: pyproject.toml constraints.txt scripts/virtual-environment
	@scripts/virtual-environment $(PYTHON) $(DEMO)/venv --editable '.[agents,cli,postgres]'
	@touch $@

bench: setup ## Our stores against the bare drivers
	@$(BIN)/python -m benchmarks

bench-comparison: setup ## Stores of other libraries, in an environment of their own, and the tables in docs/comparison.md
	@$(BIN)/python -m benchmarks.comparison

bench-search: setup ## How long a question takes over 700 to a million chunks (ONLY=sqlite for one store)
	@$(BIN)/python -m benchmarks.search $(ONLY:%=--only %)

eval: setup ## How much of what was said a search finds: recall and MRR of each mode
	@$(BIN)/python -m evaluation

fuzz: setup ## Fuzzing targets for MINUTES=15 each (TARGETS="archives codec urls rows")
	@$(BIN)/python -m tests.fuzzing --minutes $(or $(MINUTES),15) $(TARGETS)

mutants: setup ## Do the tests bite? Changes the library in SAMPLE=200 places (MEASURE=--measure the first time; SEED=)
	@$(BIN)/python -m mutants $(MEASURE) --sample $(or $(SAMPLE),200) $(if $(SEED),--seed $(SEED))

test-containers: $(READY) ## The conformance suite with PostgreSQL and MongoDB in containers
	@scripts/with-docker scripts/test-containers

environments: setup ## The library in environments of its own, for every night (ENVIRONMENTS="core oldest" for some)
	@$(BIN)/python -m environments $(ENVIRONMENTS)

docs: $(READY) ## The documentation as a site, in .cache/site
	@$(BIN)/python -m website

pages: $(READY) ## The parts of pages that are written from the facets and their pages in docs/data
	@$(BIN)/python -m website.data_pages

clean: ## Remove all that was made here
	@rm -rf .venv .cache .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
