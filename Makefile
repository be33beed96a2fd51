# The two commands of the README are `make demo` and `make test`; both set up everything they need.
PYTHON3 ?= python3
BIN := .venv/bin
BIN41 := .venv-spark41/bin

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@$(PYTHON3) -c "import re; \
	[print(f'  {n:14} {t}') for n, t in re.findall(r'(?m)^([a-z0-9-]+):[^\n]*## (.*)', open('Makefile').read())]"

.PHONY: setup
setup: ## Prepare .venv/, Java and jars (quick when nothing changed)
	@$(PYTHON3) setup/bootstrap.py

.PHONY: setup-spark41
setup-spark41: setup
	@$(PYTHON3) setup/bootstrap.py --profile spark41

# dbt cannot live beside Ebbtide's own packages: the tests call it in an environment of its own.
.PHONY: setup-dbt
setup-dbt: setup
	@$(PYTHON3) setup/bootstrap.py --profile dbt

.PHONY: lock
lock: ## Lock the environments again (needs the network)
	@$(PYTHON3) setup/lock.py

.PHONY: demo
demo: setup ## Build a small real lake in all four formats and walk through it
	@$(BIN)/ebbtide demo demo-lake

# Fast tests first, then real tables: two workers, one session each; Hudi keeps one of them busy.
.PHONY: test
test: test-fast test-plan test-lake test-cluster ## Run the whole suite on the default profile (Spark 3.5)

FAST := tests/model tests/config tests/cli tests/state tests/ledger \
	$(addprefix tests/faults/test_,at_once.py begin.py boundaries.py disk_and_clock.py second_look.py two_sweepers.py)

.PHONY: test-fast
test-fast: setup
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal $(FAST)

# The tests of plans and of checks have a plain session of their own, which no other test may meet in its process.
PLAIN := tests/plan tests/governance/sql

.PHONY: test-plan
test-plan: setup
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile $(PLAIN)

.PHONY: test-lake
test-lake: setup setup-dbt
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup --durations=15 $(addprefix --ignore=,$(FAST) $(PLAIN))

.PHONY: test-cluster
test-cluster: setup
	@$(BIN)/python -m pytest -q -m cluster --cluster

HISTORIES ?= 10000
SEED ?= $(shell date +%Y%m%d)

.PHONY: nightly
nightly: setup ## Sweep 10,000 random histories (HISTORIES=600 for fewer, SEED=…) and write benchmarks/PROPERTY.md
	@EBBTIDE_HISTORIES=$(HISTORIES) EBBTIDE_SEED=$(SEED) EBBTIDE_RECORD=benchmarks/PROPERTY.md \
	$(BIN)/python -m pytest -q -s -W ignore tests/property

.PHONY: test-spark41
test-spark41: setup-spark41 ## Run the marked subset on Spark 4.1 (Iceberg and Delta)
	@$(BIN41)/python -m pytest -q -m spark41

.PHONY: test-interop
test-interop: setup ## Check the ledger against Go's libraries (fails where Go is missing)
	@$(BIN)/python -m pytest -q tests/interop

.PHONY: lint
lint: setup ## Format, style, types and the table of rooms
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: docs
docs: setup ## Write the pages that are made from tables (docs/hazards.md)
	@$(BIN)/python -m tests.hazards.generate

.PHONY: format
format: setup ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: bench
bench: setup ## Run the benchmarks (ONLY=scan for one) and write benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks.run $(ONLY)

.PHONY: test-bare
test-bare: ## By hand: a clean clone with an empty HOME and only python3, make and coreutils on the PATH
	@setup/test-bare
