# Two commands do it all on a machine that has only python3 and make: `make demo` and `make test`.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: demo test lint types bench docs wheel clean

$(BIN)/tiewise: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/tiewise pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(BIN)/tiewise
	@$(BIN)/tiewise demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests fuzz benchmarks experiments scripts
	$(BIN)/ruff format --check src tests fuzz benchmarks experiments scripts

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.dev
	$(BIN)/python scripts/make_docs.py

wheel: $(BIN)/tiewise
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python scripts/check_wheel.py dist/*.whl

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
