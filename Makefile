# The commands of README.md and CONTRIBUTING.md. `make help` lists them.
SHELL := /bin/bash
BUILD ?= build
JOBS ?= 2
.PHONY: help deps build quickstart test test-long unit format clean

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

build: ## configure and build into ./build
	cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	ninja -C $(BUILD) -j$(JOBS)

unit: build ## the unit tests
	ctest --test-dir $(BUILD) -L unit --output-on-failure

format: ## format every source file
	git ls-files -co --exclude-standard '*.h' '*.cpp' | xargs clang-format-14 -i
