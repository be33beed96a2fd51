# The two commands of the README are `make demo` and `make test`; both set up everything they need.
PYTHON3 ?= python3
BIN := .venv/bin
BIN41 := .venv-spark41/bin

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Prepare .venv/, Java and jars (quick when nothing changed)
	@$(PYTHON3) setup/bootstrap.py

.PHONY: setup-spark41
setup-spark41: setup
	@$(PYTHON3) setup/bootstrap.py --profile spark41

.PHONY: lock
lock: setup ## Lock the two environments again (needs the network)
	@$(PYTHON3) setup/lock.py
