# Everything runs in .venv, which `make setup` makes; the other targets call it.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
BASE := .venv/.base
DEV := .venv/.dev
DOCS := .venv/.docs
KERNELS := .venv/.kernels

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev data bench figures train train-evidence pretrain lm docs test test-kills test-slow check audit dist release-check lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/; s/[$$][$$]/$$/g' | expand -t 16

setup: $(BASE)  ## the virtual environment with the base packages

setup-dev: $(DEV)  ## the same with everything that tests, training and benchmarks need

$(BASE): requirements/build.lock requirements/base.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=python3.x")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing the base packages into .venv …"
	@$(PIP) --require-hashes --no-deps -r requirements/build.lock -r requirements/base.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(BASE) requirements/dev.lock tools/install_torch.py
	@echo "installing torch and the packages for tests, training and benchmarks into .venv …"
	@$(BIN)/python tools/install_torch.py
	@$(PIP) --require-hashes --no-deps -r requirements/dev.lock
	@touch $@

$(DOCS): $(BASE) requirements/docs.lock
	@echo "installing the packages for the documentation into .venv …"
	@$(PIP) --require-hashes --no-deps -r requirements/docs.lock
	@touch $@

# Otherwise both processes of the tests would compile the same kernels at the same time.
$(KERNELS): $(DEV) $(shell grep -rlE '^@(compiled|entry|inlined|called)' cec*/ --include=*.py)
	@echo "compiling the kernels …"
	@$(BIN)/cecdata build sample --limit 1500 --out $@.tmp --copies 1 --recipe typed \
		--cosine 300 --mask --quality han --quality repeated --near-duplicates --split-sentences \
		--decontaminate cecdata/sample/cars.txt --overwrite >/dev/null
	@$(BIN)/cectrain correct --model channel --file cecdata/sample/cars.txt >/dev/null
	@$(BIN)/cecbench run --system copy --benchmark $@.tmp --scorer cherrant --mode nosimp >/dev/null
	@rm -r $@.tmp
	@touch $@

CORPUS ?= sample
data: OUT ?= out/data
data: $(BASE)  ## training pairs: CORPUS=… OUT=… COPIES=… SEED=… LIMIT=… WORKERS=…
	@$(BIN)/cecdata build "$(CORPUS)" --out "$(OUT)" $(if $(COPIES),--copies $(COPIES)) \
		$(if $(SEED),--seed $(SEED)) $(if $(LIMIT),--limit $(LIMIT)) \
		$(if $(WORKERS),--workers $(WORKERS)) $(FLAGS)
	@$(BIN)/cecdata report "$(OUT)"

train: DATA ?= out/typed
train: OUT ?= out/train
train: $(DEV)  ## a corrector: a warm start, then PPO, on pairs of the recipe typed: DATA=… OUT=… SEED=… FLAGS=…
	@test -e "$(DATA)/manifest.json" || \
		$(BIN)/cecdata build "$(CORPUS)" --recipe typed --out "$(DATA)"
	@$(BIN)/cectrain train "$(DATA)" --out "$(OUT)" $(if $(SEED),--seed $(SEED)) $(FLAGS)

train-evidence: DATA ?= out/data
train-evidence: OUT ?= out/evidence
train-evidence: $(DEV)  ## is PPO above its start, and above SFT of the same cost? three seeds
	@test -e "$(DATA)/manifest.json" || $(MAKE) --no-print-directory data OUT="$(DATA)"
	@$(BIN)/python -m experiments evidence "$(DATA)" --out "$(OUT)" --workers $(or $(WORKERS),2) $(FLAGS)

pretrain: OUT ?= out/pretrain
pretrain: $(DEV)  ## the built-in policy from nothing, hours: CORPUS=… (columns text, origin) OUT=…
	@$(BIN)/python -m experiments pretrain "$(CORPUS)" --out "$(OUT)" $(FLAGS)

lm: PACKAGE ?= libime-data-language-model
lm: OUT ?= out/input_method.ngram
lm: $(BASE)  ## the packaged n-grams of an input method (LGPL-2.1-or-later) anew, by Debian: OUT=…
	@rm -rf .venv/lm && mkdir -p .venv/lm
	@cd .venv/lm && apt-get download --quiet "$(PACKAGE)" && dpkg-deb --extract *.deb .
	@$(BIN)/python tools/ngram/kenlm_trie.py .venv/lm/usr/lib/*/libime/zh_CN.lm \
		--licence LGPL-2.1-or-later --out "$(OUT)"

bench: DATA ?= out/data
bench: MODEL ?= out/train/model
bench: OUT ?= out/bench
bench: $(DEV)  ## scores: DATA=… MODEL=… OUT=…, and the real sets in $$CECBENCH_DATA
	@test -e "$(DATA)/manifest.json" || $(MAKE) --no-print-directory data OUT="$(DATA)"
	@for set in "$(DATA)" $$($(BIN)/cecbench list | awk '$$4 == "found" {print $$1}'); do \
		for system in copy channel combined \
				$(if $(wildcard $(MODEL)/config.json),"policy:$(MODEL)"); do \
			$(BIN)/cecbench run --system "$$system" --benchmark "$$set" $(FLAGS) \
				--out "$(OUT)/runs/$$(echo "$$set/$$system" | tr / -)" || failed=1; \
		done; \
	done; \
	$(BIN)/cecbench report "$(OUT)/runs" --out "$(OUT)/report"; test -z "$$failed"

figures: RUNS ?= out/bench/runs
figures: OUT ?= out/figures
figures: $(DEV)  ## your runs beside the paper's numbers as SVG: RUNS="…" OUT=… FLAGS=…
	@$(BIN)/python -m experiments figures $(wildcard $(RUNS)) --out "$(OUT)" $(FLAGS)

docs: $(DOCS)  ## the documentation site, in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "site/index.html"

# Each process imports all tests, and many start programs: what was compiled before is kept.
test: $(KERNELS)  ## the test suite, a few minutes on two cores
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -m "not slow" --numprocesses=2 \
		--dist=loadfile --no-loadscope-reorder

test-kills: $(DEV)  ## builds whose workers, drivers and object store are killed at random
	@$(BIN)/python -m pytest -q -s -m slow \
		tests/cecdata/builds/test_engines.py tests/cecdata/builds/test_stores.py

test-slow: $(DEV)  ## the proofs over large inputs
	@$(BIN)/python -m pytest -q -m slow
	@$(BIN)/python -m pytest -q -m hypothesis --hypothesis-profile=thorough

check: $(DEV) docs  ## ruff, mypy --strict, import-linter, the documentation without a warning
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

audit: $(BASE)  ## known vulnerabilities of the pinned packages (asks pypi.org's database)
	@test -x .venv/audit/bin/pip-audit || { $(PYTHON) -m venv .venv/audit && \
		.venv/audit/bin/python -m pip install --quiet "pip-audit>=2.10,<3"; }
	@.venv/audit/bin/pip-audit --strict --no-deps --disable-pip \
		-r requirements/base.lock -r requirements/dev.lock

dist: $(DEV)  ## the wheel and the source archive, in dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist && ls dist

release-check: $(DEV)  ## what a release needs: versions, a clean tree, a wheel that works alone
	@$(BIN)/python tools/release_check.py

lock: $(DEV)  ## renew the lock files from pyproject.toml (needs uv in .venv: pip install uv)
	@sh tools/lock.sh

clean:  ## what the targets above made, .venv and out/ apart
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
