PYTHON ?= python3
READY := .venv/.ready
BIN := .venv/bin
DEMO := .cache/demo/memory.db

.DEFAULT_GOAL := help
.PHONY: help setup test coverage lint demo bench fuzz mutants test-containers environments clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Everything for development, in .venv (PYTHON=python3.12 to choose one, from 3.11 on)
	@scripts/mongod-libraries
	@scripts/pgbouncer
	@scripts/strace

$(READY): pyproject.toml constraints.txt scripts/virtual-environment
	@scripts/virtual-environment $(PYTHON)
	@touch $@

# Two more than there are cores, because many tests wait for time-outs, but not more than there is memory for their servers.
# Each process has servers of its own; where you named yours, one process has them to itself.
PROCESSES ?= $(if $(FIREFLY_TEST_POSTGRES_URL)$(FIREFLY_TEST_MONGODB_URL),0,$(shell expr $$(nproc) + 2))

SUITE = $(BIN)/pytest --numprocesses $(PROCESSES) --maxprocesses 4 --dist worksteal

test: setup ## The whole suite on every backend (PROCESSES=0 for one process; ONLY="unit cli" for some folders)
	@$(SUITE) $(ONLY:%=tests/%)

coverage: setup ## The same with branch coverage, which takes twice as long
	@$(SUITE) --cov

lint: $(READY) ## Style, formatting and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

# The demo may count tokens, or estimate them where there is no vocabulary.
demo: export PYTHONWARNINGS = ignore:tokens are estimated
demo: $(READY) ## An agent that remembers: two processes, one SQLite file
	@rm -rf $(dir $(DEMO))
	@$(BIN)/python examples/first_session.py $(DEMO)
	@sleep 1
	@$(BIN)/python examples/next_session.py $(DEMO)
	@$(BIN)/python examples/show.py $(DEMO)

bench: setup ## Our stores against the bare drivers
	@$(BIN)/python -m benchmarks

fuzz: setup ## Fuzzing targets for MINUTES=15 each (TARGETS="archives codec urls rows")
	@$(BIN)/python -m tests.fuzzing --minutes $(or $(MINUTES),15) $(TARGETS)

mutants: setup ## Do the tests bite? Changes the library in SAMPLE=200 places (MEASURE=--measure the first time; SEED=)
	@$(BIN)/python -m mutants $(MEASURE) --sample $(or $(SAMPLE),200) $(if $(SEED),--seed $(SEED))

test-containers: $(READY) ## The conformance suite with PostgreSQL and MongoDB in containers
	@scripts/with-docker scripts/test-containers

environments: setup ## The library in environments of its own, for every night (ENVIRONMENTS="core oldest" for some)
	@$(BIN)/python -m environments $(ENVIRONMENTS)

clean: ## Remove all that was made here
	@rm -rf .venv .cache .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
