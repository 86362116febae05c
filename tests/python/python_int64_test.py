# SPDX-License-Identifier: Apache-2.0
"""INT64 in ONNX models: exact, or as INT32 for programs that were written when there was no INT64."""
import os
import pathlib
import sys
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'))
import lathe  # noqa: E402
from lathe import tensorrt as trt  # noqa: E402

LEAST, MOST = -2**31, 2**31 - 1
VALUES = [2**40, -2**40, MOST, MOST + 1, LEAST, LEAST - 1, 7]


class Log(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.warnings = []

    def log(self, severity, msg):
        if severity <= trt.ILogger.Severity.WARNING:
            self.warnings.append(msg)


def model():
    """Weights of each kind: y = (x - a) + b, where a is an initializer and b a Constant; s = f[1:INT64_MAX], by a Slice."""
    ints = [helper.make_tensor_value_info(name, TensorProto.INT64, [len(VALUES)]) for name in ('x', 'y')]
    floats = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name, size in (('f', 4), ('s', 3))]
    nodes = [helper.make_node('Constant', [], ['b'], value=numpy_helper.from_array(np.array(VALUES, np.int64)), name='of_b'),
             helper.make_node('Constant', [], ['one'], value_ints=[1], name='of_one'),
             helper.make_node('Constant', [], ['end'], value_ints=[2**63 - 1], name='of_end'),
             helper.make_node('Sub', ['x', 'a'], ['d']), helper.make_node('Add', ['d', 'b'], ['y']),
             helper.make_node('Slice', ['f', 'one', 'end'], ['s'])]
    graph = helper.make_graph(nodes, 'ints', [ints[0], floats[0]], [ints[1], floats[1]],
                              [numpy_helper.from_array(np.full(len(VALUES), 5, np.int64), 'a')])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8).SerializeToString()


class Int64(unittest.TestCase):
    def build(self, legacy):
        self.log = Log()
        builder = trt.Builder(self.log)
        network = builder.create_network(0)
        parser = trt.OnnxParser(network, self.log)
        parser._set_int64_as_int32(legacy)
        self.assertTrue(parser.parse(model()), self.log.warnings)
        config = builder.create_builder_config()
        config._target = 'cpu'
        return lathe.Engine(bytes(builder.build_serialized_network(network, config)))

    # S260, S261: nothing is lost unless it is asked for.
    def test_exact_by_default(self):
        engine = self.build(legacy=False)
        self.assertEqual(engine.inputs['x'][0], np.int64)
        x, f = np.array([1, 2, 3, 4, 5, 6, 2**50], np.int64), np.arange(4, dtype=np.float32)
        found = engine.run({'x': x, 'f': f})
        np.testing.assert_array_equal(found['y'], x - 5 + np.array(VALUES))
        np.testing.assert_array_equal(found['s'], f[1:])
        self.assertEqual([text for text in self.log.warnings if 'INT64' in text], [])

    # S260, S261, S262: one warning for the model, with the remedy.
    def test_as_int32(self):
        engine = self.build(legacy=True)
        self.assertEqual((engine.inputs['x'][0], engine.outputs['y'][0]), (np.int32, np.int32))
        x, f = np.array([1, 2, 3, 4, 5, 6, MOST], np.int32), np.arange(4, dtype=np.float32)
        found = engine.run({'x': x, 'f': f})
        want = x.astype(np.int64) - 5 + np.clip(VALUES, LEAST, MOST)
        np.testing.assert_array_equal(found['y'], np.clip(want, LEAST, MOST))
        np.testing.assert_array_equal(found['s'], f[1:])
        warning, = [text for text in self.log.warnings if 'INT64' in text]
        for part in ("4 weights: ", "'a'", "'of_b'", "'of_one'", "2 inputs and outputs: 'x', 'y'", "5 values are beyond",
                     "'of_b' (4)", "'of_end' (1)", 'Export the model again with INT32'):
            self.assertIn(part, warning)


if __name__ == '__main__':
    unittest.main()
