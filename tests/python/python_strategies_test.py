# SPDX-License-Identifier: Apache-2.0
"""Strategies of contexts as with statements of lathe.Engine."""
import os
import pathlib
import sys
import unittest
import unittest.mock

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'))
import lathe  # noqa: E402
from lathe import tensorrt as trt  # noqa: E402

ALLOCATION, SPECIALIZATION, GRAPHS = (trt.ExecutionContextAllocationStrategy, trt.DynamicShapesKernelSpecializationStrategy,
                                      trt.CudaGraphStrategy)


def model():
    graph = helper.make_graph([helper.make_node('Relu', ['x'], ['y'])], 'test',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 4])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8).SerializeToString()


class Strategies(unittest.TestCase):
    def setUp(self):
        self.engine = lathe.build(model(), shapes={'x': ((1, 4), (2, 4), (8, 4))})
        self.before = self.settings()

    def settings(self):
        config = self.engine._context.get_runtime_config()
        return (config.get_execution_context_allocation_strategy(), config.dynamic_shapes_kernel_specialization_strategy,
                config.cuda_graph_strategy)

    def check_runs(self):
        x = np.random.default_rng(1).standard_normal((3, 4), np.float32)
        np.testing.assert_array_equal(self.engine(x), np.maximum(x, 0))

    # S237.
    def test_each_and_nested(self):
        with unittest.mock.patch.object(trt, 'Builder', side_effect=AssertionError('nothing is to be compiled')):
            for allocation in (ALLOCATION.STATIC, ALLOCATION.ON_PROFILE_CHANGE):
                for specialization in SPECIALIZATION:
                    for graphs in GRAPHS:
                        with self.engine.strategies(allocation=allocation), self.engine.strategies(specialization=specialization), \
                                self.engine.strategies(cuda_graphs=graphs) as engine:
                            self.assertIs(engine, self.engine)
                            self.assertEqual(self.settings(), (allocation, specialization, graphs))
                            self.check_runs()
                        self.assertEqual(self.settings(), self.before)
        self.check_runs()

    # S237.
    def test_after_an_exception(self):
        with self.assertRaises(ZeroDivisionError):
            with self.engine.strategies(specialization=SPECIALIZATION.EAGER, allocation=ALLOCATION.ON_PROFILE_CHANGE):
                with self.assertRaises(KeyError), self.engine.strategies(specialization=SPECIALIZATION.NONE):
                    raise KeyError
                self.assertEqual(self.settings()[1], SPECIALIZATION.EAGER)
                raise ZeroDivisionError
        self.assertEqual(self.settings(), self.before)
        self.check_runs()

    def test_what_was_bound_keeps_its_strategies(self):
        x, y = np.full((2, 4), -1, np.float32), np.ones((2, 4), np.float32)
        with self.engine.strategies(allocation=ALLOCATION.ON_PROFILE_CHANGE):
            run = self.engine.bind({'x': x, 'y': y})
        run()
        np.testing.assert_array_equal(y, np.zeros((2, 4)))

    def test_refusals(self):
        with self.assertRaisesRegex(lathe.Error, 'owns the memory'), self.engine.strategies(allocation=ALLOCATION.USER_MANAGED):
            pass
        with self.assertRaises(TypeError), self.engine.strategies(cuda_graphs='disabled'):
            pass
        self.assertEqual(self.settings(), self.before)
        self.check_runs()


if __name__ == '__main__':
    unittest.main()
