# make demo   a whole private survey, from plan to report        make test   everything that must hold
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo test lint bench slow clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --upgrade pip 2>/dev/null || true
	@$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $(STAMP)

demo: setup
	@$(BIN)/sottovoce demo --output out/demo

lint: setup
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2 --dist loadscope -m "not slow"

slow: setup
	$(BIN)/pytest -n 2 -m slow

bench: setup
	@$(BIN)/python -m bench $(if $(PEERS),--peers)

clean:
	rm -rf .venv out build .pytest_cache .mypy_cache .ruff_cache
