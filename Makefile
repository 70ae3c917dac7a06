# `make` alone lists the commands. Each does all set-up that it needs by itself: Python 3.11 or newer
# is enough to start with (a Java is found, or installed where that is possible).

PYTHON_IN_VENV := .venv/bin/python
# Tests that start Spark or the whole program; all other tests need no JVM.
NEEDS_JAVA := tests/spark tests/system
ORACLE := tests/views/test_oracle.py
# Under its clock a second is an hour: nothing may run beside it.
CLOCK := tests/spark/test_workflows.py
# A prefix for commands that start Spark. The assignment on its own makes a missing Java stop the recipe.
WITH_JAVA = home="$$(sh scripts/java.sh)" && JAVA_HOME="$$home"

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint pure oracle spark system clock bench format docs reference proto lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

setup: .venv/installed ## make .venv with the locked dependencies and this project

demo: .venv/installed ## a small shop: data streams in, views stay fresh
	@$(WITH_JAVA) $(PYTHON_IN_VENV) examples/shop/demo.py

# The parts run two at a time (scripts/beside.py). What they would otherwise look for, or install, at
# the same time comes first: a Java, and the jars of Kafka and S3 (tests say so if these can't be had).
test: .venv/installed ## check, and all tests that need Spark
	@$(WITH_JAVA) && export JAVA_HOME && \
		{ for jars in kafka s3 broker; do sh scripts/jars.sh $$jars >/dev/null || true; done; } && \
		$(PYTHON_IN_VENV) scripts/beside.py system lint pure oracle spark && \
		$(PYTHON_IN_VENV) scripts/beside.py clock

check: .venv/installed ## lint, types, who imports whom, tests without Spark
	@$(PYTHON_IN_VENV) scripts/beside.py pure oracle lint

lint: .venv/installed
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	$(PYTHON_IN_VENV) -m mypy --strict src
	.venv/bin/lint-imports

# Random queries have as many processes as there are cores; all other tests without Spark have one.
pure: .venv/installed
	$(PYTHON_IN_VENV) -m pytest $(NEEDS_JAVA:%=--ignore=%) --ignore=$(ORACLE)

oracle: .venv/installed
	$(PYTHON_IN_VENV) -m pytest $(ORACLE)

spark: .venv/installed
	$(WITH_JAVA) $(PYTHON_IN_VENV) -m pytest tests/spark --ignore=$(CLOCK)

system: .venv/installed
	$(WITH_JAVA) $(PYTHON_IN_VENV) -m pytest tests/system

clock: .venv/installed
	$(WITH_JAVA) $(PYTHON_IN_VENV) -m pytest $(CLOCK)

bench: .venv/installed ## run every benchmark
	@for file in $(wildcard bench/[!_]*.py bench/papers/[!_]*.py); do \
		echo "== $$file"; $(WITH_JAVA) $(PYTHON_IN_VENV) "$$file" || exit 1; \
	done

format: .venv/installed ## format the code and mend what ruff can mend
	.venv/bin/ruff check --fix-only
	.venv/bin/ruff format

docs: .venv/installed ## the documentation as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(PYTHON_IN_VENV) -m mkdocs build --strict --quiet && echo "build/site/index.html"

reference: .venv/installed ## write docs/reference from the code
	$(PYTHON_IN_VENV) scripts/reference.py

proto: .venv/installed ## make the code of what nodes say to each other, after a change of cluster.proto
	cd src && ../$(PYTHON_IN_VENV) -m grpc_tools.protoc -I. --python_out=. --pyi_out=. springhouse/cluster/cluster.proto

lock: .venv/installed ## write requirements.lock after a change of pyproject.toml; UPGRADE=1 for newer versions
	.venv/bin/uv pip compile -q --universal --generate-hashes --no-emit-index-url --all-extras \
		--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) pyproject.toml -o requirements.lock

clean: ## remove .venv and everything else that the commands made
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf build dist src/*.egg-info spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: requirements.lock pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" sh scripts/setup.sh
