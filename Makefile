# `make` alone lists the commands. Each does all set-up that it needs by itself: Python 3.11 or newer
# is enough to start with (a Java is found, or installed where that is possible).

PYTHON_IN_VENV := .venv/bin/python
# Tests that start Spark or the whole program; all other tests need no JVM.
NEEDS_JAVA := $(wildcard tests/spark tests/system)
# A prefix for commands that start Spark. The assignment on its own makes a missing Java stop the recipe.
WITH_JAVA = home="$$(sh scripts/java.sh)" && JAVA_HOME="$$home"

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench format proto lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

setup: .venv/installed ## make .venv with the locked dependencies and this project

demo: .venv/installed ## a small shop: data streams in, views stay fresh
	@$(WITH_JAVA) $(PYTHON_IN_VENV) examples/shop/demo.py

test: check ## check, then all tests that need Spark
	$(WITH_JAVA) $(PYTHON_IN_VENV) -m pytest $(NEEDS_JAVA)

check: .venv/installed ## lint, types, who imports whom, tests without Spark; under a minute
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	$(PYTHON_IN_VENV) -m mypy --strict src
	.venv/bin/lint-imports
	$(PYTHON_IN_VENV) -m pytest $(NEEDS_JAVA:%=--ignore=%)

bench: .venv/installed ## run every benchmark
	@for file in $(wildcard bench/[!_]*.py bench/papers/[!_]*.py); do \
		echo "== $$file"; $(WITH_JAVA) $(PYTHON_IN_VENV) "$$file" || exit 1; \
	done

format: .venv/installed ## format the code and mend what ruff can mend
	.venv/bin/ruff check --fix-only
	.venv/bin/ruff format

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
