# The commands of README.md and CONTRIBUTING.md.
SHELL := /bin/bash
BUILD ?= build
JOBS ?= 2
PREFIX ?=
TARGET ?=
ROOM ?=
ifneq ($(PREFIX),)
PREFIX_FLAGS := -DCMAKE_PREFIX_PATH=$(PREFIX) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DLOCKSTEP_TESTS=OFF
endif
PARTS ?=
.PHONY: help deps build install wheel site planner-page quickstart check test test-long test-all test-gpu unit format tidy clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | expand -t 14

quickstart: ## install, build, make a dataset, train on 2 ranks, evaluate, predict, report
	@scripts/deps.sh build torch
	@$(MAKE) --no-print-directory build BUILD=$(BUILD)
	@scripts/quickstart.sh $(BUILD)

deps: ## install what building needs (Debian packages, libtorch)
	@scripts/deps.sh build torch

build: ## build the program; installs nothing; TARGET=test_model builds that; PREFIX=DIR also installs there
	@scripts/check_tools.sh
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja $(PREFIX_FLAGS) $(CMAKE_FLAGS) > $(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }
	@grep -A2 'CMake Warning' $(BUILD)/configure.log | grep -vE '^--|CMake Warning|^$$' | sed 's/^ */note: /' || true
	@ninja -C $(BUILD) -j$(JOBS) $$(ninja --help 2>&1 | grep -q -- --quiet && echo --quiet) $(TARGET)
	@$(if $(PREFIX),cmake --install $(BUILD) > /dev/null && echo "installed: $(PREFIX)/bin/lockstep")

install: ## build and install below PREFIX: program, libraries, man pages, completions, module files
	@$(if $(PREFIX),,echo "install: where? make install PREFIX=\$$HOME/lockstep" >&2; exit 2)
	@$(MAKE) --no-print-directory build BUILD=$(BUILD) TARGET="all manual"

wheel: ## a wheel for other machines, into build-wheel/dist (pip install . is for this one)
	@scripts/deps.sh python torch
	@scripts/wheel.sh . build-wheel/dist

site: ## the documentation as pages, into build/site; needs no network
	@scripts/deps.sh python
	@$(MAKE) --no-print-directory build BUILD=$(BUILD)
	@$$(for as in -n -rn; do unshare $$as true 2> /dev/null && echo unshare $$as && break; done) python3 scripts/site.py $(BUILD)/bin/lockstep $(BUILD)/site

planner-page: ## the planner as one web page, build/planner/planner.html (Emscripten; docs/planner-page.md)
	@scripts/deps.sh page
	@$(MAKE) --no-print-directory build BUILD=$(BUILD) TARGET=record_zoo
	@BUILD=$(BUILD) JOBS=$(JOBS) python3 planner/build.py

check: ## the rooms that you changed (or ROOM="model step"): tree, format, their tests, oracles and scenarios
	@BUILD=$(BUILD) JOBS=$(JOBS) python3 scripts/check.py $(ROOM)

test: ## everything a change must pass (the goal is 15 minutes cold, 17 to 46 were measured); PARTS="tree unit" runs these
	@scripts/test.sh $(PARTS)

test-long: ## sanitizers, Slurm, longer fuzzing; time-boxed (at most 50 minutes): the parts take turns
	@scripts/test_long.sh $(PARTS)

test-all: ## hours: all of test-long, learning to a target, seed studies, long faults; rows in results/test_all.json
	@python3 scripts/test_all.py $(PARTS)

test-gpu: ## what only a GPU shows: our kernels against fp64, the step's CUDA graph, NCCL (on a machine with a GPU and nvcc)
	@$(MAKE) --no-print-directory build BUILD=$(BUILD) TARGET="lockstep_kernels lockstep_cuda test_nccl"
	@$(BUILD)/bin/test_nccl

unit: ## the unit tests alone
	@scripts/test.sh unit

format: ## format every source, new ones too
	git ls-files -z -co --exclude-standard '*.h' '*.cpp' | xargs -0 clang-format-14 -i

tidy: ## clang-tidy on what changed
	@python3 scripts/tidy.py

clean: ## remove the build folders
	rm -rf build build-*
