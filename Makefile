# Everything sets itself up: python3 and make are all it takes.
#   make demo    an evaluation from end to end: three systems, judges, simulated people, a report
#   make test    the test suite        make lint    ruff and mypy      (JOBS=3 processes: a quarter of the time they wait)
#   make bench   the speed claims      make docs    check that the documentation's commands run
#   make site    the documentation as a site in site/
#   make soak    long simulations of conversations: crowds in the waiting room, 1,000 chats with killed servers
#   make wheel   the wheels of palaver and palaver-data in dist/
#   make lock    pin the newest versions of all dependencies in requirements.lock

PYTHON ?= python3
TORCH ?= torch==2.13.0
JOBS ?= 3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready

.PHONY: demo test lint format bench soak docs site wheel lock clean

demo: $(READY)
	@$(BIN)/palaver demo --out demo-output --force

test: export PYTHONDONTWRITEBYTECODE = # tests start Python some hundred times: compile our modules once
test: export OMP_NUM_THREADS = 1# JOBS processes share the cores; threads of each would wait for one another
test: export POLARS_MAX_THREADS = 1# the same
test: $(READY)
	@$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile $(PYTEST_ARGS)

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(BENCH_READY)
	@$(BIN)/python -m benchmarks.statistics

soak: $(READY)
	@PALAVER_KILLS=20 $(BIN)/python -m pytest tests/server/test_kill.py
	@$(BIN)/python -m benchmarks.lobby --out docs/results/lobby.json
	@$(BIN)/python -m benchmarks.chat --soak --out docs/results/chat-soak.json
	@$(BIN)/python -m benchmarks.evaluate --soak --out docs/results/evaluate-soak.json
	@$(BIN)/python -m benchmarks.chat --soak --chats 200 --postgres --processes 2 --out docs/results/chat-soak-postgres.json

docs: $(READY)
	@$(BIN)/python -m pytest tests/test_docs.py tests/test_mentions.py

site: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

wheel: $(READY)
	@rm -rf dist
	@$(BIN)/python -m hatchling build -t wheel -d dist
	@cd packages/palaver-data && ../../$(BIN)/python -m hatchling build -t wheel -d ../../dist

# Set-up is skipped while the lock and the package's own description have not changed.
$(READY): requirements.lock requirements-nodeps.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Palaver needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Could not make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) (once; two minutes or so) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-nodeps.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(BENCH_READY): $(READY) requirements-bench.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-bench.lock
	@touch $@

lock:
	@rm -rf $(VENV)-lock && $(PYTHON) -m venv $(VENV)-lock
	@$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH) -e ".[cluster,dev,llm,models,probes,sheets]" hatchling editables
	@{ echo "# Made by 'make lock'; every version that 'make test' uses."; \
	  $(VENV)-lock/bin/python -m pip freeze --exclude-editable --disable-pip-version-check | sed 's/+cpu$$//'; } > requirements.lock
	@rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) site demo-output bench-output build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
