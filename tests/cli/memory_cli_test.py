#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What builds and engines take of the host's memory, against the size of the weights."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve()
LATHE = BUILD / "bin/lathe"
# Starts the program and tells the most memory that it held: that of this process's own children would be mixed.
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
sys.exit(done.stderr) if done.returncode else print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)
"""


def convolutions(path, channels, count):
    """Each convolution is followed by a batch normalization, which is folded into its weights. Returns their bytes."""
    random = np.random.default_rng(1)
    nodes, weights = [], []
    for i in range(count):
        kernel = random.standard_normal((channels, channels, 1, 1), np.float32) / channels**0.5
        weights.append(numpy_helper.from_array(kernel, f"kernel{i}"))
        for part in ("scale", "bias", "mean", "var"):
            weights.append(numpy_helper.from_array(random.uniform(0.5, 1, channels).astype(np.float32), f"{part}{i}"))
        nodes.append(helper.make_node("Conv", [f"x{i}", f"kernel{i}"], [f"c{i}"]))
        nodes.append(helper.make_node("BatchNormalization",
                                      [f"c{i}", f"scale{i}", f"bias{i}", f"mean{i}", f"var{i}"], [f"n{i}"]))
        nodes.append(helper.make_node("Relu", [f"n{i}"], [f"x{i + 1}"]))
    shape = [1, channels, 4, 4]
    graph = helper.make_graph(nodes, "convolutions", [helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(f"x{count}", TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return sum(len(tensor.raw_data) for tensor in weights)


class HostMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.small, cls.large = (pathlib.Path(cls.folder.name) / f"{name}.onnx" for name in ("small", "large"))
        convolutions(cls.small, 8, 2)
        cls.weights = convolutions(cls.large, 1024, 16)

    def peak(self, *arguments):
        emulated = {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                    "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CACHE_DIR": self.folder.name}
        done = subprocess.run([sys.executable, "-c", PEAK, str(LATHE), *map(str, arguments)], capture_output=True,
                              text=True, env={**os.environ, **emulated})
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def ratio(self, arguments):
        """What the large network takes beyond the small one, in sizes of its weights."""
        small, large = (self.peak(*arguments(model)) for model in (self.small, self.large))
        print(f"{' '.join(map(str, arguments('model')[:-1]))}: {(large - small) / self.weights:.2f} x {self.weights / 1e6:.0f} MB")
        return (large - small) / self.weights

    def build(self, target, budget):
        return lambda model: ("build", model, "-o", f"{self.folder.name}/{target}.engine", f"--target={target}",
                              f"--buildBudget={budget}")

    # S100, S101.
    def test_builds(self):
        for target in ("cpu", "cuda"):
            with self.subTest(target):
                self.assertLessEqual(self.ratio(self.build(target, 0)), 2.2)

    # S103: an engine is looked at where it lies. It is mapped twice, by what runs it and by what describes it.
    def test_inspection(self):
        for name in ("small", "large"):
            self.peak("build", getattr(self, name), "-o", f"{self.folder.name}/{name}.engine", "--target=cpu", "--buildBudget=0")
        self.assertLessEqual(self.ratio(lambda model: ("inspect", pathlib.Path(model).with_suffix(".engine"))), 2.2)

    def test_builds_that_measure(self):
        """What is measured is allocated besides: a few of the largest layer's weights."""
        self.assertLessEqual(self.ratio(self.build("cpu", 1)), 2.2 + 8 / 16)


if __name__ == "__main__":
    unittest.main()
