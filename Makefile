# One virtual environment for everything; each target installs what it needs the first time and after a change of
# pyproject.toml or constraints.txt. `make` alone lists the targets.

PYTHON ?= python3
JOBS ?= 2
KILLS ?= 20
MINUTES ?= 20

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs test units soak lint types bench clean

VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt
# torch in a call of its own: what is installed next then finds it there and never chooses another build of it.
# The build backend too, so that the pinned one is used and not a second download in isolation.
EDITABLE := --no-build-isolation --editable

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.core ## run examples/demo.py: the model in the package does each of its jobs, offline
	$(VENV)/bin/python examples/demo.py

docs: $(VENV)/.docs ## build the documentation into site/: open site/index.html, no server and no network needed
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --strict --quiet
	@echo "site/index.html is the documentation"

test: $(VENV)/.test ## ruff, mypy and all tests (JOBS=2 of them at a time)
	$(VENV)/bin/ruff check
	@$(MAKE) --no-print-directory --jobs 2 types units

units: $(VENV)/.test
	$(VENV)/bin/python -m pytest -n $(JOBS) --dist worksteal

soak: $(VENV)/.test ## kill and resume training (KILLS=20), then ask a server all it can (MINUTES=20): nothing may differ
	$(VENV)/bin/python tests/whole/soak_resume.py soak $(KILLS)
	$(VENV)/bin/python tests/serving/soak.py --minutes $(MINUTES)

lint: $(VENV)/.test ## ruff only
	$(VENV)/bin/ruff check

types: $(VENV)/.test ## mypy only
	$(VENV)/bin/mypy

bench: $(VENV)/.bench ## run every script in benchmarks/
	@for script in benchmarks/*.py; do echo "== $$script"; $(VENV)/bin/python "$$script" || exit 1; done

clean: ## remove the environment, the caches and what was built
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "bertsmith needs Python 3.11 or newer, and '$(PYTHON)' is not: name one, as in 'make test PYTHON=python3.12'." >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing torch (a large download the first time) ..."
	@$(PIP) torch
	@echo "installing bertsmith ..."
	@$(PIP) hatchling
	@$(PIP) $(EDITABLE) .
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	@echo "installing what builds the documentation ..."
	@$(PIP) $(EDITABLE) '.[docs]'
	@touch $@

$(VENV)/.test: $(VENV)/.core
	@echo "installing the tools for the tests ..."
	@$(PIP) $(EDITABLE) '.[test,demo,dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.core
	@echo "installing the libraries that the benchmarks compare with ..."
	@$(PIP) $(EDITABLE) '.[bench,demo]'
	@touch $@
