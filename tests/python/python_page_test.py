# SPDX-License-Identifier: Apache-2.0
"""The code of docs/python.md runs, top to bottom."""
import contextlib
import os
import pathlib
import re
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'))
PAGE = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'python.md'


def save_model(path):
    weights = onnx.numpy_helper.from_array(np.ones((4, 3), np.float32), 'w')
    graph = helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['y'])], 'page',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 4])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', 3])], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])
    model.ir_version = 8
    onnx.save(model, path)


def save_join(path):
    info = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in 'aby']
    graph = helper.make_graph([helper.make_node('StringConcat', ['a', 'b'], ['y'])], 'join', info[:2], info[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)], ir_version=9), path)


class Page(unittest.TestCase):
    def test_code(self):
        blocks = re.findall(r'```python\n(.*?)```', PAGE.read_text(), re.S)
        self.assertEqual(len(blocks), 9)
        names = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            save_model('model.onnx')
            save_join('join.onnx')
            for block in blocks:
                exec(compile(block, str(PAGE), 'exec'), names)
        np.testing.assert_array_equal(names['y'], np.full((3, 3), 4, np.float32))
        self.assertEqual(names['outputs']['y'].shape, (8, 3))
        self.assertIsNotNone(names['plan'])
        self.assertEqual(list(names['texts']), ['oneone', 'threethree'])
        self.assertEqual(names['scaled'].get_output(0).shape, (2, 3))


if __name__ == '__main__':
    unittest.main()
