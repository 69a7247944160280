# Two commands do it all on a machine that has only python3 and make: `make demo` and `make test`.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: demo test test-python test-portable test-least lint types bench docs pictures site recipes wheel rehearsal clean

$(BIN)/tiewise: pyproject.toml CMakeLists.txt $(wildcard src/reader/* src/measures/* src/kernels/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/tiewise pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(BIN)/tiewise pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

demo: $(BIN)/tiewise
	@$(BIN)/tiewise demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto

# What reads files, again without the compiled reader.
test-python: $(VENV)/.dev
	TIEWISE_READER=python $(BIN)/python -m pytest -n auto -q tests/test_io.py tests/test_io_errors.py tests/test_data.py \
		tests/test_ties.py tests/test_edited_runs.py tests/test_evaluation.py tests/test_cli.py tests/test_peers.py tests/test_adapter_pytrec_eval.py

# What is compiled, again with the code for machines without AVX2 and libraries without from_chars for double; then the usual build is put back.
test-portable: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --no-deps --editable . --config-settings=cmake.define.TIEWISE_ANY_MACHINE=ON
	TIEWISE_READER=compiled TIEWISE_AVX2=no $(BIN)/python -m pytest -n auto -q tests/test_reader.py tests/test_reader_corpus.py \
		tests/test_io.py tests/test_io_errors.py tests/test_scoring_definition.py; found=$$?; \
		$(BIN)/python -m pip install --quiet --no-deps --editable . && exit $$found

# The oldest versions of what we depend on, as pyproject.toml allows them; needs uv. What needs a peer is left out.
test-least:
	uv venv --quiet --clear --python $(PYTHON) build/least
	uv pip install --quiet --python build/least --resolution lowest-direct '.[arrow,zstd,precision,report]' \
		'pytest>=8' 'pytest-xdist>=3.5' 'hypothesis>=6.100' 'pandas>=2' 'polars>=1'
	build/least/bin/python scripts/smoke_test.py
	build/least/bin/python -m pytest -n auto -q tests/test_measures.py tests/test_data.py tests/test_ties.py tests/test_io.py \
		tests/test_io_errors.py tests/test_evaluation.py tests/test_cli.py tests/test_tensors.py tests/test_figures.py

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests examples fuzz benchmarks experiments scripts recipes
	$(BIN)/ruff format --check src tests examples fuzz benchmarks experiments scripts recipes

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.dev
	$(BIN)/python scripts/make_docs.py
	$(BIN)/python scripts/run_notebooks.py

# The pictures of the documentation that need only the example. Others: `make bench`, and experiments/table1.py, which needs models.
pictures: $(VENV)/.dev
	$(BIN)/python -m experiments.firststages
	$(BIN)/python -m experiments.numberformats
	$(BIN)/python -m experiments.rankbiased > /dev/null
	$(BIN)/python scripts/draw_figures.py

# The documentation as a web site, in site/; a broken link is an error.
site: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What needs heavy or rare software, where it is installed: vector databases, and the LaTeX tables of the documents.
recipes: $(VENV)/.dev
	$(BIN)/python -m recipes
	$(BIN)/python scripts/compile_latex.py

wheel: $(BIN)/tiewise
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python scripts/check_wheel.py dist/*.whl

# The release, built and installed as it would be published: a local index, environments without a compiler or a network.
rehearsal:
	$(PYTHON) scripts/rehearse_release.py

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable '.[bench]' tqdm
	$(BIN)/python -m pip install --quiet --no-deps rbo # it asks for an old NumPy, and works with a new one
	$(BIN)/python -m benchmarks $(if $(TREC_EVAL),--trec-eval $(TREC_EVAL)) $(BENCH)
	$(if $(BENCH),,$(BIN)/python -m benchmarks.growth)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis site
