# SPDX-License-Identifier: Apache-2.0
"""lathe.tensorrt: networks, values, callbacks and lifetimes as programs for TensorRT use them."""
import gc
import os
import pathlib
import subprocess
import sys
import unittest
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'))
from lathe import tensorrt as trt  # noqa: E402


class Recorder(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.messages = []

    def log(self, severity, msg):
        self.messages.append((severity, msg))


def sum_network(builder):
    """y = x + 1, where the array of ones has no other reference than the network's."""
    network = builder.create_network(0)
    x = network.add_input('x', trt.float32, (2, 3))
    ones = network.add_constant((1, 3), np.ones((1, 3), np.float32))
    layer = network.add_elementwise(x, ones.get_output(0), trt.ElementWiseOperation.SUM)
    layer.get_output(0).name = 'y'
    network.mark_output(layer.get_output(0))
    return network


class ImportName(unittest.TestCase):
    def test_of_the_original(self):
        folder = pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'
        run = subprocess.run([sys.executable, '-c', 'import tensorrt, lathe.tensorrt; print(tensorrt is lathe.tensorrt)'],
                             env={**os.environ, 'PYTHONPATH': f'{folder}:{folder}/compat'}, capture_output=True, text=True)
        self.assertEqual(run.stdout, 'True\n', run.stderr)


    def test_of_its_runtimes(self):
        folder = pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'
        for name in ('tensorrt_lean', 'tensorrt_dispatch'):
            script = (f'import lathe.tensorrt as whole, {name} as trt; '
                      'print(trt.Runtime is whole.Runtime, trt.float32.name, trt.__version__ == whole.__version__, '
                      '[n for n in ("Builder", "INetworkDefinition", "IConvolutionLayer", "OnnxParser") if hasattr(trt, n)])')
            run = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True,
                                 env={**os.environ, 'PYTHONPATH': f'{folder}:{folder}/compat'})
            self.assertEqual(run.stdout, 'True FLOAT True []\n', run.stderr)


