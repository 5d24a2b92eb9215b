PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := bench/.venv-peers/.installed bench/.venv-eve/.installed
NPM := tests/clients/node_modules/.installed

.DEFAULT_GOAL := help
.PHONY: help setup run test test-clients test-large test-resilience resilience-tools bench bench-growth bench-smoke bench-tools lint audit lock clean

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 17

setup: $(STAMP) ## make .venv from the lock file
	@:

$(STAMP): requirements.lock setup.cfg pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo "There is no $(PYTHON); set PYTHON to one: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; set PYTHON to one: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python's venv is missing: apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: setup ## serve the API on http://127.0.0.1:8000, with a demonstration fleet
	@exec $(BIN)/driver-analytics serve --demo

test: setup lint ## lint, types, import contract and the suite
	@$(BIN)/pytest -n auto -m "not large and not clients and not resilience"

test-clients: $(NPM) setup ## what client developers rely on: docs/clients.md, TypeScript, the page; needs npm, chromium
	@$(BIN)/pytest -n auto --dist loadfile -m clients

$(NPM): tests/clients/package.json tests/clients/package-lock.json
	@command -v npm >/dev/null || { echo "There is no npm: apt-get install nodejs npm"; exit 1; }
	@echo "Setting up $(@D) ..."
	@npm ci --prefix tests/clients --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null
	@touch $@

test-large: setup ## what takes minutes: Schemathesis, the import of 100,000 trips, 140,000 made-up requests
	@$(BIN)/pytest -m large

test-resilience: resilience-tools setup ## break the store, the service and the network under load, in 10 minutes
	@$(BIN)/pytest -m resilience $(ARGS)

resilience-tools: export PATH := $(PATH):/usr/sbin
resilience-tools:
	@command -v redis-server >/dev/null && command -v haproxy >/dev/null && command -v nginx >/dev/null && \
		command -v wrk >/dev/null || \
		{ echo "These tests need programs: apt-get install redis-server haproxy nginx wrk"; exit 1; }

bench: bench-tools setup $(PEERS) ## measure the service beside its floor and its peers, in 20 minutes; ARGS=--quick in 3
	@$(BIN)/python -m bench $(ARGS)

bench-growth: bench-tools setup ## measure what a request costs in ever larger fleets, in 20 minutes
	@$(BIN)/python -m bench.growth $(ARGS)

bench-smoke: bench-tools setup ## show that the benchmark works, in a minute
	@$(BIN)/python -m bench --smoke

bench-tools:
	@command -v wrk >/dev/null && command -v redis-server >/dev/null || \
		{ echo "The benchmark needs wrk and redis-server: apt-get install wrk redis-server"; exit 1; }

bench/.venv-%/.installed: bench/requirements-%.txt
	@echo "Setting up $(@D) ..."
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install -qq --disable-pip-version-check --no-deps -r $<
	@touch $@

lint: setup ## ruff, mypy and the import contract
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

audit: setup ## look what is pinned up among known vulnerabilities
	@PATH="$(CURDIR)/$(BIN):$$PATH" .ci/audit

lock: setup ## pin every dependency anew, with hashes
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade --all-extras \
		--no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" \
		setup.cfg -o requirements.lock

clean: ## remove .venv and the caches, not the data
	@rm -rf $(VENV) $(dir $(PEERS)) $(dir $(NPM)) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build *.egg-info
