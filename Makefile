# make demo   a whole private survey, from plan to report        make test   everything that must hold
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# Bytecode is kept, whatever the shell says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

# Three at once on two cores: servers, browsers and databases let the processor rest meanwhile.
# Modules go to the workers in the order of their folders, so that those of many seconds and few tests are not left for the end.
WORKERS := -n 3 --dist loadscope --no-loadscope-reorder

.PHONY: setup demo docs test test-busy test-lowest lint bench slow lock sbom clean

UV := out/uv/bin/uv
COMPILE = $(UV) pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" --upgrade

# What builds the package is locked with what it needs.
BUILD = $(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')"

setup: $(STAMP)

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --upgrade pip 2>/dev/null || true
	@$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $(STAMP)

demo: setup
	@$(BIN)/sottovoce demo --output out/demo

docs: setup  # the documentation as a site that needs no server and no network; NOTEBOOKS=1 runs them
	@$(BIN)/python -m docs.site --output out/site $(if $(NOTEBOOKS),--notebooks)

lint: setup
	$(BIN)/ruff format --check src tests bench deploy docs/site
	$(BIN)/ruff check src tests bench deploy docs/site
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest $(WORKERS) -m "not slow"

test-busy: setup  # the tests with six loops beside them that never wait
	@pids=""; for each in 1 2 3 4 5 6; do (while :; do :; done) & pids="$$pids $$!"; done; \
	$(BIN)/pytest $(WORKERS) -m "not slow" $(TESTS); code=$$?; kill $$pids; exit $$code

slow: setup
	$(BIN)/pytest -n 2 -m slow

# The suite on the lowest versions that pyproject.toml admits, all but what drives a browser.
test-lowest: $(UV)
	@$(UV) venv --no-config --quiet --clear --seed --python $(PYTHON) .venv-lowest
	@$(UV) pip install --no-config --quiet --python .venv-lowest --resolution lowest-direct --editable ".[dev]"
	.venv-lowest/bin/pytest $(WORKERS) -m "not slow" --ignore tests/browser --ignore tests/studio/test_browser.py

# What a deployment installs, to the byte: pip install --require-hashes -r deploy/collector.lock
lock: $(UV)
	@$(BUILD) | $(COMPILE) --extra collector --extra postgres pyproject.toml - -o deploy/collector.lock
	@$(BUILD) | $(COMPILE) --extra all pyproject.toml - -o deploy/all.lock

sbom: setup
	@$(BIN)/python deploy/sbom.py deploy/collector.lock -o out/sbom/collector.cdx.json
	@$(BIN)/python deploy/sbom.py deploy/all.lock -o out/sbom/all.cdx.json

$(UV):
	@$(PYTHON) -m venv out/uv
	@out/uv/bin/python -m pip install --quiet uv

bench: setup
	@$(BIN)/python -m bench $(if $(PEERS),--peers)

clean:
	rm -rf .venv .venv-lowest out build .pytest_cache .mypy_cache .ruff_cache
