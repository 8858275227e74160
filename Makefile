# `make demo` and `make test` do all the set-up: they need Python 3.11 or newer with venv, and make.
# The first run fetches what requirements.lock names; later ones are offline.
# Every name here is relative, so the checkout may lie in a folder with spaces in its path.

PACKAGES := engine effects adapters adapters/testing/public
UV_VERSION := 0.13.9
PY := .venv/bin/python
ARGS ?=

.PHONY: help demo test test-slow lint check prove bench-quick lock clean fuzz museum mutants
.DELETE_ON_ERROR:

# An editable install holds absolute paths: in a checkout that was moved or copied, do that part anew.
$(shell test ! -e .venv/.where || test "$$(cat .venv/.where)" = "$$(pwd -P)" || rm -f .venv/.installed)

help:
	@echo "make demo         run the demo"
	@echo "make test         run the tests (ARGS='-m \"not slow\"' are handed to pytest)"
	@echo "make test-slow    only the tests that take long: sweeps, the museum, the eighth continue"
	@echo "make lint         ruff, mypy, import-linter"
	@echo "make check        check the scenarios in tests/scenarios"
	@echo "make prove        prove all that can be proved: some minutes, and Java for one of the nets"
	@echo "make bench-quick  a short benchmark"
	@echo "make fuzz         fuzz the engine for ten minutes"
	@echo "make museum       find sixty faults of real loops, planted one at a time"
	@echo "make mutants      mutate guards and moves, and see which changes no test notices"
	@echo "make .venv        only the set-up"
	@echo "make lock         write requirements.lock anew from pyproject.toml"
	@echo "make clean        remove .venv and all that was built"

demo: .venv/.installed
	@.venv/bin/stepfold demo $(ARGS)

test: .venv/.installed
	@$(PY) -m pytest $(ARGS)

test-slow: .venv/.installed
	@$(PY) -m pytest -m slow $(ARGS)

lint: .venv/.installed
	$(PY) -m ruff check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo

check: .venv/.installed
	@.venv/bin/stepfold check tests/scenarios $(ARGS)

prove: .venv/.installed
	@.venv/bin/stepfold prove --deep $(ARGS)

bench-quick: .venv/.installed
	@$(PY) -m benchmarks.quick $(ARGS)

fuzz: .venv/.installed
	@.venv/bin/stepfold fuzz --seconds 600 --workers 2 $(ARGS)

museum: .venv/.installed
	@.venv/bin/stepfold museum $(ARGS)

# mutmut finds stepfold.* only where the folders have their import names: it works on a copy.
# MUTANTS names some (a pattern), e.g. MUTANTS='stepfold.engine.guards.*'; all of them take hours.
MUTANTS ?=
mutants: .venv/.installed
	@rm -rf build/mutants && mkdir -p build/mutants/stepfold
	@cp -rL engine effects adapters build/mutants/stepfold/ && cp -r tests build/mutants/
	@cp tests/fuzzing/mutmut.toml build/mutants/pyproject.toml
	@cd build/mutants && ../../$(PY) -m mutmut run $(MUTANTS) && ../../$(PY) -m mutmut results

# ---------------------------------------------------------------- set-up

.PHONY: .venv
.venv: .venv/.installed

.venv/.created:
	@for python in $${PYTHON:-python3.11 python3 python3.14 python3.13 python3.12}; do \
	    if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	    then found="$$python"; break; fi; \
	done; \
	if test -z "$$found"; then \
	    echo "Stepfold needs Python 3.11 or newer, with its venv module (on Debian: python3-venv)." >&2; \
	    echo "Found: $$(python3 --version 2>&1 || true). To name another: make PYTHON=python3.12" >&2; \
	    exit 1; \
	fi; \
	echo "Setting up .venv with $$found, once"; \
	"$$found" -m venv --clear .venv
	@touch .venv/.created

.venv/.locked: requirements.lock | .venv/.created
	@echo "Installing what requirements.lock names"
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch .venv/.locked

.venv/.installed: pyproject.toml .venv/.locked
	@$(PY) -m pip install --quiet --disable-pip-version-check \
	    --no-index --no-deps --no-build-isolation --editable .
	@rm -rf .venv/typed && mkdir -p .venv/typed/stepfold
	@for name in $(PACKAGES); do \
	    case "$$name" in */public) link="$${name%/public}"; link="$${link##*/}";; *) link="$$name";; esac; \
	    ln -s "../../../$$name" ".venv/typed/stepfold/$$link"; \
	done
	@pwd -P > .venv/.where
	@touch .venv/.installed

# ---------------------------------------------------------------- the rest

.venv-lock/.created: Makefile | .venv/.created
	@rm -rf .venv-lock && $(PY) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"
	@touch .venv-lock/.created

lock: .venv-lock/.created
	@.venv-lock/bin/uv pip compile --no-config --quiet --universal --python-version 3.11 --extra dev \
	    --generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(ARGS) \
	    --output-file requirements.lock pyproject.toml

clean:
	@rm -rf .venv .venv-lock build dist stepfold.egg-info .hypothesis .mypy_cache .pytest_cache \
	    .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
