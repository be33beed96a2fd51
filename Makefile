# The two commands of the README are `make demo` and `make test`; both set up everything they need.
PYTHON3 ?= python3
BIN := .venv/bin
BIN41 := .venv-spark41/bin

# Images often forbid Python to keep what it compiled. Every worker and every process of a test would then compile all of
# our modules and tests again, half of what it takes to collect them.
unexport PYTHONDONTWRITEBYTECODE

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

# Three tiers, by the marks `jvm` and `deep` (tests/conftest.py says which tests have them).
PYTEST := $(BIN)/python -m pytest -q
TIMED = --timed-as $@
# The order is tests/conftest.py's: the longest first.
TWO := -n 2 --dist loadgroup --no-loadscope-reorder

.PHONY: check
check: lint test-fast ## Lint, types and every test that needs no JVM: before a commit

.PHONY: test
test: test-fast test-plan test-lake ## Run the suite on the default profile (Spark 3.5), once per format

.PHONY: test-deep
test-deep: test-variants test-cluster test-spark41 test-postgres14 test-interop test-browser ## Run all variants, every kill, 300 histories, a cluster, Spark 4.1, PostgreSQL 14, Go, a browser

.PHONY: test-fast
test-fast: setup setup-dbt
	@$(PYTEST) $(TIMED) $(TWO) -m "not jvm and not deep and not browser and not schedulers"

# The tests of plans and of checks have a plain session of their own, which no other test may meet in its process.
PLAIN := tests/plan tests/governance/sql

.PHONY: test-plan
test-plan: setup
	@$(PYTEST) $(TIMED) $(TWO) -m "jvm and not deep" $(PLAIN)

# Two workers, one session each; Hudi keeps one of them busy.
.PHONY: test-lake
test-lake: setup
	@$(PYTEST) $(TIMED) $(TWO) -m "jvm and not deep" $(addprefix --ignore=,$(PLAIN))

.PHONY: test-variants
test-variants: setup
	@$(PYTEST) $(TIMED) $(TWO) -m deep

.PHONY: test-cluster
test-cluster: setup
	@$(PYTEST) $(TIMED) -m cluster --cluster

HISTORIES ?= 10000
KILLS ?= 200
SEED ?= $(shell date +%Y%m%d)

.PHONY: nightly
nightly: setup ## Sweep 10,000 random histories (HISTORIES=600 for fewer, SEED=…), benchmarks/PROPERTY.md, and 200 kills (KILLS=…)
	@EBBTIDE_HISTORIES=$(HISTORIES) EBBTIDE_SEED=$(SEED) EBBTIDE_RECORD=benchmarks/PROPERTY.md \
	PYTEST_DEBUG_TEMPROOT=$(or $(TMPDIR),/tmp) $(PYTEST) -s -W ignore tests/property
	@EBBTIDE_KILLS=$(KILLS) EBBTIDE_SEED=$(SEED) $(PYTEST) -W ignore tests/hottier/test_random_kills.py

.PHONY: test-spark41
test-spark41: setup-spark41 ## Run the marked subset on Spark 4.1 (Iceberg and Delta)
	@$(BIN41)/python -m pytest -q $(TIMED) -m spark41

# A replica takes pg_basebackup, which these binaries lack.
.PHONY: test-postgres14
test-postgres14: setup ## Run the hot tier's tests on PostgreSQL 14
	@EBBTIDE_POSTGRES=14 $(PYTEST) $(TWO) -m "not jvm" --ignore tests/hottier/test_servers.py tests/hottier

.PHONY: test-interop
test-interop: setup ## Check the ledger against Go's libraries (fails where Go is missing)
	@$(PYTEST) $(TIMED) tests/interop

.PHONY: setup-browser
setup-browser: setup
	@$(PYTHON3) setup/browser.py

.PHONY: test-browser
test-browser: setup-browser ## Look at pages in a real browser
	@$(PYTEST) $(TIMED) -m browser tests/browser

.PHONY: setup-airflow setup-dagster
setup-airflow setup-dagster: setup-%: setup
	@$(PYTHON3) setup/bootstrap.py --profile $*

.PHONY: test-schedulers
test-schedulers: setup-airflow setup-dagster ## Run the examples for Airflow and Dagster in theirs; at night, not in CI
	@$(PYTEST) -m schedulers tests/operations

RUNS := test-fast test-plan test-lake test-variants test-cluster test-spark41 test-interop test-browser

.PHONY: budgets
budgets: ## Compare what the last `make test` and `make test-deep` took with tests/budgets.toml
	@$(BIN)/python -m tests.budgets $(RUNS)

.PHONY: lint
lint: setup ## Format, style, types and the table of rooms
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: docs
docs: setup ## Write the pages that are made from tables and code (hazards, erasure-cells, configuration, project-files, commands)
	@$(BIN)/python -m tests.hazards.generate
	@$(BIN)/python -m tests.erasure.generate
	@$(BIN)/python -m tests.config.generate
	@$(BIN)/python -m tests.cli.generate

.PHONY: format
format: setup ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: bench
bench: setup ## Run the benchmarks (ONLY=scan for one) and write benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks.run $(ONLY)

.PHONY: bench-smoke
bench-smoke: setup ## Run benchmarks on small lakes; fails where a ratio is below half of its bar
	@$(BIN)/python -m benchmarks.run --smoke $(ONLY)

.PHONY: test-bare
test-bare: ## By hand: a clean clone with an empty HOME and only python3, make and coreutils on the PATH
	@setup/test-bare
