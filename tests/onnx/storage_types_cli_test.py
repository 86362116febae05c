#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Casts between every number of the storage types and other types, compared with the package ml_dtypes; quantised weights
of few bits, by blocks too, compared with ONNX's reference evaluation."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
FLOATS = {TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn, TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
          TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2, TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
          TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn}
OTHERS = {TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu, TensorProto.INT4: ml_dtypes.int4,
          TensorProto.UINT4: ml_dtypes.uint4, TensorProto.INT2: ml_dtypes.int2, TensorProto.UINT2: ml_dtypes.uint2}


def every_half():
    return np.arange(65536, dtype=np.uint16).view(np.float16)


def tensor(name, values, element_type):
    """A TensorProto of storage types from their numpy arrays."""
    proto = numpy_helper.from_array(np.ascontiguousarray(values), name)
    assert proto.data_type == element_type, (proto.data_type, element_type)
    return proto


class Case:
    """A folder as `lathe conformance` reads it."""

    def __init__(self, folder, name):
        self.folder = folder / name
        (self.folder / "test_data_set_0").mkdir(parents=True)

    def write(self, nodes, inputs, outputs, weights=()):
        info = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in inputs]
        results = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in outputs]
        graph = helper.make_graph(nodes, "g", info, results, list(weights))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
        onnx.checker.check_model(model)
        onnx.save(model, self.folder / "model.onnx")
        for kind, tensors in (("input", inputs), ("output", outputs)):
            for i, each in enumerate(tensors):
                path = self.folder / "test_data_set_0" / f"{kind}_{i}.pb"
                path.write_bytes(each.SerializeToString())
        return model


