# Every target sets up what it needs on a machine that has Rust, a C compiler and Python 3.10 or newer, and does it
# once: a stamp under .venv/.stamps names the content it was made from, so a second run goes straight to the work.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps

# The build profile of the extension that the tests import.
TEST_PROFILE ?= dev
# More arguments for the tests: make test PYTEST_ARGS="-k shell"
PYTEST_ARGS ?=
NEXTEST_ARGS ?=
BENCH_ARGS ?=
DEMO_ARGS ?=

# Our own environment, whatever is active in the shell that calls make: maturin refuses two active environments, and
# another interpreter in PYO3_PYTHON would make cargo build the bindings again.
unexport CONDA_PREFIX PYTHONHOME PYTHONPATH
export VIRTUAL_ENV := $(VENV)
export PYO3_PYTHON := $(BIN)/python
export PATH := $(BIN):$(PATH)

# $(call content,PATHS): a checksum over the names and contents of all files below PATHS.
content = $(shell find $(1) -type f ! -path '*/__pycache__/*' 2>/dev/null | LC_ALL=C sort | xargs cksum | cksum | tr ' \t' '--')

PYTHON_PACKAGES = $(call content,pyproject.toml)
EXTENSION_SOURCES = $(call content,Cargo.toml Cargo.lock pyproject.toml src)

# $(call build_extension,PROFILE): builds the extension into the source tree, unless exactly this build is there. The
# package itself (its commands and run-time dependencies) is installed the first time, and when pyproject.toml changes.
define build_extension
	@key="$(1) $(EXTENSION_SOURCES)"; stamp="$(STAMPS)/extension"; \
	if [ "$$(cat "$$stamp" 2>/dev/null)" = "$$key" ] && ls python/hookwright/_native*.so >/dev/null 2>&1; then \
		echo "extension: up to date ($(1))"; \
	else \
		installed="$(STAMPS)/installed"; skip=; rm -f "$$stamp"; \
		[ "$$(cat "$$installed" 2>/dev/null)" != "$(PYTHON_PACKAGES)" ] || skip=--skip-install; \
		"$(BIN)/maturin" develop $$skip --profile $(1) && \
		echo "$(PYTHON_PACKAGES)" > "$$installed" && echo "$$key" > "$$stamp"; \
	fi
endef

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# The virtual environment with the packages of development in it. A broken one (its interpreter moved) is made anew.
# The pip that comes with Python 3.11 does not read dependency groups, which both we and maturin use.
.PHONY: environment
environment:
	@stamp="$(STAMPS)/packages"; key="$(PYTHON_PACKAGES)"; \
	if [ "$$(cat "$$stamp" 2>/dev/null)" = "$$key" ] && "$(BIN)/python" -c '' 2>/dev/null; then exit 0; fi; \
	if ! "$(BIN)/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
		python=$$(PATH="$${PATH#$(BIN):}" PYTHON="$(PYTHON)" sh scripts/find_python.sh) || exit 1; \
		echo "environment: making .venv with $$python"; \
		rm -rf "$(VENV)" && "$$python" -m venv "$(VENV)" || exit 1; \
	fi; \
	mkdir -p "$(STAMPS)" && rm -f "$$stamp" && \
	"$(BIN)/python" -m pip install --disable-pip-version-check 'pip>=25.1' && \
	"$(BIN)/python" -m pip install --disable-pip-version-check --group dev && \
	echo "$$key" > "$$stamp"

.PHONY: demo
demo: environment ## Run a guarded agent on a copy of this repository
	$(call build_extension,$(TEST_PROFILE))
	@$(BIN)/python -m hookwright demo $(DEMO_ARGS)

.PHONY: test
test: environment ## Run the tests of the core, of its documentation, and of the Python package
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --no-default-features $(NEXTEST_ARGS); \
	else \
		echo "note: cargo-nextest is not installed; using cargo test"; \
		cargo test --no-default-features --lib --bins --tests; \
	fi
	cargo test --doc --no-default-features
	$(call build_extension,$(TEST_PROFILE))
	$(BIN)/python -m pytest -m 'slow or not slow' $(PYTEST_ARGS)

.PHONY: soundness
soundness: ## Run 20,000 commands that the shell gate calls read-only, and look whether anything changed
	cargo test --no-default-features --test gate_soundness -- --include-ignored --nocapture

.PHONY: e2e
e2e: environment ## Talk to a real language model on this machine (builds its server: some minutes)
	$(call build_extension,$(TEST_PROFILE))
	"$(BIN)/python" -m pip install --disable-pip-version-check --group e2e
	$(BIN)/python scripts/e2e.py

.PHONY: lint
lint: environment ## Check formatting, clippy, ruff, types and stubs
	cargo fmt --check
	cargo clippy --all-targets --no-default-features -- -D warnings
	cargo clippy --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(call build_extension,$(TEST_PROFILE))
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --allowlist scripts/stubtest.txt hookwright._native

.PHONY: bench
bench: environment ## Run the benchmarks beside their peers and print one table
	@stamp="$(STAMPS)/bench"; key="$(PYTHON_PACKAGES)"; \
	[ "$$(cat "$$stamp" 2>/dev/null)" = "$$key" ] || { \
		"$(BIN)/python" -m pip install --disable-pip-version-check --group bench && echo "$$key" > "$$stamp"; }
	$(call build_extension,dev-release)
	$(BIN)/python -m benches.python $(BENCH_ARGS)

.PHONY: wheel
wheel: environment ## Build the wheel into dist/
	rm -rf dist
	$(BIN)/maturin build --release --out dist
	@ls -l dist

.PHONY: clean
clean: ## Remove everything that the other targets make
	rm -rf target dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f python/hookwright/_native*.so
	find python tests examples benches scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
