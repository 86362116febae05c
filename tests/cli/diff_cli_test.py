#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lathe diff`: what differs between two engines, and the exit status that tells whether anything does."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")


def write_network(path, seed=1, hidden=16, activation="Relu", softmax=False):
    values = np.random.default_rng(seed)
    weights = [numpy_helper.from_array(values.normal(size=shape).astype(np.float32), name)
               for name, shape in (("w", (8, hidden)), ("v", (hidden, 4)))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="first"), helper.make_node(activation, ["h"], ["a"], name="act"),
             helper.make_node("MatMul", ["a", "v"], ["z" if softmax else "y"], name="second")]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["z"], ["y"], name="shares"))
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 4])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


class Diff(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.kept.name)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def lathe(self, *words, status=0):
        result = subprocess.run([str(word) for word in (LATHE, *words)], capture_output=True, text=True)
        self.assertEqual(result.returncode, status, f"{words}\n{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def engine(self, name, *options, target="cpu-x86_64-avx2", **network):
        write_network(self.folder / "net.onnx", **network)
        path = self.folder / f"{name}.engine"
        self.lathe("build", self.folder / "net.onnx", "-o", path, "--buildBudget=0", f"--target={target}", *options)
        return path

    def diff(self, a, b, status=1):
        report = self.folder / "diff.json"
        text = self.lathe("diff", a, b, "--json", report, status=status)
        told = json.loads(report.read_text())
        self.assertEqual(told["same"], status == 0)
        return text, told, {each["what"]: (each["a"], each["b"]) for each in told["differences"]}

    def test_same(self):
        text, told, whole = self.diff(self.engine("a"), self.engine("b"), status=0)
        self.assertIn("the engines are the same", text)
        self.assertEqual(whole, {})

    def test_target(self):
        text, told, whole = self.diff(self.engine("a"), self.engine("b", target="cpu-x86_64-avx512"))
        self.assertEqual(whole["target"], ("cpu-x86_64-avx2", "cpu-x86_64-avx512"))
        self.assertIn("predicted_milliseconds", whole)
        self.assertIn("device clock_mhz", whole)
        changed = {step["name"]: step["fields"] for step in told["steps"]["changed"]}
        self.assertTrue(all("predicted_milliseconds" in fields for fields in changed.values()), changed)
        self.assertEqual(len(changed), 2)
        self.assertIn("cpu-x86_64-avx512", text)

    def test_settings(self):
        _, _, whole = self.diff(self.engine("a"), self.engine("b", "--versionCompatible", "--excludeLeanRuntime"))
        self.assertEqual(whole["version_compatible"], (False, True))
        _, _, whole = self.diff(self.engine("a", "--threads=1"), self.engine("b", "--threads=2"))
        self.assertEqual(whole["threads"], (1, 2))

    def test_weights(self):
        _, told, whole = self.diff(self.engine("a"), self.engine("b", seed=2))
        self.assertEqual(len(told["weights"]["changed"]), 2)
        self.assertEqual(told["steps"]["changed"], [])
        self.assertEqual(whole, {})
        _, told, whole = self.diff(self.engine("a"), self.engine("b", hidden=32))
        self.assertLess(*whole["weights_bytes"])

    def test_steps(self):
        text, told, whole = self.diff(self.engine("a"), self.engine("b", softmax=True))
        self.assertEqual([step["name"] for step in told["steps"]["added"]], ["shares"])
        self.assertEqual(told["steps"]["removed"], [])
        self.assertEqual(whole["steps"], (2, 3))
        self.assertIn("+ shares: softmax", text)
        _, told, _ = self.diff(self.engine("a"), self.engine("b", activation="Tanh"))
        fields = [step["fields"] for step in told["steps"]["changed"]]
        self.assertTrue(any("tanh" in field.get("program", {}).get("b", "") for field in fields), told["steps"])

    def test_errors(self):
        a = self.engine("a")
        self.assertIn("cannot", self.lathe("diff", a, self.folder / "none.engine", status=2))
        self.assertIn("build the model first", self.lathe("diff", a, self.folder / "net.onnx", status=2))
        self.lathe("diff", a, status=2)
        damaged = self.folder / "damaged.engine"
        damaged.write_bytes(a.read_bytes()[:-100])
        self.lathe("diff", a, damaged, status=2)


if __name__ == "__main__":
    unittest.main()