class StorageTypes(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name) / "cases" / "node"

    def passes(self, count):
        for mode in ("runtime", "frozen"):
            result = subprocess.run([LATHE, "conformance", self.folder.parent, f"--mode={mode}"], capture_output=True,
                                    text=True)
            last = result.stdout.strip().splitlines()[-1] if result.stdout else result.stderr
            self.assertEqual(last, f"passed={count} failed=0 unsupported=0", result.stdout[-3000:] + result.stderr[-2000:])

    def cast(self, name, values, source, wanted, target, **attributes):
        node = helper.make_node("Cast", ["x"], ["y"], to=target, **attributes)
        Case(self.folder, name).write([node], [tensor("x", values, source)], [tensor("y", wanted, target)])

    def test_every_half_becomes_a_float_of_few_bits(self):
        halves = every_half()
        for element, dtype in FLOATS.items():
            name = TensorProto.DataType.Name(element)
            some = halves[~np.isnan(halves)] if element == TensorProto.FLOAT4E2M1 else halves  # it has no NaN
            with np.errstate(invalid="ignore"):  # infinities and NaN
                plain = some.astype(dtype)
            self.cast(f"{name}_plain", some, TensorProto.FLOAT16, plain, element, saturate=0)
            limits = ml_dtypes.finfo(dtype)
            with np.errstate(invalid="ignore"):
                clipped = np.clip(some.astype(np.float32), float(limits.min), float(limits.max)).astype(dtype)
            self.cast(f"{name}_saturating", some, TensorProto.FLOAT16, clipped, element)
        self.passes(2 * len(FLOATS))

    def test_every_code_is_the_number_that_it_stands_for(self):
        for element, dtype in (FLOATS | OTHERS).items():
            name = TensorProto.DataType.Name(element)
            bits = {"4": 4, "2": 2}.get(name[-1], 8) if "INT" in name else 4 if "FLOAT4" in name else 8
            codes = np.arange(1 << bits, dtype=np.uint8)
            values = codes.view(dtype) if dtype not in (ml_dtypes.int4, ml_dtypes.int2) else \
                ((codes ^ (1 << bits >> 1)).astype(np.int32) - (1 << bits >> 1)).astype(dtype)
            # An odd count leaves a part of the last byte over.
            for count in (len(codes), len(codes) - 1):
                some = values[:count]
                self.cast(f"{name}_{count}", some, element, some.astype(np.float32), TensorProto.FLOAT)
        self.passes(2 * len(FLOATS | OTHERS))

    def test_weights_of_few_bits_are_dequantised_by_blocks(self):
        random = np.random.default_rng(7)
        x = random.standard_normal((5, 64)).astype(np.float32)
        count = 0
        for element, dtype in {**FLOATS, TensorProto.INT4: ml_dtypes.int4, TensorProto.UINT4: ml_dtypes.uint4,
                               TensorProto.INT8: np.int8, TensorProto.UINT2: ml_dtypes.uint2}.items():
            for axis, block, scales in ((0, 16, (4, 24)), (1, 5, (64, 5)), (0, 0, (64,)), (0, 0, ())):
                low = 0 if "UINT" in TensorProto.DataType.Name(element) else -2
                w = random.integers(low, 2 if element != TensorProto.UINT2 else 4, (64, 24)).astype(np.float32).astype(dtype)
                scale = (2.0 ** random.integers(-3, 2, scales)).astype(np.float32)
                attributes = {"axis": axis, **({"block_size": block} if block else {})}
                nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], **attributes),
                         helper.make_node("MatMul", ["x", "d"], ["y"])]
                weights = [tensor("w", w, element), numpy_helper.from_array(scale, "s")]
                case = Case(self.folder, f"{TensorProto.DataType.Name(element)}_{axis}_{block}_{len(scales)}")
                wide = np.repeat(scale, block, axis)[:64, :24] if block else scale.reshape((-1, 1)) if scales else scale
                y = x @ (w.astype(np.float32) * wide)
                model = case.write(nodes, [numpy_helper.from_array(x, "x")], [numpy_helper.from_array(y, "y")], weights)
                reference = ReferenceEvaluator(model).run(None, {"x": x})[0]
                np.testing.assert_allclose(reference, y, rtol=1e-4, atol=1e-4)
                count += 1
        self.passes(count)

    def test_activations_are_quantised_by_blocks(self):
        random = np.random.default_rng(8)
        x = (4 * random.standard_normal((3, 40, 7))).astype(np.float32)
        count = 0
        for element, dtype in {**FLOATS, TensorProto.INT4: ml_dtypes.int4, TensorProto.UINT4: ml_dtypes.uint4,
                               TensorProto.INT2: ml_dtypes.int2}.items():
            for block in (8, 9, 40):
                scale = (2.0 ** random.integers(-2, 2, (3, -(-40 // block), 7))).astype(np.float32)
                attributes = {"axis": 1, "block_size": block}
                nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=element, **attributes),
                         helper.make_node("Transpose", ["q"], ["t"], perm=[2, 0, 1]),
                         helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)]
                case = Case(self.folder, f"{TensorProto.DataType.Name(element)}_{block}")
                weights = [numpy_helper.from_array(scale, "s")]
                inputs = [numpy_helper.from_array(x, "x")]
                model = case.write(nodes, inputs, [numpy_helper.from_array(x.transpose(2, 0, 1), "y")], weights)
                y = ReferenceEvaluator(model).run(None, {"x": x})[0]
                (case.folder / "test_data_set_0/output_0.pb").write_bytes(
                    numpy_helper.from_array(np.ascontiguousarray(y), "y").SerializeToString())
                count += 1
        self.passes(count)

    def test_what_does_not_compute_with_them_says_so(self):
        node = helper.make_node("Cast", ["x"], ["q"], to=TensorProto.FLOAT8E5M2)
        twice = helper.make_node("Add", ["q", "q"], ["y"], name="twice")
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT8E5M2, [3])
        model = helper.make_model(helper.make_graph([node, twice], "g", [x], [y]),
                                  opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
        self.folder.mkdir(parents=True)
        path = self.folder / "model.onnx"
        onnx.save(model, path)
        result = subprocess.run([LATHE, "build", path, "-o", self.folder / "out.engine"], capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        text = result.stdout + result.stderr
        self.assertRegex(text, r"(?s)twice.*does not compute with f8e5m2")


if __name__ == "__main__":
    unittest.main()
