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


def convolutions(path, channels, count, side):
    """Each convolution is followed by a batch normalization, which is folded into its weights. Returns their bytes."""
    random = np.random.default_rng(1)
    nodes, weights = [], []
    for i in range(count):
        kernel = random.standard_normal((channels, channels, side, side), np.float32) / channels**0.5 / side
        weights.append(numpy_helper.from_array(kernel, f"kernel{i}"))
        for part in ("scale", "bias", "mean", "var"):
            weights.append(numpy_helper.from_array(random.uniform(0.5, 1, channels).astype(np.float32), f"{part}{i}"))
        nodes.append(helper.make_node("Conv", [f"x{i}", f"kernel{i}"], [f"c{i}"], pads=[side // 2] * 4))
        nodes.append(helper.make_node("BatchNormalization",
                                      [f"c{i}", f"scale{i}", f"bias{i}", f"mean{i}", f"var{i}"], [f"n{i}"]))
        nodes.append(helper.make_node("Relu", [f"n{i}"], [f"x{i + 1}"]))
    shape = [1, channels, 8, 8]
    graph = helper.make_graph(nodes, "convolutions", [helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(f"x{count}", TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return sum(len(tensor.raw_data) for tensor in weights)


class HostMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        # Those of 3 x 3 run by Winograd's method on CPUs, for which weights become four times as large.
        cls.weights = {}
        for name, channels, count, side in (("small1", 8, 2, 1), ("large1", 1024, 16, 1), ("small3", 8, 2, 3),
                                            ("large3", 512, 8, 3)):
            cls.weights[name] = convolutions(cls.path(f"{name}.onnx"), channels, count, side)

    @classmethod
    def path(cls, name):
        return pathlib.Path(cls.folder.name) / name

    def peak(self, *arguments):
        emulated = {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                    "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CACHE_DIR": self.folder.name}
        done = subprocess.run([sys.executable, "-c", PEAK, str(LATHE), *map(str, arguments)], capture_output=True,
                              text=True, env={**os.environ, **emulated})
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def ratio(self, arguments, side=1):
        """What the large network takes beyond the small one, in sizes of its weights."""
        small, large = (self.peak(*arguments(f"{size}{side}")) for size in ("small", "large"))
        weights = self.weights[f"large{side}"]
        print(f"{' '.join(map(str, arguments('model')))}: {(large - small) / weights:.2f} x {weights / 1e6:.0f} MB of {side} x {side}")
        return (large - small) / weights

    def build(self, target, budget):
        return lambda name: ("build", self.path(f"{name}.onnx"), "-o", self.path(f"{name}.{target}.engine"),
                             f"--target={target}", f"--buildBudget={budget}")

    # S100, S101.
    def test_builds(self):
        for target in ("cpu", "cuda"):
            for side in (1, 3):
                with self.subTest(target=target, side=side):
                    self.assertLessEqual(self.ratio(self.build(target, 0), side), 2.2)

    # S105: also where kernels transform weights, which they do when engines are loaded.
    def test_plans(self):
        self.peak(*self.build("cpu", 0)("large3"))
        self.assertLessEqual(self.path("large3.cpu.engine").stat().st_size, 1.1 * self.weights["large3"])

    # S103: an engine is looked at where it lies. It is mapped twice, by what runs it and by what describes it.
    def test_inspection(self):
        for side in (1, 3):
            for size in ("small", "large"):
                self.peak(*self.build("cpu", 0)(f"{size}{side}"))
            with self.subTest(side=side):
                self.assertLessEqual(self.ratio(lambda name: ("inspect", self.path(f"{name}.cpu.engine")), side), 2.2)

    def test_builds_that_measure(self):
        """While candidates are measured, weights are there once: what the folded ones were made of is given back."""
        for side in (1, 3):
            with self.subTest(side=side):
                self.assertLessEqual(self.ratio(self.build("cpu", 5), side), 2.2)


if __name__ == "__main__":
    unittest.main()
