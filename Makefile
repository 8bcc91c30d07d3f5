# Everything the project needs is installed into .venv by the first target that wants it.
# KEYHOLE_VENV puts the environment elsewhere.

PYTHON ?= python3
VENV ?= $(or $(KEYHOLE_VENV),.venv)
BIN := $(VENV)/bin
ECOSYSTEM_VENV ?= .venv-ecosystem

# Bytecode is kept, whatever the environment says: tests start hundreds of processes of the same modules.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help run play test quick check format bench test-ecosystem battery kills cachecases servicekills powercuts bitflips schemathesis hostile screenshots numbers mutants fuzz manyrankers docs tutorials wheel sbom lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Keyhole needs Python 3.11 or newer: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# What the service and the commands need, without the packages of tests, docs and peers. Python compiles
# of it what is imported, which is a fraction.
$(VENV)/running: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(PIP_INSTALL) --no-compile --require-hashes -r requirements.lock
	$(PIP_INSTALL) --no-compile --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/installed: pyproject.toml requirements-dev.lock | $(VENV)/bin/python
	$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	touch $(VENV)/running $@

run: $(VENV)/running ## Start the service with a demo, and print the URL of its dashboard
	@mkdir -p out
	$(BIN)/keyhole serve --demo --db out/keyhole.db

play: $(VENV)/running ## Play the game of the thesis; writes a figure and results to out/
	$(BIN)/keyhole play --ranker keystone --items 20 --rounds 10000 --top 1 --measure DCG --world flips \
		--runs 10 --seed 0 --against rtopk --against ftpl --against "ftpl eps_scale=0.01" --against random --out out

check: $(VENV)/installed ## Format, lint, strict types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/lint-imports

# Interpreted kernels give the bits that compiled ones give (tests/contract): what does little with
# much code is told apart by a marker and compiles nothing.
# Compiled code stays in memory: what compiles most has processes of its own.
COMPILES_MOST = tests/contract tests/papers tests/statistical

test: check ## make check and the whole test suite, in three parts
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "interpreted and not compiled" \
		$$(grep -rl --include="test_*.py" mark.interpreted tests) src
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not interpreted or compiled" $(COMPILES_MOST)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not interpreted or compiled" \
		$(COMPILES_MOST:%=--ignore=%)

quick: $(VENV)/installed ## The tests that cover the uncommitted change, most specific first (at most five minutes)
	$(BIN)/python -m bench.quick

$(ECOSYSTEM_VENV)/installed: pyproject.toml tests/ecosystem/requirements.lock tests/ecosystem/open-bandit-pipeline.lock
	$(PYTHON) -m venv $(ECOSYSTEM_VENV)
	$(ECOSYSTEM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/ecosystem/requirements.lock
	$(ECOSYSTEM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--no-build-isolation --ignore-requires-python -r tests/ecosystem/open-bandit-pipeline.lock
	$(ECOSYSTEM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

test-ecosystem: $(ECOSYSTEM_VENV)/installed ## Test the adapters with the real packages, in .venv-ecosystem (a gigabyte)
	$(ECOSYSTEM_VENV)/bin/python -m pytest tests/ecosystem

format: $(VENV)/installed ## Format the code and sort imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed ## Measure speed as ratios to plain NumPy and to a tight C++ loop
	$(BIN)/python -m bench

kills: $(VENV)/installed ## Interrupt and kill commands, a hundred times each, and resume them (twenty minutes); KILLS="--times 10"
	$(BIN)/python -m bench.kills $(KILLS)

cachecases: $(VENV)/installed ## Run every kernel from a cache that other processes filled (ten minutes; make test has a sixteenth)
	$(BIN)/python -m pytest tests/contract/test_cache.py --every-case

manyrankers: $(VENV)/installed ## Compare the service with ten thousand rankers and with ten (minutes); MANYRANKERS="--rankers 1000"
	$(BIN)/python -m bench.many_rankers $(MANYRANKERS)

servicekills: $(VENV)/installed ## Kill the service a thousand times; no event may be lost (minutes); SERVICEKILLS="--times 100"
	$(BIN)/python -m bench.service_kills $(SERVICEKILLS)

powercuts: $(VENV)/installed ## Simulate ten thousand power cuts while the service writes its log (minutes); POWERCUTS="--images 1000"
	$(BIN)/python -m bench.powercuts $(POWERCUTS)

bitflips: $(VENV)/installed ## Flip two thousand single bits of a log; each must be detected, repaired or harmless (minutes); BITFLIPS="--times 200"
	$(BIN)/python -m bench.bit_flips $(BITFLIPS)

schemathesis: $(VENV)/installed ## Send ten thousand generated requests to the service (minutes); SCHEMATHESIS=1000
	$(BIN)/python -m bench.api_cases $(or $(SCHEMATHESIS),13000)

hostile: $(VENV)/installed ## Send twenty thousand hostile requests to the service (minutes); HOSTILE="--cases 2000 --seed 7"
	$(BIN)/python -m bench.hostile $(HOSTILE)

screenshots: $(VENV)/installed ## Make the screenshot of the dashboard for the docs (needs Chromium)
	$(BIN)/python -m bench.screenshots --out docs/images

battery: $(VENV)/installed ## Test the random numbers statistically (needs dieharder; takes an hour)
	$(BIN)/python -m bench.battery

numbers: $(VENV)/installed ## Measure every quoted number again, from an empty cache (takes an hour); docs/numbers.md
	$(BIN)/python -m bench.numbers

mutants: $(VENV)/installed ## Mutation testing (takes hours; resumes)
	$(BIN)/python -m bench.mutants $(MUTANTS)

fuzz: $(VENV)/installed ## Fuzz the library and the command line with 20,000 cases (takes minutes); FUZZ="--cases 2000 --seed 7"
	$(BIN)/python -m bench.fuzz $(FUZZ)

docs: $(VENV)/installed ## Build the site into out/site; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -b html docs out/site

tutorials: $(VENV)/installed ## Run the six tutorials in a new environment with the built wheel (minutes)
	$(BIN)/python -m bench.site.tutorials

wheel: $(VENV)/installed ## Build a wheel with compiled code for a baseline processor, into dist/ (minutes); WHEEL=--plain: without
	$(BIN)/python -m bench.wheel $(WHEEL)

sbom: $(VENV)/installed ## Write a CycloneDX bill of materials into out/, and docs/licences.md
	$(BIN)/python -m bench.sbom

lock: $(VENV)/installed ## Pin the newest versions of all dependencies, with their hashes
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --extra dev --group lock pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --extra cli --extra figures --extra service --group lock \
		-c requirements-dev.lock pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --extra cli --extra figures --extra logs --extra oracle --extra ads \
		--group lock pyproject.toml tests/ecosystem/requirements.in -o tests/ecosystem/requirements.lock

clean: ## Remove build outputs
	rm -rf $(VENV) $(ECOSYSTEM_VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache out build dist
