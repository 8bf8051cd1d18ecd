# Everything in two commands: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup quickstart test lint docs package system clean

help:
	@echo "make quickstart   set up and run scenarios/quickstart.yaml"
	@echo "make test         set up, lint, type-check and run all tests"
	@echo "make docs         set up and build the documentation as a site, in site/"
	@echo "make package      build and check the wheel and the sdist, in dist/"
	@echo "make setup        only set up (.venv with the package and its development tools)"
	@echo "make clean        remove .venv and caches"

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one by: make PYTHON=python3.12 ..."; exit 1; }
	@# Debian and Ubuntu ship ensurepip apart from Python.
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { SUDO=$$(command -v sudo || true); [ $$(id -u) = 0 ] && SUDO=; $$SUDO apt-get update -q && $$SUDO apt-get install -qy python3-venv; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev,emulation,search,ray,report]'
	@touch $@

quickstart: setup
	$(BIN)/dlion run scenarios/quickstart.yaml

docs: setup
	@# Not --quiet: it would not count warnings.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

package: setup
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[release]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

system:
	@# For emulation and pages in a browser, whose tests are left out without root or Chromium.
	@[ $$(id -u) != 0 ] || emulation/setup.sh || echo "the system packages for emulation could not be installed"
	@[ $$(id -u) != 0 ] || tests/setup_browser.sh || echo "the browser for the tests of pages could not be installed"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint system
	$(BIN)/pytest -n auto

clean:
	rm -rf $(VENV) dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
