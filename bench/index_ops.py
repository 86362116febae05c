#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops that move elements by indices, seek the best ones or make sequences: each alone in a network of open sizes, on one
thread, in Lathe and in ONNX Runtime. Prints a table, which says, too, whether an op runs by its plain evaluation.
"""
import numpy as np
import onnx
import single_ops
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.float32: TensorProto.FLOAT, np.int64: TensorProto.INT64, np.bool_: TensorProto.BOOL}
random = np.random.default_rng(1)


def floats(*dims):
    return random.standard_normal(dims, np.float32)


def places(extent, *dims):
    return random.integers(-extent, extent, dims)


def tuples(extents, *dims):
    return np.stack([random.integers(0, extent, dims) for extent in extents], -1)


def integer(*values):
    return np.array(values, np.int64)


def mask(*dims):
    return random.random(dims) < 0.3


# title: op, attributes, inputs (open sizes), constants behind them, number of outputs
CASES = {
    "Range": ("Range", {}, [floats(1, 4096)], [], 1),
    "Trilu": ("Trilu", {"upper": 0}, [floats(8, 512, 512)], [], 1),
    "CumSum, last axis": ("CumSum", {}, [floats(256, 1024)], [np.array(1)], 1),
    "CumSum, first axis": ("CumSum", {}, [floats(1024, 256)], [np.array(0)], 1),
    "CumSum of i64, last axis": ("CumSum", {}, [places(9, 256, 1024)], [np.array(1)], 1),
    "OneHot": ("OneHot", {}, [places(1000, 1024)], [np.array(1000), np.array([0, 1], np.float32)], 1),
    "Gather of rows": ("Gather", {}, [floats(30000, 256), places(30000, 512)], [], 1),
    "Gather, last axis": ("Gather", {"axis": 1}, [floats(512, 512), places(512, 512)], [], 1),
    "GatherElements": ("GatherElements", {"axis": 1}, [floats(512, 1024), places(1024, 512, 1024)], [], 1),
    "GatherND of elements": ("GatherND", {}, [floats(512, 1024), tuples((512, 1024), 65536)], [], 1),
    "GatherND of rows": ("GatherND", {}, [floats(64, 64, 256), tuples((64, 64), 2048)], [], 1),
    "ScatterElements": ("ScatterElements", {"axis": 1}, [floats(512, 1024), places(1024, 512, 512), floats(512, 512)], [], 1),
    "ScatterElements, add": ("ScatterElements", {"axis": 0, "reduction": "add"},
                             [floats(1024, 256), places(1024, 2048, 256), floats(2048, 256)], [], 1),
    "ScatterND of rows": ("ScatterND", {}, [floats(4096, 256), tuples((4096,), 2048), floats(2048, 256)], [], 1),
    "ScatterND of elements, add": ("ScatterND", {"reduction": "add"},
                                   [floats(512, 512), tuples((512, 512), 65536), floats(65536)], [], 1),
    "TopK, 5 of 1000": ("TopK", {}, [floats(512, 1000)], [integer(5)], 2),
    "TopK, 300 of 30000": ("TopK", {}, [floats(8, 30000)], [integer(300)], 2),
    "TopK, first axis": ("TopK", {"axis": 0}, [floats(1000, 256)], [integer(5)], 2),
    "ArgMax, last axis": ("ArgMax", {"axis": -1}, [floats(128, 30000)], [], 1),
    "ArgMax, channels": ("ArgMax", {"axis": 1}, [floats(1, 21, 512, 512)], [], 1),
    "NonZero": ("NonZero", {}, [mask(512, 1024)], [], 1),
    "Compress": ("Compress", {"axis": 0}, [floats(4096, 256), mask(4096)], [], 1),
}


def value_info(op, name, array):
    dims = [f"{name}{d}" for d in range(array.ndim)]
    if op in ("GatherND", "ScatterND") and name == "x1":
        dims[-1] = array.shape[-1]  # how many indices make a tuple is known
    return helper.make_tensor_value_info(name, TYPES[array.dtype.type], dims)


def write_model(case, path):
    op, attributes, inputs, constants, outputs = case
    nodes, names = [], [f"x{i}" for i in range(len(inputs))]
    initializers = [numpy_helper.from_array(array, f"c{i}") for i, array in enumerate(constants)]
    operands = names + [tensor.name for tensor in initializers]
    if op == "Range":  # of a dimension, as position ids are
        initializers = [numpy_helper.from_array(np.array(value), name) for name, value in (("one", 1), ("zero", 0))]
        nodes = [helper.make_node("Shape", ["x0"], ["shape"]), helper.make_node("Gather", ["shape", "one"], ["length"])]
        operands = ["zero", "length", "one"]
    results = [f"y{i}" for i in range(outputs)]
    nodes.append(helper.make_node(op, operands, results, **attributes))
    integers = op in ("Range", "ArgMax", "NonZero") or inputs[0].dtype == np.int64 and op != "OneHot"
    types = [TensorProto.INT64 if integers or i == 1 else TensorProto.FLOAT for i in range(outputs)]
    graph = helper.make_graph(nodes, op, [value_info(op, n, a) for n, a in zip(names, inputs)],
                              [helper.make_tensor_value_info(n, t, None) for n, t in zip(results, types)], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def halved(inputs):
    return [[d if d < 4 else d // 2 for d in array.shape] for array in inputs]


if __name__ == "__main__":
    single_ops.run(__doc__.splitlines()[0], CASES, write_model, halved)
