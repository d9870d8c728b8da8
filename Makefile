# Everything that is done with this repository. `make` alone lists it.
#
# Needed beforehand: Python >= 3.11 with venv, and make. Spark and a real Cassandra need Java 17 too, and a Cassandra is
# fetched by Maven; one test needs Node >= 20 with npm. Nothing else has to be installed by hand. What is needed lands in
# .venv, .serve, .old-sdk, .node-sdk and .cache here, and outside of this directory in three places: jars of Cassandra and of
# an SDK in ~/.cache/angelhair (ANGELHAIR_CACHE=/a/directory moves them), what Maven, pip and npm keep of their own in ~/.m2,
# ~/.cache/pip and ~/.npm, and, until they stop, the data of running nodes in the temporary directory, and of tests in
# memory (/dev/shm, scripts/in_memory). All of it is disposable.

PYTHON ?= python3
SEEDS  ?= 2000
NODES  ?= 1
WORKERS ?= 2
# Tests of doors wait a good part of their time: with two of them at once the cores have too little to do.
WAITING_WORKERS ?= 3
ARGS   ?=

BIN   := .venv/bin
STAGE := @scripts/stage
IN_MEMORY := scripts/in_memory
PIP   := --quiet --disable-pip-version-check
# A lock names all that is needed, so pip has nothing to resolve. Left to resolve, the pip of Python 3.11 took
# coverage[toml] for another package than the coverage that is pinned, and refused on the day a newer one appeared.
LOCKED := --require-hashes --no-deps -r
# A failing test run names the seed, the scenario or the node; its full output would bury that.
PYTEST := $(BIN)/python -m pytest --quiet
# The slow ones are named: a suite is kept short by looking at them.
SLOWEST := --durations=12 --durations-min=5
COVER  := --cov --cov-report=
ENGINE_COVERAGE_PERCENT := 95
# Who has no Node can do without its one test; continuous integration cannot.
NODE_SDK := $(if $(CI)$(shell command -v npm),.node-sdk/.ready)
# What else the simulator plays; the first three together get as many seeds as bucketed queues do, the others an eighth each.
OTHER_KINDS := fifo fair topics
LATER_KINDS := timeline databag
SHARE := $(shell echo $$(( ($(SEEDS) + 2) / 3 )))
EIGHTH := $(shell echo $$(( ($(SEEDS) + 7) / 8 )))
# Only `make lock` uses it, in an environment of its own.
PIP_TOOLS := pip-tools==7.6.2

ENGINE_TESTS := tests/unit tests/contract tests/scenarios tests/promises tests/attacks
# Without coverage: costs are counted over very many messages, which go through no branch that the others do not.
OTHER_TESTS  := tests/costs tests/killed tests/wire tests/aws tests/client tests/cli tests/container

.DEFAULT_GOAL := help
# The stages of a test run measure and load the machine; they take turns whatever -j says.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help setup serve tour check test test-quick test-simulation test-spark test-cluster coverage simulate prove \
        bench cassandra lock clean forget-coverage need-python need-java need-maven need-node

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# --- environments ---------------------------------------------------------------------------------------------------

setup: .venv/.ready .old-sdk/.ready $(NODE_SDK) ## everything for development, in .venv; the command is .venv/bin/angelhair

.venv/.ready: requirements/dev.txt pyproject.toml | need-python
	@echo "setup: installing the development environment in .venv (a minute or so the first time)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install $(PIP) $(LOCKED) requirements/dev.txt
	@$(BIN)/python -m pip install $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "setup: done; try .venv/bin/angelhair --help"

# An SDK of before SQS spoke JSON, in an environment of its own: two of its versions cannot be in one.
.old-sdk/.ready: requirements/old-sdk.txt | need-python
	@$(PYTHON) -m venv .old-sdk
	@.old-sdk/bin/python -m pip install $(PIP) $(LOCKED) requirements/old-sdk.txt
	@touch $@

# The SDK for JavaScript, as its lock pins it. The lock names no registry; npm asks the one that it is set to.
.node-sdk/.ready: tests/aws/node/package.json tests/aws/node/package-lock.json tests/aws/node/.npmrc | need-node
	@mkdir -p .node-sdk
	@cp $^ .node-sdk/
	@npm ci --prefix .node-sdk --silent --ignore-scripts
	@touch $@

serve: .serve/.ready ## a queue service on http://127.0.0.1:9324, from one file; on another port with ARGS='--port 9325'
	@echo "serve: the command angelhair is .serve/bin/angelhair"
	@.serve/bin/angelhair serve --hints $(ARGS)

tour: .serve/.ready ## the life of a queue, told and checked step by step
	@.serve/bin/angelhair tour $(ARGS)

.serve/.ready: requirements/serve.txt scripts/angelhair | need-python
	@echo "serve: installing what serving needs in .serve"
	@$(PYTHON) -m venv .serve
	@.serve/bin/python -m pip install $(PIP) $(LOCKED) requirements/serve.txt
	@cp scripts/angelhair .serve/bin/
	@touch $@

need-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Angelhair needs Python 3.11 or newer; say where it is: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }

need-java:
	@java -version 2>&1 | grep -q 'version "17' || { \
	  echo "Spark and a real Cassandra need Java 17, as 'java' on the path" >&2; exit 1; }

need-maven:
	@command -v mvn >/dev/null || { \
	  echo "a real Cassandra is fetched by Maven, as 'mvn' on the path" >&2; exit 1; }

need-node:
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' && command -v npm >/dev/null || { \
	  echo "the test of the SDK for JavaScript needs Node 20 or newer, as 'node' and 'npm' on the path" >&2; exit 1; }

# --- checks and tests -----------------------------------------------------------------------------------------------

