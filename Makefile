# SPDX-License-Identifier: Apache-2.0
# Every target does its own set-up on a fresh Debian 12 machine: system packages, Python environment, build.
PRESET ?= release
BUILD := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
KERNELS ?= all
JOBS ?= $(shell nproc)
DEVICE ?= cpu
PYTHON := .venv/bin/python
DATE := $(shell date +%F)

# What a user of Lathe needs; tests and developers' programs are built where they are run.
PROGRAMS := lathe_cli trtexec example_classify

.PHONY: help format packages python demo-python lint-tools test-data browser setup configure build everything test demo demo-text wheel lint bench gpu-check test-exports test-tensorflow test-optimum test-torch test-releases clean
help:
	@echo "make demo    a trained network becomes an engine and answers on real input"
	@echo "             (DEVICE=cuda: on a GPU)"
	@echo "make demo-text   a decoder is trained and tells a text, sentences are ranked by meaning (installs PyTorch: 6 GB)"
	@echo "make build   leaves build/bin/lathe and build/lib/liblathe.so, and the example; minutes"
	@echo "make test    builds the tests, too, and runs every one"
	@echo "make wheel   Python packages, in build/wheels"
	@echo "make lint    formatting (make format mends it), layers, sizes, boolean literals in calls, clang-tidy"
	@echo "make bench   speed and memory against ONNX Runtime"
	@echo "make test-exports    exports many architectures with PyTorch (installs it: 6 GB) and compares their engines with it;"
	@echo "                     DEVICES='cpu cuda' says where, LATHE_EXPORTS_PYTHON names a Python that has PyTorch already"
	@echo "make test-tensorflow  the same for TensorFlow's, by tf2onnx (installs both: 1.5 GB)"
	@echo "make test-optimum  the same for Optimum's, also after ONNX Runtime's optimiser (installs both, and PyTorch: 5 GB)"
	@echo "make test-torch  compiles many architectures with torch.compile(backend=\"lathe\") and lathe.torch (installs PyTorch: 6 GB)"
	@echo "make test-releases   builds every release and runs its plans in all later ones; minutes for each"
	@echo "make gpu-check   on a GPU: checks every kernel, times kernels and networks, prints tables"
	@echo "make clean   removes what was built (PRESET=debug|asan|tsan chooses another build)"

packages:
	@cmake/setup.sh build test

python: packages
	@cmake/setup.sh python

demo-python: packages
	@cmake/setup.sh demo

lint-tools: python
	@cmake/setup.sh lint

test-data: python
	@$(PYTHON) tools/conformance_data.py

browser: packages
	@cmake/setup.sh browser

setup: packages python

configure: setup
	@cmake --preset $(PRESET) -DLATHE_CPU_KERNELS=all > /dev/null

build: packages
	@cmake --preset $(PRESET) $(addprefix -DLATHE_CPU_KERNELS=,$(KERNELS)) > /dev/null
	@cmake --build $(BUILD) --parallel $(JOBS) --target $(PROGRAMS)

everything: configure
	@cmake --build $(BUILD) --parallel $(JOBS)

# One more than there are processors, for some of the tests that run wait for something.
test: everything test-data browser
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $$(($(JOBS) + 1))

# In a new build folder the kernels of this CPU's level alone; `make build` and `make test` add the others.
demo:
	@$(MAKE) --no-print-directory --jobs 2 build KERNELS=$(if $(wildcard $(BUILD)/CMakeCache.txt),,native) $(if $(filter cpu,$(DEVICE)),demo-python,python)
	@LATHE_BUILD_DIR=$(BUILD) $(PYTHON) tools/demo.py --device=$(DEVICE)

wheel: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target python_package
	@$(PYTHON) tools/wheel.py --build $(BUILD) --output $(BUILD)/wheels

# PyTorch trains the decoder and is what the sentences are compared with.
demo-text: setup build
	@cmake/setup.sh build exports
	@cmake --build $(BUILD) --parallel $(JOBS) --target example_llm python_package
	@LATHE_BUILD_DIR=$(abspath $(BUILD)) .cache/exports/bin/python tools/demo_text.py --device=$(DEVICE)

lint: build lint-tools
	@$(PYTHON) cmake/lint.py --build $(BUILD)

format:
	@git ls-files "*.h" "*.cpp" | xargs clang-format -i

gpu-check: configure test-data
	@$(PYTHON) tools/gpu_check/gpu_check.py --build $(BUILD)

test-exports: everything
	@[ -n "$(LATHE_EXPORTS_PYTHON)" ] || cmake/setup.sh build exports
	@$(or $(LATHE_EXPORTS_PYTHON),.cache/exports/bin/python) tools/exports/test_exports.py --build $(BUILD) --jobs $(JOBS) \
	  $(if $(DEVICES),--devices $(DEVICES)) --json bench/results/$(DATE)-exports.json --markdown bench/results/$(DATE)-exports.md

test-tensorflow: everything
	@cmake/setup.sh build tensorflow
	@.cache/tensorflow/bin/python tools/exports/test_exports.py --framework tensorflow --build $(BUILD) --jobs $(JOBS) \
	  $(if $(DEVICES),--devices $(DEVICES)) --json bench/results/$(DATE)-tensorflow.json --markdown bench/results/$(DATE)-tensorflow.md

test-optimum: everything
	@cmake/setup.sh build optimum
	@.cache/optimum/bin/python tools/exports/test_exports.py --framework optimum --build $(BUILD) --jobs $(JOBS) \
	  $(if $(DEVICES),--devices $(DEVICES)) --json bench/results/$(DATE)-optimum.json --markdown bench/results/$(DATE)-optimum.md

test-torch: everything
	@[ -n "$(LATHE_EXPORTS_PYTHON)" ] || cmake/setup.sh build exports
	@LATHE_BUILD_DIR=$(abspath $(BUILD)) $(or $(LATHE_EXPORTS_PYTHON),.cache/exports/bin/python) tools/exports/test_torch.py

test-releases: everything
	@$(PYTHON) tests/compat/releases.py --build $(BUILD)

bench: setup build
	@$(PYTHON) bench/vs_onnxruntime.py

clean:
	rm -rf build build-* data/demo
