# SPDX-License-Identifier: Apache-2.0
"""The artifact cache as lathe.torch asks it: threads and refit are parts of the key, and reach the engine."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'))
from lathe import _tensorrt  # noqa: E402
from lathe import tensorrt as trt  # noqa: E402


class Artifacts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        weights = onnx.numpy_helper.from_array(np.ones((4, 3), np.float32), 'w')
        graph = helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['y'])], 'test',
                                  [helper.make_tensor_value_info('x', TensorProto.FLOAT, [2, 4])],
                                  [helper.make_tensor_value_info('y', TensorProto.FLOAT, [2, 3])], [weights])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), self.folder / 'net.onnx')
        self.logger = trt.Logger(trt.Logger.ERROR)

    def plan(self, **parts):
        request = {'onnx': str(self.folder / 'net.onnx'), 'target': 'cpu', 'budget_seconds': 0} | parts
        return bytes(_tensorrt._artifact_plan(json.dumps(request), self.logger))

    def key(self):
        return json.loads((self.folder / 'fp32' / 'bs1' / 'net.engine.json').read_text())['key']

    def test_refit(self):
        runtime = trt.Runtime(self.logger)
        for refit in (False, True):
            engine = runtime.deserialize_cuda_engine(self.plan(refit=refit))
            self.assertEqual((engine.refittable, self.key()['refit']), (refit, refit))

    def test_threads(self):
        engine = self.folder / 'fp32' / 'bs1' / 'net.engine'
        self.plan(threads=1)
        first = engine.stat().st_ino
        self.assertEqual(self.key()['threads'], 1)
        self.plan(threads=1)
        self.assertEqual(engine.stat().st_ino, first)
        self.plan(threads=2)
        self.assertNotEqual(engine.stat().st_ino, first)
        self.plan()
        self.assertIsNone(self.key()['threads'])

    def test_what_is_refused(self):
        for parts in ({'threads': -1}, {'threads': 2**31}, {'threads': 'two'}, {'refit': 1}, {'refits': True}):
            with self.subTest(parts), self.assertRaises(RuntimeError):
                self.plan(**parts)


if __name__ == '__main__':
    unittest.main()
