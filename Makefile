PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TYPECHECK := build/typecheck

.PHONY: demo test lint bench clean

demo: $(VENV)/.installed
	$(BIN)/xegpu-opt examples/gemm.mlir --canonicalize --cse

test: $(VENV)/.installed
	$(BIN)/lit -q --show-unsupported --order=smart test
	$(BIN)/pytest

# mypy does not follow setuptools' package-dir mapping, so it gets the package as it is installed.
lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf $(TYPECHECK) && mkdir -p $(TYPECHECK)/xegpu_py
	ln -s $(CURDIR)/xegpu_py/* $(CURDIR)/dialects $(CURDIR)/passes $(CURDIR)/tools $(TYPECHECK)/xegpu_py
	cd $(TYPECHECK) && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml --strict -p xegpu_py

bench: $(VENV)/.installed
	$(BIN)/pip install -q -e '.[bench]'
	for b in benchmarks/*.py; do echo "== $$b"; $(BIN)/python $$b || exit 1; done

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -e '.[test,dev]'
	touch $@

clean:
	rm -rf $(VENV) build .hypothesis .mypy_cache .pytest_cache .ruff_cache
