#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels that leave out zeros of 2:4 sparse weights: when builds have them, what they say of it, and pruned weights."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
FAKES = {"LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CUDA_DRIVER": "/nowhere/libcuda.so"}
SIZE = 1024


def model(path):
    """Two products, the weights of the first of which are 2:4 sparse."""
    random = np.random.default_rng(1)
    sparse, dense = (random.normal(size=(SIZE, SIZE)).astype(np.float32) for _ in range(2))
    sparse.reshape(-1, 4, SIZE)[:, [0, 2]] = 0
    nodes = [helper.make_node("MatMul", ["x", "sparse"], ["h"], "first"), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("MatMul", ["r", "dense"], ["y"], "second")]
    value = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [SIZE, SIZE])
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")],
                              [numpy_helper.from_array(sparse, "sparse"), numpy_helper.from_array(dense, "dense")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


class Sparsity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        model(cls.folder / "model.onnx")

    def run_program(self, program, *words, **variables):
        done = subprocess.run([str(BUILD / "bin" / program), *(str(word) for word in words)], capture_output=True, text=True,
                              env=os.environ | FAKES | variables)
        return done.returncode, done.stdout + done.stderr

    def build(self, target, *options):
        """What is said of sparsity, and the tactics of the engine's steps."""
        code, said = self.run_program("lathe", "build", self.folder / "model.onnx", "-o", self.folder / "engine", "--buildBudget=0",
                                      "--fp16", "--verbose", f"--target={target}", *options)
        self.assertEqual(code, 0, said)
        code, shown = self.run_program("lathe", "inspect", self.folder / "engine", "--json", self.folder / "layers.json")
        self.assertEqual(code, 0, shown)
        layers = json.loads((self.folder / "layers.json").read_text())["layers"]
        return ([line for line in said.splitlines() if re.search("spars", line, re.I) and "timing" not in line],
                [layer["TacticName"] for layer in layers], shown)

    def test_sparse_weights_are_found(self):
        lines, tactics, shown = self.build("sm_80", "--sparsity=enable")
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("(Sparsity) Found 1 layer(s) eligible to use sparse tactics: first", lines[0])
        self.assertIn("(Sparsity) Chose 1 layer(s) using sparse tactics: first", lines[1])
        self.assertEqual([tactic.split(":")[0] for tactic in tactics if "gemm" in tactic], ["gemm_sparse", "gemm"])
        self.assertIn("gemm_sparse: mma.sp", shown)

    def test_only_where_it_is_asked_for(self):
        for options in ((), ("--sparsity=disable",)):
            lines, tactics, _ = self.build("sm_80", *options)
            self.assertEqual(lines, [])
            self.assertFalse([tactic for tactic in tactics if "sparse" in tactic])

    def test_devices_without_such_units(self):
        for target, reason in (("sm_75", "sm_75 (Turing) has compute capability 7.5, and products of 2:4 sparse weights need 8.0"),
                               ("cpu-x86_64", "no kernel of this device leaves out zeros of weights")):
            with self.subTest(target):
                lines, tactics, _ = self.build(target, "--sparsity=enable")
                line, = lines
                self.assertIn(f"BuilderFlag::kSPARSE_WEIGHTS has no effect: {reason}", line)
                self.assertFalse([tactic for tactic in tactics if "sparse" in tactic])

    def trtexec(self, *options):
        return self.run_program("trtexec", f"--onnx={self.folder}/model.onnx", "--skipInference", "--fp16", "--verbose",
                                "--builderOptimizationLevel=0", *options, LATHE_TARGET="cuda",
                                LATHE_CUDA_DRIVER=str(BUILD / "fake_cuda/libfake_cuda_driver.so"))

    def test_weights_that_can_be_replaced_are_none(self):
        code, said = self.trtexec("--sparsity=enable", "--refit")
        self.assertEqual(code, 0, said)
        self.assertIn("(Sparsity) Found 0 layer(s)", said)
        code, said = self.trtexec("--sparsity=force", "--refit")
        self.assertNotEqual(code, 0)
        self.assertIn("setForcedSparsity() prunes weights, and flags of refitting", said)

    def test_force_prunes(self):
        code, said = self.trtexec("--sparsity=force")
        self.assertEqual(code, 0, said)
        self.assertIn("Sparsity: Forced", said)
        self.assertIn("setForcedSparsity() has pruned the weights of 1 layer(s)", said)  # those of the other are sparse
        self.assertRegex(said, r"\(Sparsity\) Found 2 layer\(s\) eligible to use sparse tactics: first.*, second")

    def test_pruned_weights_are_the_largest(self):
        """On a CPU, which computes with what is left."""
        x = np.eye(SIZE, dtype=np.float32)
        np.save(self.folder / "x.npy", x)
        weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(self.folder / "model.onnx").graph.initializer}
        code, said = self.run_program("lathe", "build", self.folder / "model.onnx", "-o", self.folder / "pruned", "--buildBudget=0",
                                      "--target=cpu", "--sparsity=force")
        self.assertEqual(code, 0, said)
        self.assertIn("setForcedSparsity() has pruned", said)
        code, said = self.run_program("lathe", "run", self.folder / "pruned", f"--loadInputs=x:{self.folder}/x.npy", "--exportOutput",
                                      self.folder / "out")
        self.assertEqual(code, 0, said)
        groups = weights["dense"].reshape(-1, 4, SIZE).copy()
        smallest = np.argsort(np.abs(groups), axis=1)[:, :2]
        np.put_along_axis(groups, smallest, 0, axis=1)
        expected = np.maximum(weights["sparse"], 0) @ groups.reshape(SIZE, SIZE)
        np.testing.assert_allclose(np.load(self.folder / "out/y.npy"), expected, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    unittest.main()
