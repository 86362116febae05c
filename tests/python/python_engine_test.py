# SPDX-License-Identifier: Apache-2.0
"""lathe.build, lathe.load and Engine against NumPy, and what they refuse."""
import gc
import os
import pathlib
import sys
import tempfile
import unittest
import weakref

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'))
import lathe  # noqa: E402
from lathe import tensorrt as trt  # noqa: E402

WEIGHTS = np.random.default_rng(1).standard_normal((4, 3), np.float32)


def model(nodes, inputs, outputs, initializers=()):
    def described(tensors):
        return [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in tensors]
    graph = helper.make_graph(nodes, 'test', described(inputs), described(outputs), list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])
    made.ir_version = 8
    return made.SerializeToString()


def matmul_model(rows):
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['m']), helper.make_node('Relu', ['m'], ['y'])]
    return model(nodes, [('x', TensorProto.FLOAT, [rows, 4])], [('y', TensorProto.FLOAT, [rows, 3])],
                 [onnx.numpy_helper.from_array(WEIGHTS, 'w')])


def expected(x):
    return np.maximum(x @ WEIGHTS, 0)


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = lathe.build(matmul_model('n'), shapes={'x': ((1, 4), (2, 4), (8, 4))})

    def test_open_sizes(self):
        for rows in (1, 5, 8):
            x = np.random.default_rng(rows).standard_normal((rows, 4), np.float32)
            np.testing.assert_allclose(self.engine(x), expected(x), rtol=1e-5, atol=1e-6)

    def test_results_of_earlier_runs_stay(self):
        first, second = np.ones((2, 4), np.float32), np.full((2, 4), -1, np.float32)
        kept = self.engine(first)
        self.engine(second)
        np.testing.assert_allclose(kept, expected(first), rtol=1e-5, atol=1e-6)

    def test_strided_input(self):
        x = np.random.default_rng(2).standard_normal((4, 6), np.float32).T
        np.testing.assert_allclose(self.engine(x), expected(x), rtol=1e-5, atol=1e-6)

    def test_an_output_over_an_input_is_refused(self):
        x = np.random.default_rng(3).standard_normal((4, 4), np.float32)
        over = x.reshape(-1)[4:].reshape(4, 3)
        with self.assertRaisesRegex(lathe.Error, r"output 'y' \(48 bytes at .*\) lies over input 'x'"):
            self.engine.run({'x': x}, {'y': over})
        apart = np.empty((4, 3), np.float32)
        self.engine.run({'x': x}, {'y': apart})
        np.testing.assert_allclose(apart, expected(x), rtol=1e-5, atol=1e-6)

    def test_save_and_load(self):
        x = np.ones((3, 4), np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'model.engine'
            self.engine.save(path)
            np.testing.assert_array_equal(lathe.load(path)(x), self.engine(x))

    def test_build_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'model.onnx'
            path.write_bytes(matmul_model(2))
            x = np.ones((2, 4), np.float32)
            np.testing.assert_allclose(lathe.build(path)(x), expected(x), rtol=1e-5, atol=1e-6)

    def test_shape_known_only_after_the_run(self):
        engine = lathe.build(model([helper.make_node('NonZero', ['x'], ['y'])], [('x', TensorProto.FLOAT, [3, 4])],
                                   [('y', TensorProto.INT64, [2, 'found'])]))
        x = np.zeros((3, 4), np.float32)
        self.assertEqual(engine(x).shape, (2, 0))
        x[1, 2] = x[2, 3] = 1
        np.testing.assert_array_equal(engine(x), np.array(np.nonzero(x)))

    def test_inputs_that_are_sequences(self):
        sequence = helper.make_tensor_sequence_value_info('s', TensorProto.FLOAT, None)
        graph = helper.make_graph([helper.make_node('ConcatFromSequence', ['s'], ['y'], axis=0)], 'test', [sequence],
                                  [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8).SerializeToString()
        parts = [np.ones((1, 2), np.float32), np.full((3, 2), 2, np.float32)]
        engine = lathe.build(made, elements={'s': [part.shape for part in parts]})
        self.assertEqual(list(engine.inputs), ['s_0', 's_1'])
        np.testing.assert_array_equal(engine(*parts), np.concatenate(parts))
        with self.assertRaisesRegex(lathe.Error, r'setInputElements\(\)'):
            lathe.build(made)
        with self.assertRaisesRegex(lathe.Error, 'different numbers of dimensions'):
            lathe.build(made, elements={'s': [(1, 2), (1,)]})
        with self.assertRaisesRegex(lathe.Error, "-2 tensors of input 's'"):
            lathe.build(made, elements={'s': -2})
        with self.assertRaisesRegex(lathe.Error, 'no input of the model'):
            lathe.build(made, elements={'s': 1, 'o': None})

    def test_precisions_are_types(self):
        for wrong in ('fp16', trt.int8):
            with self.assertRaises(lathe.Error) as caught:
                lathe.build(matmul_model(3), precision=wrong)
            self.assertNotIn('_set_precision', str(caught.exception))

    def test_strings_are_bytes(self):
        info = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in 'aby']
        graph = helper.make_graph([helper.make_node('StringConcat', ['a', 'b'], ['y'])], 'test', info[:2], info[2:])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)], ir_version=9).SerializeToString()
        engine = lathe.build(made, shapes={name: ((2, 1), (2, 8), (2, 64)) for name in 'ab'}, target='cpu')
        words = np.char.encode(np.array(['one', 'é']), 'utf-8')
        x = words.view(np.uint8).reshape(*words.shape, -1)
        y = engine(x, x)
        self.assertEqual(list(np.char.decode(y.view(f'S{y.shape[-1]}')[..., 0], 'utf-8')), ['oneone', 'éé'])

    def test_outputs_of_earlier_runs_are_let_go(self):
        x = np.ones((8, 4), np.float32)
        kept = [weakref.ref(self.engine(x).base) for _ in range(3)]
        gc.collect()
        self.assertEqual([ref() for ref in kept], [None] * 3)

    def test_bound(self):
        x, y = np.ones((3, 4), np.float32), np.empty((3, 3), np.float32)
        run = self.engine.bind({'x': x, 'y': y})
        for value in (1, -2, 3):
            x[:] = value
            run()
            np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
        # Runs of the engine itself do not disturb it.
        self.engine(np.zeros((8, 4), np.float32))
        run()
        np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
        del x, y
        gc.collect()
        run()

    def test_dlpack(self):
        class Foreign:
            def __init__(self, array, device=(1, 0)):
                self.array, self.device = array, device

            def __dlpack__(self, **arguments):
                return self.array.__dlpack__(**arguments)

            def __dlpack_device__(self):
                return self.device

        x = np.random.default_rng(4).standard_normal((2, 4), np.float32)
        np.testing.assert_array_equal(self.engine(Foreign(x)), self.engine(x))
        with self.assertRaisesRegex(TypeError, 'not in the memory of the host'):
            self.engine(Foreign(x, (2, 0)))

    def test_cuda_array(self):
        class OnGpu:
            __cuda_array_interface__ = {'shape': (2, 4), 'typestr': '<f4', 'data': (4096, False), 'version': 3}

        with self.assertRaisesRegex(TypeError, 'not in the memory of the host'):
            self.engine(OnGpu())

    def test_threads(self):
        x = np.ones((8, 4), np.float32)
        for threads in (1, 2):
            engine = lathe.build(matmul_model(8), threads=threads)
            np.testing.assert_allclose(engine(x), expected(x), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(lathe.Engine(engine.plan, threads)(x), expected(x), rtol=1e-5, atol=1e-6)
        for refused in (lambda: lathe.build(matmul_model(8), threads=-1), lambda: lathe.Engine(engine.plan, -1)):
            with self.assertRaises(lathe.Error):
                refused()

    def test_repr(self):
        self.assertIn('(x: float32[-1, 4]) -> (y: float32[-1, 3])', repr(self.engine))
        self.assertIn('<td>x</td><td>float32</td><td>[-1, 4]</td>', self.engine._repr_html_())


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = lathe.build(matmul_model('n'), shapes={'x': ((1, 4), (2, 4), (8, 4))})

    def test_shape_outside_the_profile(self):
        with self.assertRaises(lathe.Error) as caught:
            self.engine(np.zeros((9, 4), np.float32))
        self.assertEqual(caught.exception.code, 'LATHE-5003')
        # The engine is usable afterwards.
        self.assertEqual(self.engine(np.zeros((8, 4), np.float32)).shape, (8, 3))

    def test_types_and_names(self):
        with self.assertRaisesRegex(TypeError, 'float32, got float64'):
            self.engine(np.zeros((2, 4)))
        with self.assertRaisesRegex(TypeError, r"takes inputs \['x'\], got \['z'\]"):
            self.engine.run({'z': np.zeros((2, 4), np.float32)})
        with self.assertRaisesRegex(TypeError, 'takes 1 inputs'):
            self.engine()

    def test_what_cannot_be_bound(self):
        x, y = np.zeros((2, 4), np.float32), np.zeros((2, 3), np.float32)
        fixed = y.copy()
        fixed.flags.writeable = False
        for arrays, text in (({'x': x}, 'takes arrays for'), ({'x': x.T.copy().T, 'y': y}, 'contiguous'),
                             ({'x': x, 'y': y[:1]}, r'shape \(2, 3\)'), ({'x': x, 'y': fixed}, 'written to'),
                             ({'x': x, 'y': y.astype(np.float64)}, 'got float64')):
            with self.assertRaisesRegex(TypeError, text):
                self.engine.bind(arrays)
        with self.assertRaises(lathe.Error) as caught:
            self.engine.bind({'x': np.zeros((9, 4), np.float32), 'y': y})
        self.assertEqual(caught.exception.code, 'LATHE-5003')

    def test_what_is_no_model_or_plan(self):
        with self.assertRaises(lathe.Error):
            lathe.build(b'no model')
        with self.assertRaises(lathe.Error):
            lathe.Engine(b'no plan')
        with self.assertRaises(OSError):
            lathe.load('/nonexistent/model.engine')

    def test_node_to_blame(self):
        broken = model([helper.make_node('NoSuchOperator', ['x'], ['y'], name='culprit')],
                       [('x', TensorProto.FLOAT, [1])], [('y', TensorProto.FLOAT, [1])])
        with self.assertRaises(lathe.Error) as caught:
            lathe.build(broken)
        self.assertEqual(caught.exception.node, 'culprit')

    def test_plans_for_other_devices(self):
        with self.assertRaisesRegex(lathe.Error, 'runs those for the CPU'):
            lathe.build(matmul_model(2), target='null')

    def test_unknown_target(self):
        with self.assertRaises(lathe.Error):
            lathe.build(matmul_model(2), target='abacus')


if __name__ == '__main__':
    unittest.main()
