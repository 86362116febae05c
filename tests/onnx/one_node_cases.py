# SPDX-License-Identifier: Apache-2.0
"""Cases of one node each, in the form of ONNX's own, that `lathe conformance` runs."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"
DOMAINS = {"": 26, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1, "local": 1}


class OneNodeCases(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.count = pathlib.Path(folder.name), 0
        self.environment = {**os.environ, "LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CACHE_DIR": str(self.folder / "cache")}
        self.random = np.random.default_rng(5)

    def write(self, op, operands, results, *, domain="", constants=(), **attributes):
        """A case of one node; operands whose places are in `constants` are initializers, those that are None left out."""
        names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
        tensors = [None if x is None else numpy_helper.from_array(np.asarray(x, order="C"), f"x{i}") for i, x in enumerate(operands)]
        outputs = [numpy_helper.from_array(np.asarray(y, order="C"), f"y{i}") for i, y in enumerate(results)]
        inputs = [t for i, t in enumerate(tensors) if t is not None and i not in constants]
        node = helper.make_node(op, names, [y.name for y in outputs], domain=domain, **attributes)
        self.save([node], inputs, outputs, [tensors[i] for i in constants], domain=domain)

    def save(self, nodes, inputs, outputs, constants=(), *, domain="", functions=()):
        """A case of these nodes and tensors."""
        data = self.folder / "cases/node" / f"case_{self.count}" / "test_data_set_0"
        self.count += 1
        data.mkdir(parents=True)
        info = lambda t: helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
        graph = helper.make_graph(nodes, "g", [info(t) for t in inputs], [info(y) for y in outputs], list(constants))
        opsets = [helper.make_opsetid(name, DOMAINS[name]) for name in {"", domain, *(f.domain for f in functions)}]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=13, functions=list(functions))
        onnx.save(model, data.parent / "model.onnx")
        for kind, files in (("input", inputs), ("output", outputs)):
            for i, proto in enumerate(files):
                (data / f"{kind}_{i}.pb").write_bytes(proto.SerializeToString())

    def run_cases(self, mode, target="cpu"):
        report = self.folder / "report.json"
        subprocess.run([LATHE, "conformance", self.folder / "cases", f"--mode={mode}", f"--target={target}", "--noTF32",
                        f"--json={report}"], capture_output=True, text=True, env=self.environment)
        return json.loads(report.read_text())["cases"]

    def all_pass(self, *ways):
        for mode, target in ways or (("runtime", "cpu"), ("symbolic", "cpu")):
            wrong = [(case["case"][-8:], case["reason"]) for case in self.run_cases(mode, target) if case["result"] != "passed"]
            self.assertEqual(wrong, [], f"{mode} on {target}")

    def refuse(self, text, op, operands, results, **attributes):
        self.write(op, operands, results, **attributes)
        [reason] = [case["reason"] for case in self.run_cases("runtime") if case["case"].endswith(f"case_{self.count - 1}")]
        self.assertIn(text, reason)
