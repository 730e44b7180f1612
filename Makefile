PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check

.PHONY: help demo check test test-bare repository sweep unexecuted lint fuzz mutants bench docs site oracles clean

help:
	@echo "make demo        lower a GEMM step by step, run it and check every bit"
	@echo "make check       the tests of what the working tree changes (about a minute)"
	@echo "make test        all tests (minutes); make sweep: with all of their cases"
	@echo "make test-bare   the tests that need no program of others"
	@echo "make repository  the tests of documents, packages and the site"
	@echo "make lint        style, prose and types"
	@echo "make docs        the generated pages, pictures and stubs"
	@echo "make site        the documentation site, in build/site"
	@echo "make bench       the benchmarks"
	@echo "make unexecuted  the statements that no test executes"
	@echo "make fuzz        random programs for SECONDS=600; make mutants: planted mistakes"
	@echo "make oracles     Intel's compilers, in build/oracles (Debian, x86-64)"
	@echo "make clean       remove the environment and all that is built"

demo: $(VENV)/.installed
	@echo "a GEMM, lowered step by step:"
	$(BIN)/python examples/demo.py
	cat examples/gemm_xetile.py
	$(BIN)/python examples/gemm_xetile.py

# The tests that execute the functions which the working tree changes, in about a minute.
check: $(VENV)/.installed
	$(BIN)/python test/check.py

# Compiled tests and plugins are kept: where PYTHONDONTWRITEBYTECODE is set, each worker of pytest would rewrite all of them.
test test-bare repository sweep check: export PYTHONDONTWRITEBYTECODE :=

# Both suites at once, so that no processor waits for the last test of one. They record for `make check` what each test executes.
test: export RECORD = $(shell date +%s)
test: $(VENV)/.installed
	@mkdir -p build
	$(BIN)/lit -s --order=smart --show-unsupported test >build/lit.log 2>&1 & lit=$$!; trap "kill $$lit" INT TERM; \
	$(BIN)/pytest -q -n auto --dist worksteal; pytest=$$?; wait $$lit; lit=$$?; cat build/lit.log; exit $$((pytest | lit))

# The tests of documents and tools without the programs of others, as on most machines: nothing shown needs them.
test-bare: $(VENV)/.installed
	XEGPU_PY_ORACLES=off $(BIN)/lit -s test/dialects test/tools test/upstream test/visa
	XEGPU_PY_ORACLES=off $(BIN)/pytest -q -n auto --dist worksteal test/unit/test_*.py test/extensions/editor

# The repository's own rules, once and for all machines: layers, growth of compilation times, prose, generated pages, recipes, packages
# and the site.
repository: $(VENV)/.installed
	$(BIN)/pytest -q -n auto --dist worksteal test/repository

# Intel's finalizers, for the tests that compare with them, in build/oracles.
oracles:
	.ci/oracles

# All tests with all their cases: `make test` draws a twentieth of the random ones, and of many combinations a few.
sweep: $(VENV)/.installed
	SWEEP=1 $(BIN)/pytest -q -n auto --dist worksteal

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python test/prose.py
	$(BIN)/mypy --strict -p xegpu_py

# The statements that no test executes: where mistakes are noticed least.
unexecuted: export UNEXECUTED := 1
unexecuted: $(VENV)/.installed
	rm -rf build/executed
	-$(BIN)/lit -s test
	-$(BIN)/pytest -q -n auto --dist worksteal
	$(BIN)/python test/unexecuted.py

# Random programs at every level, for so many seconds on all processors, or with SCHEDULER on the workers of a Dask
# cluster; docs/testing.md says more.
SECONDS := 600
SCHEDULER :=
fuzz: $(VENV)/.installed
	cd test && PYTHONPATH=unit:. $(CURDIR)/$(BIN)/python -m generators.fuzz --seconds $(SECONDS) --out $(CURDIR)/build/fuzz $(if $(SCHEDULER),--scheduler $(SCHEDULER))

# Random mistakes, planted in the package one at a time: which ones does no test notice? After `make test`, which records.
mutants: $(VENV)/.installed
	PYTHONPATH=test XEGPU_PY_ORACLES=off $(BIN)/python -m mutants.run --seconds $(SECONDS)

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/support/run_all.py

docs: $(VENV)/.installed
	$(BIN)/python -m xegpu_py.ir.reference_pages docs/dialects
	$(BIN)/python -m xegpu_py.ir.type_stubs
	$(BIN)/python docs/site/pictures.py docs
	$(BIN)/python docs/site/map.py docs
	$(BIN)/python docs/site/triton_names.py docs
	$(BIN)/python docs/site/options.py docs
	$(BIN)/python docs/site/choices.py docs
	$(BIN)/python docs/site/message_rules.py docs
	$(BIN)/python editors/vscode/grammars.py editors/vscode/syntaxes

# The documentation site, in build/site. NO_MKDOCS_2_WARNING silences an announcement of the theme's authors.
site: $(VENV)/.site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# An environment without pip is one that venv could not finish, for example without Debian's python3-venv: it is finished as
# soon as it can be. No package is editable for pip before 21.3. Compiled ahead, since with PYTHONDONTWRITEBYTECODE set every start of a tool would compile all it imports.
NEW_ENOUGH := 'import sys; sys.version_info >= (3, 10) or sys.exit("error: needs Python 3.10: make PYTHON=python3.12")'
$(VENV)/.installed: pyproject.toml
	$(BIN)/python -m pip --version >/dev/null 2>&1 || { $(PYTHON) -c $(NEW_ENOUGH) && $(PYTHON) -m venv $(VENV); }
	$(PIP) 'pip>=21.3'
	$(PIP) -e '.[test,dev]'
	$(BIN)/python -m compileall -q xegpu_py dialects passes tools
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(PIP) -e '.[bench]'
	touch $@

$(VENV)/.site: $(VENV)/.installed
	$(PIP) -e '.[site]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
