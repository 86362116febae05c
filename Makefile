# SPDX-License-Identifier: Apache-2.0
# Every target does its own set-up on a fresh Debian 12 machine: system packages, Python environment, build.
PRESET ?= release
BUILD := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
JOBS ?= $(shell nproc)
DEVICE ?= cpu
PYTHON := .venv/bin/python
DATE := $(shell date +%F)

.PHONY: help format setup build test demo lint bench gpu-check test-exports clean
help:
	@echo "make demo    a trained network becomes an engine and answers on real input"
	@echo "             (DEVICE=cuda: on a GPU)"
	@echo "make test    builds and runs every test"
	@echo "make build   leaves build/bin/lathe and build/lib/liblathe.so"
	@echo "make lint    formatting (make format mends it), layers, file sizes, clang-tidy"
	@echo "make bench   speed and memory against ONNX Runtime"
	@echo "make test-exports    exports many architectures with PyTorch (installs it: 6 GB) and compares their engines with it;"
	@echo "                     DEVICES='cpu cuda' says where, LATHE_EXPORTS_PYTHON names a Python that has PyTorch already"
	@echo "make gpu-check   on a GPU: checks every kernel, times kernels and networks, prints tables"
	@echo "make clean   removes what was built (PRESET=debug|asan|tsan chooses another build)"

setup:
	@cmake/setup.sh build test

build: setup
	@cmake --preset $(PRESET) > /dev/null
	@cmake --build $(BUILD) --parallel $(JOBS)

test: build
	@$(PYTHON) tools/conformance_data.py
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

demo: build
	@$(PYTHON) tools/demo.py --device=$(DEVICE)

lint: build
	@cmake/setup.sh lint
	@cmake --build $(BUILD) --parallel $(JOBS) --target bench_networks bench_kernels
	@$(PYTHON) cmake/lint.py --build $(BUILD)

format:
	@git ls-files "*.h" "*.cpp" | xargs clang-format -i

gpu-check: build
	@$(PYTHON) tools/conformance_data.py
	@$(PYTHON) tools/gpu_check/gpu_check.py --build $(BUILD)

test-exports: DEVICES ?= cpu emulated
test-exports: build
	@[ -n "$(LATHE_EXPORTS_PYTHON)" ] || cmake/setup.sh build exports
	@$(or $(LATHE_EXPORTS_PYTHON),.cache/exports/bin/python) tools/exports/test_exports.py --build $(BUILD) --jobs $(JOBS) \
	  --devices $(DEVICES) --json bench/results/$(DATE)-exports.json --markdown bench/results/$(DATE)-exports.md

bench: build
	@$(PYTHON) bench/vs_onnxruntime.py

clean:
	rm -rf build build-* data/demo
