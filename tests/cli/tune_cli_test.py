#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lathe tune: what is measured on one machine decides what is built on another."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
FAKE = BUILD / "fake_cuda"
GPU = {"LATHE_CUDA_DRIVER": FAKE / "libfake_cuda_driver.so", "LATHE_NVRTC": FAKE / "libnvrtc.so"}
NO_GPU = {"LATHE_CUDA_DRIVER": "/nowhere/libcuda.so", "LATHE_NVRTC": GPU["LATHE_NVRTC"]}


def write_network(path):
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array(random.standard_normal(dims, np.float32), name)
               for name, dims in (("w", (8, 16)), ("v", (16, 4)))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("MatMul", ["r", "v"], ["y"])]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


def renamed(cache):
    """The same file for another device, whose last 32 bytes are BLAKE2b of the rest, as they have to be."""
    body = cache[:-32].replace(b"Fake H200", b"Fake H201")
    return body + hashlib.blake2b(body, digest_size=32).digest()


class Tune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model, cls.measured = cls.folder / "model.onnx", cls.folder / "measured.cache"
        write_network(cls.model)
        cls.told = cls.lathe("tune", cls.model, f"--timingCacheFile={cls.measured}", "--target=cuda",
                             "--builderOptimizationLevel=1", **GPU)

    def setUp(self):
        self.cache = self.folder / f"{self.id()}.cache"
        shutil.copy(self.measured, self.cache)

    @staticmethod
    def lathe(*words, status=0, **variables):
        result = subprocess.run([str(word) for word in (BUILD / "bin/lathe", *words)], capture_output=True, text=True,
                                env=os.environ | {key: str(value) for key, value in variables.items()})
        if result.returncode != status:
            raise AssertionError(f"{words}: {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def tune(self, *options, cache=None, **variables):
        return self.lathe("tune", self.model, f"--timingCacheFile={cache or self.cache}", "--builderOptimizationLevel=1",
                          *options, **variables)

    def engine(self, *options, **variables):
        """All that is told of an engine that is built so: its sections' digests, steps, tactics and times among it."""
        self.lathe("build", self.model, "-o", self.folder / "engine", "--builderOptimizationLevel=1", *options, **variables)
        self.lathe("inspect", self.folder / "engine", "--json", self.folder / "engine.json", **NO_GPU)
        return json.loads((self.folder / "engine.json").read_text())

    def check_elsewhere(self):
        there = self.engine("--target=cuda", f"--timingCacheFile={self.cache}", **GPU)
        elsewhere = self.engine("--target=sm_90", f"--timingCacheFile={self.cache}", **NO_GPU)
        self.assertEqual(elsewhere, there)
        self.assertIn("Fake H200", elsewhere["tuned_on"])
        self.assertTrue(all(layer["Milliseconds"] > 0 for layer in elsewhere["layers"]))
        guessed = self.engine("--target=sm_90", **NO_GPU)
        self.assertEqual(guessed["tuned_on"], "cuda-sm_90")
        self.assertNotEqual(guessed["layers"], there["layers"])

    def test_builds_elsewhere_are_those_of_the_machine(self):
        self.assertIn("measured.cache: 2 measured for cuda-sm_90, 0 known before", self.told)
        self.assertIn("0 measured for cuda-sm_90, 2 known before", self.tune("--target=cuda", **GPU))
        self.check_elsewhere()

    def test_caches_are_merged(self):
        other = self.folder / "cpu.cache"
        self.assertRegex(self.tune("--target=cpu", cache=other, **NO_GPU), "[1-9] measured for cpu-.*, 0 known before")
        self.assertRegex(self.tune("--target=cpu", f"--merge={other}", **NO_GPU), "0 measured for cpu-.*, [1-9] known before")
        self.check_elsewhere()

    def test_of_several_devices_none_is_taken(self):
        other = self.folder / "other.cache"
        other.write_bytes(renamed(self.cache.read_bytes()))
        self.tune("--target=cuda", f"--merge={other}", **GPU)
        told = self.lathe("build", self.model, "-o", self.folder / "engine", "--target=sm_90",
                          f"--timingCacheFile={self.cache}", **NO_GPU)
        self.assertIn("the timing cache has no effect: it was measured on several devices of 'cuda-sm_90'", told)
        self.assertIn("Fake H201", told)

    def test_what_is_refused(self):
        empty = self.folder / "empty.cache"
        self.assertIn("nothing was measured", self.tune("--target=sm_90", cache=empty, status=1, **NO_GPU))
        self.assertIn("nothing was measured", self.tune("--target=cuda", "--buildBudget=0", cache=empty, status=1, **GPU))
        broken = self.folder / "broken"
        broken.write_text("no cache")
        self.assertIn("is not a Lathe timing cache", self.tune("--target=cuda", f"--merge={broken}", status=1, **GPU))
        self.assertIn("--timingCacheFile is required", self.lathe("tune", self.model, status=2))


if __name__ == "__main__":
    unittest.main()