class Values(unittest.TestCase):
    def test_dims(self):
        dims = trt.Dims((1, 2, 3))
        self.assertEqual((tuple(dims), len(dims), dims[-1], dims[1:], str(dims)), ((1, 2, 3), 3, 3, (2, 3), '(1, 2, 3)'))
        self.assertTrue(dims == (1, 2, 3) and dims == [1, 2, 3] and dims != (1, 2))
        dims[0] = 7
        self.assertEqual(list(dims), [7, 2, 3])
        for index in (3, -4):
            with self.assertRaises(IndexError):
                dims[index]
        with self.assertRaises(ValueError):
            trt.Dims([1] * 9)
        with self.assertRaises(ValueError):
            trt.Dims3((1, 2))
        self.assertEqual((trt.DimsHW(4, 5).h, trt.DimsHW((4, 5)).w), (4, 5))

    def test_weights(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        weights = trt.Weights(array)
        self.assertEqual((weights.dtype, weights.size, weights.nbytes, len(weights)), (trt.float32, 6, 24, 6))
        self.assertTrue(np.shares_memory(weights.numpy(), array))
        with self.assertRaisesRegex(ValueError, 'C-contiguous'):
            trt.Weights(array.T)
        with self.assertRaisesRegex(ValueError, 'float32'):
            trt.Weights(array.astype(np.complex64))

    def test_types(self):
        self.assertEqual([trt.nptype(t) for t in (trt.float32, trt.float16, trt.bool)],
                         [np.float32, np.float16, np.bool_])
        with self.assertRaises(TypeError):
            trt.nptype(trt.bfloat16)
        self.assertEqual((trt.int4.itemsize, trt.int64.itemsize, trt.e8m0.itemsize), (0.5, 8, None))
        self.assertEqual((trt.volume((2, 3, 4)), trt.volume(())), (24, 1))
        self.assertEqual(1 << int(trt.BuilderFlag.STRIP_PLAN), 1 << trt.BuilderFlag.STRIP_PLAN.value)


class Networks(unittest.TestCase):
    def setUp(self):
        self.logger = Recorder()
        self.builder = trt.Builder(self.logger)

    def plan(self):
        return self.builder.build_serialized_network(sum_network(self.builder), self.builder.create_builder_config())

    def test_layers_have_their_classes(self):
        network = sum_network(self.builder)
        self.assertEqual([type(layer) for layer in network], [trt.IConstantLayer, trt.IElementWiseLayer])
        self.assertEqual(network[-1].op, trt.ElementWiseOperation.SUM)
        np.testing.assert_array_equal(network[0].weights.numpy(), [1, 1, 1])
        with self.assertRaises(IndexError):
            network[2]

    def test_type_of_layers_whose_class_has_one(self):
        network = self.builder.create_network(0)
        x = network.add_input('x', trt.float32, (1, 2, 4, 4))
        relu = network.add_activation(x, trt.ActivationType.RELU)
        pool = network.add_pooling_nd(relu.get_output(0), trt.PoolingType.MAX, (2, 2))
        self.assertEqual((relu.type, pool.type), (trt.ActivationType.RELU, trt.PoolingType.MAX))
        found = [(trt.IActivationLayer, trt.LayerType.ACTIVATION, relu), (trt.IPoolingLayer, trt.LayerType.POOLING, pool)]
        for index, (owner, kind, added) in enumerate(found):
            self.assertIs(network.get_layer(index), network[index])
            for get in (network.get_layer, network.__getitem__, lambda at: list(network)[at]):
                layer = get(index)
                self.assertEqual((isinstance(layer, owner), layer.type), (True, kind))
                layer.__class__ = owner
                self.assertEqual((layer.type, layer.name), (added.type, added.name))
        network.get_layer(0).alpha = 2
        self.assertEqual(relu.alpha, 2)

    def test_run(self):
        plan = self.plan()
        self.assertEqual(len(bytes(plan)), plan.nbytes)
        engine = trt.Runtime(self.logger).deserialize_cuda_engine(plan)
        context = engine.create_execution_context()
        self.assertEqual(([engine[0], engine[-1]], tuple(engine.get_tensor_shape('y'))), (['x', 'y'], (2, 3)))
        x, y = np.random.default_rng(0).standard_normal((2, 3), np.float32), np.empty((2, 3), np.float32)
        context.set_tensor_address('x', x.ctypes.data)
        context.set_tensor_address('y', y.ctypes.data)
        self.assertEqual(context.get_tensor_address('y'), y.ctypes.data)
        # What made the context may go first.
        del engine, plan
        gc.collect()
        self.assertTrue(context.execute_async_v3(0))
        np.testing.assert_array_equal(y, x + 1)

    def test_failures_are_none_and_one_report(self):
        runtime = trt.Runtime(self.logger)
        self.logger.messages.clear()
        self.assertIsNone(runtime.deserialize_cuda_engine(b'no plan'))
        errors = [msg for severity, msg in self.logger.messages if severity == trt.ILogger.ERROR]
        self.assertEqual(len(errors), 1, self.logger.messages)
        with self.assertRaises(TypeError):
            runtime.deserialize_cuda_engine(3)

    def test_the_with_statement_warns(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            plan, self.builder = self.plan(), None
            del plan  # nothing warns of objects that go
            gc.collect()
            self.assertEqual(caught, [])
            with trt.Runtime(self.logger) as runtime:
                self.assertIsNone(runtime.deserialize_cuda_engine(b'no plan'))
            self.assertIsNone(runtime.deserialize_cuda_engine(b'no plan'))
        self.assertEqual([each.category for each in caught], [DeprecationWarning])

    def test_late_layers(self):
        network = self.builder.create_network(0)
        x = network.add_input('x', trt.float32, (1, 2, 3, 4))
        scaled = network.add_scale_nd(x, trt.ScaleMode.CHANNEL, scale=np.full(2, 3, np.float32), channel_axis=1)
        np.testing.assert_array_equal(scaled.scale.numpy(), [3, 3])
        self.assertEqual(scaled.shift.size, 0)
        attention = network.add_attention(x, x, x, trt.AttentionNormalizationOp.SOFTMAX, True)
        self.assertTrue(attention.causal)
        self.assertEqual(type(network[0]), trt.IScaleLayer)

    def test_what_a_subclass_leaves_out(self):
        with self.assertRaisesRegex(NotImplementedError, 'must define report_layer_time'):
            trt.IProfiler().report_layer_time('layer', 1.0)

    def test_progress(self):
        phases = []

        class Monitor(trt.IProgressMonitor):
            def phase_start(self, phase_name, parent_phase, num_steps):
                phases.append(phase_name)

            def step_complete(self, phase_name, step):
                return True

            def phase_finish(self, phase_name):
                phases.remove(phase_name)

        config = self.builder.create_builder_config()
        config.progress_monitor = Monitor()
        gc.collect()
        self.assertIsNotNone(self.builder.build_serialized_network(sum_network(self.builder), config))
        self.assertEqual(phases, [])
        config.progress_monitor = None
        self.assertIsNone(config.progress_monitor)


if __name__ == '__main__':
    unittest.main()
