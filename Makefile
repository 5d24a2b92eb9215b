# The newest one that has venv: 3.14 takes a quarter less processor time than 3.11.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import ensurepip, venv' 2>/dev/null && { echo $$python; exit; }; done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
# One stamp for what running needs, and one for everything else.
RUN_STAMP := $(VENV)/.installed-run
STAMP := $(VENV)/.installed
RUN_LOCKS := -r requirements.lock -r requirements-run.lock
PEER := bench/.venv-peer/.installed
NPM := tests/clients/node_modules/.installed

# uv takes a third of the time that pip takes. pip takes its place where there is no uv for the platform, or where uv
# reaches no package index: it does not read pip's configuration. UV_SYSTEM_CERTS lets it trust the certificate authority
# of a proxy.
PIP := $(BIN)/pip install -q --disable-pip-version-check
install = UV_SYSTEM_CERTS=1 $(BIN)/uv pip install -q --python $(BIN)/python $(1) || $(PIP) $(1)

# The tests start hundreds of processes. Without bytecode files, each would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test test-clients test-large test-resilience resilience-tools bench bench-growth bench-compare bench-smoke lint audit lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 17

setup: $(STAMP) ## install everything that the targets below need from Python's package index, in .venv
	@:

# pip compiles what it installs, uv only if it is told to. Each process of a test run would compile it again.
$(STAMP): requirements-dev.lock $(RUN_STAMP)
	@echo "Installing the tools for tests and development ..."
	@export UV_COMPILE_BYTECODE=1; $(call install,--require-hashes $(RUN_LOCKS) -r $<)
	@touch $@

$(RUN_STAMP): requirements.lock requirements-run.lock setup.cfg pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo "There is no $(PYTHON); set PYTHON to one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; set PYTHON to one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python's venv is missing: apt-get install python3-venv"; exit 1; }
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@echo "Installing the service and an embedded MongoDB, about 130 MB ..."
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-run.lock >$(VENV)/uv.lock
	@$(PIP) --require-hashes -r $(VENV)/uv.lock || true
	@$(call install,--require-hashes $(RUN_LOCKS))
	@$(call install,--no-deps --no-build-isolation -e .)
	@touch $@

run: $(RUN_STAMP) ## serve the API on http://127.0.0.1:8000, with a demonstration fleet; installs what that needs
	@exec $(BIN)/driver-analytics serve --demo

test: setup lint ## run the linters, the type checker and the tests
	@$(BIN)/pytest -n 3 --dist worksteal -m "not large and not clients and not resilience" \
		$(addprefix --ignore tests/,browser clients contract resilience)

# Three processes on two processors: these tests often wait, for a browser, a compiler or what Retry-After says.
test-clients: $(NPM) setup ## test docs/clients.md, TypeScript clients and the pages in a browser; needs npm and chromium
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m clients

$(NPM): tests/clients/package.json tests/clients/package-lock.json
	@command -v npm >/dev/null || { echo "There is no npm: apt-get install nodejs npm"; exit 1; }
	@echo "Setting up $(@D) ..."
	@npm ci --prefix tests/clients --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null
	@touch $@

# By file: pytest-xdist 3.8 ignores its groups with pytest 9.2 (issue 1386 of pytest-xdist).
test-large: setup ## test API and store on mongomock, and run what takes minutes: 100,000 trips, Schemathesis
	@$(BIN)/pytest -n auto --store mongomock --dist worksteal -m "not large" tests/api tests/store
	@$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder -m large

# Most of these tests wait for something that they broke. So two of them run at a time.
test-resilience: resilience-tools setup ## break MongoDB, the service and the network under load, in 6 minutes
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m resilience

resilience-tools: export PATH := $(PATH):/usr/sbin
resilience-tools:
	@command -v redis-server >/dev/null && command -v haproxy >/dev/null && command -v nginx >/dev/null && \
		command -v wrk >/dev/null || \
		{ echo "These tests need programs: apt-get install redis-server haproxy nginx wrk"; exit 1; }

bench: setup $(PEER) ## compare the service with the same API in FastAPI, in 9 minutes; ARGS=--quick takes 3
	@$(BIN)/python -m bench $(ARGS)

bench-growth: setup ## measure how the cost of a request grows with the fleet, in 12 minutes; ARGS=--quick takes 3
	@$(BIN)/python -m bench.growth $(ARGS)

bench-compare: setup ## compare the service and the import with those of another checkout: OTHER=FOLDER, in 6 minutes
	@$(BIN)/python -m bench.compare $(OTHER) $(ARGS)

bench-smoke: setup ## check that the benchmark works, in a minute
	@$(BIN)/python -m bench --smoke
	@$(BIN)/python -m bench.compare --rounds 1 --row drivers .

$(PEER): bench/requirements-peer.txt
	@echo "Setting up $(@D) ..."
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install -qq --disable-pip-version-check --no-deps -r $<
	@touch $@

lint: setup ## run ruff, mypy and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

audit: setup ## look for known vulnerabilities in the pinned dependencies
	@PATH="$(CURDIR)/$(BIN):$$PATH" .ci/audit

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-annotate --custom-compile-command "make lock" setup.cfg

# What other lock files pin is left out.
pinned = $$(sed -nE 's/^([a-z0-9.-]+)==.*/--no-emit-package=\1/p' $(1))

lock: setup ## pin the newest dependencies, with hashes, each once: production, make run, make setup
	@$(COMPILE) --upgrade --all-extras -o $(VENV)/all.lock
	@$(COMPILE) -c $(VENV)/all.lock --extra export --extra mirror --extra mcp --extra build -o requirements.lock
	@$(COMPILE) -c $(VENV)/all.lock --extra lock --extra embedded $(call pinned,requirements.lock) \
		-o requirements-run.lock
	@$(COMPILE) -c $(VENV)/all.lock --all-extras $(call pinned,requirements.lock requirements-run.lock) \
		-o requirements-dev.lock

clean: ## remove .venv and the caches, but not the data in .data
	@rm -rf $(VENV) .venv-newer $(dir $(PEER)) $(dir $(NPM)) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build *.egg-info
