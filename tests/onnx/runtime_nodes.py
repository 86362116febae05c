# SPDX-License-Identifier: Apache-2.0
"""Nodes of ONNX Runtime's operators with open sizes: one engine of each runs at several sizes, beside ONNX Runtime or
what a test says in NumPy."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")


class Operand:
    """An input of these dims, of which those that are text are sizes; `make` gives its content for dims and sizes. It may be
    hidden from the operator, for nodes before it."""

    def __init__(self, *dims, make=None, dtype=np.float32, constant=False, hidden=False):
        self.dims, self.make, self.dtype, self.constant, self.hidden = dims, make, dtype, constant, hidden

    def array(self, sizes, random):
        dims = [sizes[d] if isinstance(d, str) else d for d in self.dims]
        made = random.standard_normal(dims) if self.make is None else self.make(dims, sizes, random)
        return np.asarray(made, order="C").astype(self.dtype).reshape(dims)


def weights(*dims, **named):
    return Operand(*dims, constant=True, **named)


def integers(low, high, *dims, dtype=np.int32, **named):
    return Operand(*dims, make=lambda dims, sizes, random: random.integers(low, high, dims), dtype=dtype, **named)


class RuntimeNodes(unittest.TestCase):
    tolerance = 2e-5  # of the largest element

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.random = np.random.default_rng(7)

    def write(self, op, operands, sizes, outputs=1, *, domain="com.microsoft", opset=17, before=(), inner=None, **attributes):
        """The model, and a list of arrays for each of `sizes`, with None for what is left out. `outputs` is their number
        or the types of all, None for one that is not wanted. Nodes `before` make those of the operator's inputs that
        `inner` names by their places; inputs of the model behind the operator's last are theirs alone."""
        names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
        constant = {i: x.array(sizes[0], self.random) for i, x in enumerate(operands) if x and x.constant}
        arrays = [[None if x is None else constant[i] if i in constant else x.array(at, self.random)
                   for i, x in enumerate(operands)] for at in sizes]
        kinds = [TensorProto.FLOAT] * outputs if isinstance(outputs, int) else list(outputs)
        wanted = ["" if kind is None else f"y{i}" for i, kind in enumerate(kinds)]
        element = lambda i: helper.np_dtype_to_tensor_dtype(np.dtype(operands[i].dtype))
        info = [helper.make_tensor_value_info(f"x{i}", element(i), list(x.dims))
                for i, x in enumerate(operands) if x and not x.constant]
        results = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(wanted, kinds) if name]
        inner = inner or {}
        count = max([i + 1 for i, x in enumerate(operands) if x and not x.hidden] + [i + 1 for i in inner])
        node = helper.make_node(op, [inner.get(i, names[i]) for i in range(count)], wanted, "node", domain=domain, **attributes)
        graph = helper.make_graph([*before, node], "g", info, results,
                                  [numpy_helper.from_array(array, f"x{i}") for i, array in constant.items()])
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        model = self.folder / "model.onnx"
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), model)
        return model, arrays

    def lathe(self, *arguments):
        result = subprocess.run([LATHE, *arguments], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def shapes(self, operands, sizes):
        """Options with the least, first and largest dims of inputs."""
        options = []
        for kind, choose in (("min", min), ("opt", lambda values: values[0]), ("max", max)):
            dims = {f"x{i}": [choose([at[d] for at in sizes]) if isinstance(d, str) else d for d in x.dims]
                    for i, x in enumerate(operands) if x and not x.constant}
            texts = ",".join(f"{name}:{'x'.join(map(str, d))}" for name, d in dims.items()
                             if any(isinstance(part, str) for part in operands[int(name[1:])].dims))
            options += [f"--{kind}Shapes={texts}"] if texts else []
        return options

    def check(self, op, operands, sizes, outputs=1, *, expected=None, defined=None, attention=None, **attributes):
        """`expected` makes the results of the arrays, else ONNX Runtime does; `defined` takes what of results is compared;
        `attention` is how many steps of attention there must be."""
        model, arrays = self.write(op, operands, sizes, outputs, **attributes)
        engine = self.folder / "model.engine"
        code, text = self.lathe("build", model, "-o", engine, "--target=cpu", "--buildBudget=0",
                                *self.shapes(operands, sizes))
        self.assertEqual(code, 0, text)
        if attention is not None:
            code, text = self.lathe("inspect", engine)
            self.assertEqual(len(re.findall(r"^ *\d+ +attention ", text, re.MULTILINE)), attention, text)
        session = None
        if expected is None:
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        names = [o.name for o in onnx.load(model).graph.output]
        for at, given in zip(sizes, arrays):
            feeds = {f"x{i}": x for i, x in enumerate(given) if x is not None and not operands[i].constant}
            wanted = session.run(None, feeds) if session else expected(*(x for x in given if x is not None))
            files = ",".join(f"{name}:{self.saved(name, value)}" for name, value in feeds.items())
            code, text = self.lathe("run", engine, f"--loadInputs={files}", "--exportOutput", self.folder / "out")
            self.assertEqual(code, 0, text)
            for name, y in zip(names, wanted):
                got = np.load(self.folder / "out" / f"{name}.npy")
                got = got.view(y.dtype) if got.dtype.kind == "V" else got
                self.assertEqual((got.shape, got.dtype), (y.shape, y.dtype), (op, at, name, attributes))
                take = defined(at, name) if defined else (lambda x: x)
                got, y = (np.asarray(take(x)).astype(np.float64) for x in (got, y))
                np.testing.assert_allclose(got, y, rtol=0, atol=self.tolerance * max(np.abs(y).max(initial=0), 1e-3),
                                           err_msg=f"{op} {at} {name} {attributes}")

    def saved(self, name, value):
        """In a file; types that NumPy does not have as a tensor of ONNX."""
        if value.dtype.kind != "V":
            np.save(self.folder / f"{name}.npy", value)
            return self.folder / f"{name}.npy"
        (self.folder / f"{name}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
        return self.folder / f"{name}.pb"

    def refuse(self, op, operands, *texts, sizes=({},), outputs=1, **attributes):
        model, _ = self.write(op, operands, list(sizes), outputs, **attributes)
        code, text = self.lathe("build", model, "-o", self.folder / "refused.engine", "--target=cpu",
                                *self.shapes(operands, list(sizes)))
        self.assertNotEqual(code, 0, text)
        for each in ("node", *texts):
            self.assertIn(each, text)
