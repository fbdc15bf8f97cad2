# The daily commands. `make demo` and `make test` need Python 3.11+, Java 17+ and make, no more.
.DEFAULT_GOAL := help
.PHONY: help setup demo down test faults torture torture-planted lint format docs lock bench profile audit matrix clean
BIN := .venv/bin

help:  ## show this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 17

setup:  ## make the virtual environment from pinned, hashed requirements
	@command -v python3 >/dev/null || { echo 'setup: Python 3.11 or newer is needed: install python3' >&2; exit 1; }
	@python3 scripts/setup.py

demo: setup  ## start PostgreSQL, Kafka and Dagster, and see orders on their way into Kafka
	@$(BIN)/harvest demo

down:  ## stop Dagster, PostgreSQL and Kafka
	@$(BIN)/harvest dev down

test: setup  ## run the tests, on real PostgreSQL and real Kafka, all but the longest
	@python3 scripts/browser.py
	@$(BIN)/pytest -n 4 --dist worksteal -m "not long" --ignore tests/e2e --ignore tests/integration/spark
	@$(BIN)/pytest -n 2 --dist loadgroup -m "not long" tests/integration/spark tests/e2e

faults: setup  ## kill, pause and cut off what the harvest lives on, and count the messages
	@$(BIN)/pytest -n 2 --dist loadgroup tests/faults tests/e2e tests/integration/embedded tests/integration/spark

torture: setup  ## have everything fail at random, MINUTES=10 SEED=1, and account for each message
	@$(BIN)/python -m tests.torture --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1) $(TORTURE)

torture-planted: setup  ## plant bugs in the engine, which `make torture` must find
	@$(BIN)/python -m tests.torture.planted

lint: setup  ## check format, lint, types and layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup  ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup  ## measure, as ratios in one run, and write docs/benchmarks.md
	@$(BIN)/python -m benchmarks

profile: setup  ## see what a harvest's process is busy with
	@$(BIN)/python -m benchmarks.profile

audit: setup  ## ask whether what is pinned was changed, yanked, has known holes, or a licence that won't do
	@$(BIN)/python -m scripts.audit

docs: setup  ## write the reference pages from the code, and build the site, strictly
	@$(BIN)/python -m scripts.reference
	@$(BIN)/mkdocs build --strict

lock:  ## pin the newest versions that fit pyproject.toml, with hashes
	$(BIN)/uv pip compile requirements/bootstrap.in -o requirements/bootstrap.txt $(LOCK)
	$(BIN)/uv pip compile pyproject.toml --extra dev -o requirements/dev.txt $(LOCK)

matrix: setup  ## test on other versions of Python, PostgreSQL, Kafka and Dagster, CELLS="kafka python-3.14"
	@$(BIN)/python -m scripts.matrix $(CELLS)

clean:  ## stop the servers, delete their data and the virtual environment
	@if [ -x $(BIN)/harvest ]; then $(BIN)/harvest dev reset --yes; fi
	@rm -rf .venv .harvest

LOCK := --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q
