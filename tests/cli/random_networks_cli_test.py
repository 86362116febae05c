#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Engines of random networks against their plain evaluation, on the CPU and on a GPU that is emulated.

LATHE_RANDOM_NETWORKS=FIRST:LAST chooses other seeds, as many as there is time for."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/models"))
import random_network  # noqa: E402

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
SEEDS = os.environ.get("LATHE_RANDOM_NETWORKS")
EMULATED = {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so")}


class RandomNetworks(unittest.TestCase):
    def compare(self, target, seeds, **variables):
        first, last = map(int, SEEDS.split(":")) if SEEDS else seeds
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder, "model.onnx")
            for seed in range(first, last):
                sizes = random_network.save(seed, model)
                # Sums of many products, of which some cancel: relative to what is left of them this is wide.
                result = subprocess.run([BUILD / "bin/lathe", "compare", model, f"--shapes={sizes}", f"--target={target}",
                                         "--buildBudget=0", "--noTF32", "--rtol=1e-3", "--atol=1e-3"], capture_output=True,
                                        text=True, env=os.environ | {"LATHE_CACHE_DIR": folder} | variables)
                if result.returncode != 0:
                    network = onnx.printer.to_text(onnx.load(model).graph)
                    self.fail(f"seed {seed}, {sizes}\n{network}\n{result.stdout}{result.stderr}")

    def test_on_the_cpu(self):
        self.compare("cpu", (0, 300))

    def test_on_an_emulated_gpu(self):
        self.compare("cuda", (300, 340), **EMULATED)


if __name__ == "__main__":
    unittest.main()
