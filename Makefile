# Everything below builds .venv first if it is not there; only Python (3.10 or newer) and pip are needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-web lint types unit docs benchmarks clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1,<26"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $(READY)

demo: $(READY)
	$(BIN)/torchlens demo --out demo

test: lint types unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/python -m pytest

# The interactive page; the only target that needs more: Node 20 or newer, and Chromium (web/install-browser.sh).
test-web: $(READY)
	cd web && npm ci --no-audit --no-fund --ignore-scripts && npm run check && npm test
	cd web && node build.mjs build && diff -r build ../torchlens/drawing/page/bundle
	TORCHLENS_WEB=1 $(BIN)/python -m pytest tests/web

benchmarks: $(READY)
	$(BIN)/python benchmarks/capture.py
	$(BIN)/python benchmarks/drawing.py

clean:
	rm -rf $(VENV) demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
