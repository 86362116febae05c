#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops in modes that few networks have: computed weights, positions of maxima, computed scales and shapes, doubles and integers.
Each alone in a network whose images vary in size, on one thread, in Lathe and in ONNX Runtime. Prints a table as index_ops.py
does.
"""
import numpy as np
import onnx
import single_ops
from onnx import helper, numpy_helper

random = np.random.default_rng(1)


def numbers(dtype, *dims):
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(dims).astype(dtype)
    return random.integers(0, 100, dims).astype(dtype)


def regions(dtype, count, extent):
    corners = random.random((count, 2)) * extent / 2
    return np.concatenate([corners, corners + 1 + random.random((count, 2)) * extent / 2], 1).astype(dtype)


F32, F64, U8, I8, I32, I64 = np.float32, np.float64, np.uint8, np.int8, np.int32, np.int64
SCALES = np.array([1, 1, 2, 2], F32)
LINEAR = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}

# title: op, attributes, inputs, constants behind them, element types of the results
CASES = {
    "Conv 3x3, computed weights": ("Conv", {"pads": [1] * 4}, [numbers(F32, 1, 64, 56, 56), numbers(F32, 64, 64, 3, 3)], [], [F32]),
    "Conv 1x1, computed weights": ("Conv", {}, [numbers(F32, 1, 256, 28, 28), numbers(F32, 256, 256, 1, 1)], [], [F32]),
    "Conv depthwise, computed weights": ("Conv", {"pads": [1] * 4, "group": 64},
                                         [numbers(F32, 1, 64, 56, 56), numbers(F32, 64, 1, 3, 3)], [], [F32]),
    "Conv 3x3, SAME, stride 2": ("Conv", {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [numbers(F32, 1, 64, 57, 57)],
                                 [numbers(F32, 64, 64, 3, 3)], [F32]),
    "ConvTranspose, computed weights": ("ConvTranspose", {"strides": [2, 2]},
                                        [numbers(F32, 1, 64, 28, 28), numbers(F32, 64, 64, 4, 4)], [], [F32]),
    "ConvInteger, computed weights": ("ConvInteger", {"pads": [1] * 4},
                                      [numbers(U8, 1, 64, 56, 56), numbers(U8, 64, 64, 3, 3)], [], [I32]),
    "MatMulInteger of computed": ("MatMulInteger", {}, [numbers(U8, 256, 256), numbers(U8, 256, 256)], [], [I32]),
    "ConvInteger, zero points": ("ConvInteger", {"pads": [1] * 4},
                                 [numbers(U8, 1, 64, 56, 56), numbers(U8, 64, 64, 3, 3), numbers(U8, 1), numbers(U8, 1)], [], [I32]),
    "MatMulInteger, zero points": ("MatMulInteger", {},
                                   [numbers(U8, 256, 256), numbers(U8, 256, 256), numbers(U8, 1), numbers(U8, 1)], [], [I32]),
    "MatMulInteger, one zero point": ("MatMulInteger", {}, [numbers(U8, 256, 256), numbers(I8, 256, 256), numbers(U8, 1)],
                                      [], [I32]),
    "Col2Im 3x3, stride 2": ("Col2Im", {"strides": [2, 2], "pads": [1] * 4}, [numbers(F32, 1, 192 * 9, 196)],
                             [np.array([28, 28], I64), np.array([3, 3], I64)], [F32]),
    "Col2Im 3x3": ("Col2Im", {"pads": [1] * 4}, [numbers(F32, 1, 64 * 9, 56 * 56)],
                   [np.array([56, 56], I64), np.array([3, 3], I64)], [F32]),
    "MaxPool with indices": ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, [numbers(F32, 1, 64, 112, 112)], [], [F32, I64]),
    "MaxPool 3x3, SAME": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
                          [numbers(F32, 1, 64, 112, 112)], [], [F32]),
    "MaxPool of f64": ("MaxPool", {"kernel_shape": [9, 9]}, [numbers(F64, 1, 16, 56, 56)], [], [F64]),
    "Resize, computed scales, linear": ("Resize", LINEAR, [numbers(F32, 1, 16, 56, 56), None, SCALES], [], [F32]),
    "Resize, computed scales, nearest": ("Resize", {}, [numbers(F32, 1, 16, 56, 56), None, SCALES], [], [F32]),
    "Resize of u8, linear": ("Resize", LINEAR, [numbers(U8, 1, 16, 56, 56)], [None, SCALES], [U8]),
    "Resize of u8, nearest": ("Resize", {}, [numbers(U8, 1, 16, 56, 56)], [None, SCALES], [U8]),
    "Resize of i32, nearest": ("Resize", {}, [numbers(I32, 1, 16, 56, 56)], [None, SCALES], [I32]),
    "RoiAlign of f64": ("RoiAlign", {"output_height": 7, "output_width": 7, "sampling_ratio": 2},
                        [numbers(F64, 1, 64, 56, 56), regions(F64, 100, 56), np.zeros(100, I64)], [], [F64]),
    "Reshape, computed": ("Reshape", {}, [numbers(F32, 64, 128, 256), np.array([-1, 512], I64)], [], [F32]),
}


def write_model(case, path):
    op, attributes, inputs, constants, types = case
    initializers = [numpy_helper.from_array(array, f"c{i}") for i, array in enumerate(constants) if array is not None]
    given = [i for i, array in enumerate(inputs) if array is not None]
    names = {i: f"x{k}" for k, i in enumerate(given)}
    operands = [names.get(i, "") for i in range(len(inputs))]
    operands += ["" if array is None else f"c{i}" for i, array in enumerate(constants)]
    values = []
    for i in given:
        element = helper.np_dtype_to_tensor_dtype(inputs[i].dtype)
        dims = list(inputs[i].shape)
        if i == 0 and len(dims) == 4:
            dims = ["n", dims[1], "h", "w"]
        values.append(helper.make_tensor_value_info(names[i], element, dims))
    results = [helper.make_tensor_value_info(f"y{i}", helper.np_dtype_to_tensor_dtype(np.dtype(t)), None) for i, t in enumerate(types)]
    node = helper.make_node(op, operands, [f"y{i}" for i in range(len(types))], **attributes)
    graph = helper.make_graph([node], "case", values, results, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def smallest(inputs):
    shapes = [list(array.shape) for array in inputs]
    if len(shapes[0]) == 4:
        shapes[0][2:] = [d // 2 for d in shapes[0][2:]]
    return shapes


if __name__ == "__main__":
    single_ops.run(__doc__.splitlines()[0], CASES, write_model, smallest)