check: setup ## ruff, mypy --strict and the import contracts
	$(STAGE) "ruff" $(BIN)/ruff check --quiet .
	$(STAGE) "mypy --strict" $(BIN)/mypy --strict src
	$(STAGE) "import contracts" $(BIN)/lint-imports --no-logo

# What is missing is said before the first minute is spent, not after the tenth.
test: need-java need-maven $(if $(CI),need-node) check forget-coverage test-quick coverage test-simulation test-spark test-cluster ## everything, coverage included
	@echo "test: all of it passed"

forget-coverage:
	@rm -f .coverage .coverage.*

# The engine's own tests cover it; measuring what the others do to it as well would only make them slower.
test-quick: setup ## all that needs no Java: unit, contract, scenarios, promises, attacks, costs, killed, wire, aws, client, cli, container
	$(STAGE) "tests of the engine" env COVERAGE_FILE=.coverage.engine $(IN_MEMORY) $(PYTEST) $(SLOWEST) $(COVER) -n $(WORKERS) $(ENGINE_TESTS)
	$(STAGE) "tests of costs and doors" $(IN_MEMORY) $(PYTEST) $(SLOWEST) -n $(WAITING_WORKERS) $(OTHER_TESTS)

# Without coverage: the mutants play hundreds of seeds, and measuring them would take three times as long.
test-simulation: setup ## tests of the simulator and its mutants (engines broken on purpose), then SEEDS seeds of bucketed queues, and more of all else
	$(STAGE) "simulator and mutants" $(PYTEST) -n $(WORKERS) tests/simulation
	$(STAGE) "simulation, $(SEEDS) seeds" $(BIN)/angelhair simulate --seeds $(SEEDS)
	@set -e; for kind in $(OTHER_KINDS); do \
	  scripts/stage "simulation, $(SHARE) seeds, $$kind" $(BIN)/angelhair simulate --seeds $(SHARE) --kind $$kind; done
	@set -e; for kind in $(LATER_KINDS); do \
	  scripts/stage "simulation, $(EIGHTH) seeds, $$kind" $(BIN)/angelhair simulate --seeds $(EIGHTH) --kind $$kind; done

# A session for each worker serves whole files: most of the time goes to starting processes, so two are faster than one.
# In the order of their names: those with one long test, which would come last by their number of tests, come early.
test-spark: setup need-java ## a queue as a table and a stream, on SQLite; the same on Cassandra is in test-cluster
	$(STAGE) "tests on Spark" $(IN_MEMORY) $(PYTEST) $(SLOWEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder tests/spark

# All workers share a cluster, and take whole files, in the order of their names: the one that kills nodes and waits for
# them comes early, with a further cluster.
test-cluster: setup need-java need-maven ## the same contract, scenarios and promises on a real 3-node Cassandra, and its faults
	$(STAGE) "tests on Cassandra" $(IN_MEMORY) $(PYTEST) $(SLOWEST) -n $(WORKERS) \
	  --dist loadfile --no-loadscope-reorder -m cassandra tests

coverage: setup ## what the engine's tests have just measured; branch coverage of the engine must hold
	$(STAGE) "coverage: joining the processes" $(BIN)/coverage combine --quiet
	@mkdir -p .cache && $(BIN)/coverage json --quiet -o .cache/coverage.json
	$(STAGE) "coverage: engine, at least $(ENGINE_COVERAGE_PERCENT) % of lines and of branches" \
	  scripts/coverage_table .cache/coverage.json --at-least $(ENGINE_COVERAGE_PERCENT) $(if $(CI),,--write)

# --- longer runs ----------------------------------------------------------------------------------------------------

simulate: setup ## SEEDS=n simulated worlds full of faults (default 2000)
	@$(BIN)/angelhair simulate --seeds $(SEEDS) $(ARGS)

prove: setup need-java need-maven ## the long proofs, which take hours; writes a dated report under docs/proof
	@$(BIN)/python -m bench.prove $(ARGS)

bench: setup need-java need-maven ## how many messages a second, and every bar; writes a dated report under docs/benchmarks
	@$(BIN)/python -m bench $(ARGS)

cassandra: setup need-java need-maven ## NODES=n real Cassandra nodes (1 or 3) on 127.0.0.x, until interrupted
	@$(BIN)/python -m cluster --nodes $(NODES) $(ARGS)

# --- upkeep ---------------------------------------------------------------------------------------------------------

lock: need-python ## pins requirements/*.txt with hashes; newest versions with ARGS=--upgrade
	@$(PYTHON) -m venv .cache/lock
	@.cache/lock/bin/python -m pip install $(PIP) '$(PIP_TOOLS)'
	$(STAGE) "lock: serve" scripts/lock requirements/serve.txt --extra server $(ARGS)
	$(STAGE) "lock: container" scripts/lock requirements/container.txt --extra server --extra cassandra --extra telemetry $(ARGS)
	$(STAGE) "lock: building" scripts/lock requirements/build.txt --build-deps-for wheel --only-build-deps $(ARGS)
	$(STAGE) "lock: old SDK" scripts/lock requirements/old-sdk.txt $(ARGS)
	$(STAGE) "lock: dev" scripts/lock requirements/dev.txt --extra dev --extra cassandra --extra server --extra spark \
	  --extra telemetry --build-deps-for editable $(ARGS)
ifneq ($(NODE_SDK),)
	$(STAGE) "lock: SDK for JavaScript" npm install --prefix tests/aws/node --package-lock-only --silent --ignore-scripts
endif

clean: ## removes the environments and the tools' caches; keeps .cache, and Cassandra's jars in ~/.cache/angelhair
	rm -rf .venv .serve .old-sdk .node-sdk .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis \
	  build dist
	find . -path ./.cache -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
