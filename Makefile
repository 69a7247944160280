# Two commands do it all on a machine that has only python3 and make: `make demo` and `make test`.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: demo test test-python test-portable lint types bench docs recipes wheel clean

$(BIN)/tiewise: pyproject.toml CMakeLists.txt $(wildcard src/reader/* src/kernels/*)
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

# What reads files, again without the compiled reader.
test-python: $(VENV)/.dev
	TIEWISE_READER=python $(BIN)/python -m pytest -n auto -q tests/test_io.py tests/test_io_errors.py tests/test_data.py \
		tests/test_ties.py tests/test_evaluation.py tests/test_cli.py tests/test_peers.py tests/test_adapter_pytrec_eval.py

# What is compiled, again with the code for machines without AVX2; then the usual build is put back.
test-portable: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --no-deps --editable . --config-settings=cmake.define.TIEWISE_ANY_MACHINE=ON
	TIEWISE_READER=compiled TIEWISE_AVX2=no $(BIN)/python -m pytest -n auto -q tests/test_reader.py tests/test_reader_corpus.py \
		tests/test_io.py tests/test_io_errors.py tests/test_scoring_definition.py; found=$$?; \
		$(BIN)/python -m pip install --quiet --no-deps --editable . && exit $$found

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests fuzz benchmarks experiments scripts recipes
	$(BIN)/ruff format --check src tests fuzz benchmarks experiments scripts recipes

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.dev
	$(BIN)/python scripts/make_docs.py

# What needs heavy or rare software, where it is installed: vector databases, and the LaTeX tables of the documents.
recipes: $(VENV)/.dev
	$(BIN)/python -m recipes
	$(BIN)/python scripts/compile_latex.py

wheel: $(BIN)/tiewise
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python scripts/check_wheel.py dist/*.whl

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks $(if $(TREC_EVAL),--trec-eval $(TREC_EVAL)) $(BENCH)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
