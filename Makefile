# The commands of README.md and CONTRIBUTING.md.
SHELL := /bin/bash
BUILD ?= build
JOBS ?= 2
PREFIX ?=
ifneq ($(PREFIX),)
PREFIX_FLAGS := -DCMAKE_PREFIX_PATH=$(PREFIX) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DLOCKSTEP_TESTS=OFF
endif
.PHONY: help deps build quickstart test test-long unit format tidy clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | expand -t 14

quickstart: ## install, build, make a dataset, train on 2 ranks, evaluate, predict, report
	@scripts/deps.sh build torch
	@$(MAKE) --no-print-directory build CMAKE_FLAGS="-DLOCKSTEP_TESTS=OFF" BUILD=$(BUILD)
	@scripts/quickstart.sh $(BUILD)

deps: ## install what building needs (Debian packages, libtorch)
	@scripts/deps.sh build torch

build: ## configure and build; never installs anything; PREFIX=DIR also installs there
	@scripts/check_tools.sh
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja $(PREFIX_FLAGS) $(CMAKE_FLAGS) > $(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }
	@grep -A2 'CMake Warning' $(BUILD)/configure.log | grep -vE '^--|CMake Warning|^$$' | sed 's/^ */note: /' || true
	@ninja -C $(BUILD) -j$(JOBS) $$(ninja --help 2>&1 | grep -q -- --quiet && echo --quiet)
	@$(if $(PREFIX),cmake --install $(BUILD) > /dev/null && echo "installed: $(PREFIX)/bin/lockstep")

test: ## everything a change must pass (at most 25 minutes cold)
	@scripts/test.sh $(PARTS)

test-long: ## sanitizers, Slurm, longer fuzzing; time-boxed (at most 50 minutes)
	@scripts/test_long.sh

unit: ## the unit tests alone
	@$(MAKE) --no-print-directory build CMAKE_FLAGS=-DLOCKSTEP_TESTS=ON
	ctest --test-dir $(BUILD) -L unit --output-on-failure --no-tests=error

format: ## format every source
	git ls-files -z -co --exclude-standard '*.h' '*.cpp' | xargs -0 clang-format-14 -i

tidy: ## clang-tidy on what changed
	@scripts/tidy.sh

clean: ## remove the build folders
	rm -rf build build-*
