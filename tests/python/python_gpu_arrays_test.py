# SPDX-License-Identifier: Apache-2.0
"""lathe.Engine on arrays of a GPU, which is emulated: __cuda_array_interface__ and DLPack, streams, and what is refused."""
import ctypes
import faulthandler
import json
import os
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

BUILD = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve()
DRIVER = BUILD / 'fake_cuda' / 'libfake_cuda_driver.so'
FOLDER = tempfile.TemporaryDirectory()
os.environ |= {'LATHE_CUDA_DRIVER': str(DRIVER), 'LATHE_NVRTC': str(BUILD / 'fake_cuda' / 'libnvrtc.so'),
               'LATHE_CACHE_DIR': FOLDER.name}
sys.path.insert(0, str(BUILD / 'python'))
import lathe  # noqa: E402
from lathe import tensorrt as trt  # noqa: E402

# Whole numbers, of which TF32 loses nothing.
WEIGHTS = np.random.default_rng(1).integers(-9, 10, (4, 3)).astype(np.float32)


def model():
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['m']), helper.make_node('Relu', ['m'], ['y'])]
    graph = helper.make_graph(nodes, 'test', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 4])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', 3])],
                              [onnx.numpy_helper.from_array(WEIGHTS, 'w')])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8).SerializeToString()


class Gpu:
    """The driver, with the context of the first device."""

    def __init__(self):
        self.driver = ctypes.CDLL(str(DRIVER))
        self.called('cuInit', 0)
        context = ctypes.c_void_p()
        self.called('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)
        self.called('cuCtxPushCurrent_v2', context)

    def called(self, name, *arguments):
        error = getattr(self.driver, name)(*arguments)
        assert error == 0, f'{name}: {error}'

    def stream(self):
        stream = ctypes.c_void_p()
        self.called('cuStreamCreate', ctypes.byref(stream), 1)
        return stream.value


class GpuArray:
    """Memory of the device, which the host can read as this device is emulated."""

    def __init__(self, gpu, values, stream=None, read_only=False):
        self.gpu, self.producer, self.read_only = gpu, stream, read_only
        address = ctypes.c_uint64()
        gpu.called('cuMemAlloc_v2', ctypes.byref(address), ctypes.c_size_t(max(values.nbytes, 1)))
        self.address = address.value
        memory = (ctypes.c_uint8 * values.nbytes).from_address(self.address)
        self.host = np.frombuffer(memory, values.dtype).reshape(values.shape)
        self.host[...] = values
        self.strides = None

    def __del__(self):
        self.gpu.driver.cuMemFree_v2(ctypes.c_uint64(self.address))


class WithInterface(GpuArray):
    @property
    def __cuda_array_interface__(self):
        return {'shape': self.host.shape, 'typestr': self.host.dtype.str, 'data': (self.address, self.read_only), 'version': 3,
                'strides': self.strides, 'stream': self.producer}


class WithDlpack(GpuArray):
    """NumPy's own description of the memory, said to be a GPU's."""

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        self.asked = stream
        return self.host.__dlpack__()


def expected(x):
    return np.maximum(x @ WEIGHTS, 0)


class GpuArrays(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = lathe.build(model(), shapes={'x': ((1, 4), (2, 4), (8, 4))}, target='cuda', budget=0)
        cls.gpu = Gpu()
        cls.x = np.random.default_rng(2).integers(-9, 10, (5, 4)).astype(np.float32)

    def outputs(self, rows=5, kind=WithInterface):
        return kind(self.gpu, np.zeros((rows, 3), np.float32))

    def test_both_protocols(self):
        self.assertTrue(self.engine.is_on_gpu)
        for kind in (WithInterface, WithDlpack):
            x, y = kind(self.gpu, self.x), self.outputs(kind=kind)
            result = self.engine.run({'x': x}, {'y': y})
            self.gpu.called('cuStreamSynchronize', None)
            self.assertIs(result['y'], y)
            np.testing.assert_array_equal(y.host, expected(self.x))

    def test_streams(self):
        stream, producer = self.gpu.stream(), self.gpu.stream()
        x, y = WithDlpack(self.gpu, self.x), WithInterface(self.gpu, np.zeros((5, 3), np.float32), producer)
        self.engine.run({'x': x}, {'y': y}, stream)
        self.gpu.called('cuStreamSynchronize', ctypes.c_void_p(stream))
        self.assertEqual(x.asked, stream)
        np.testing.assert_array_equal(y.host, expected(self.x))
        self.engine.run({'x': x}, {'y': self.outputs()})
        self.assertEqual(x.asked, 1)  # the default stream, as DLPack calls it
        gone = WithInterface(self.gpu, self.x, 0xdead)
        with self.assertRaisesRegex(RuntimeError, '0xdead.*cannot be waited for'):
            self.engine.run({'x': gone}, {'y': y})

    def test_bound(self):
        stream = self.gpu.stream()
        x, y = WithInterface(self.gpu, self.x), self.outputs()
        run = self.engine.bind({'x': x, 'y': y}, stream)
        for factor in (1, -2):
            x.host[...] = factor * self.x
            run()
            self.gpu.called('cuStreamSynchronize', ctypes.c_void_p(stream))
            np.testing.assert_array_equal(y.host, expected(factor * self.x))

    def test_shapes_of_outputs(self):
        self.assertEqual(self.engine.output_shapes({'x': (7, 4)}), {'y': (7, 3)})
        with self.assertRaises(lathe.Error):
            self.engine.output_shapes({'x': (9, 4)})

    def test_refusals(self):
        x, y = WithInterface(self.gpu, self.x), self.outputs()
        strided = WithInterface(self.gpu, self.x)
        strided.strides = (32, 4)
        transposed = WithDlpack(self.gpu, self.x)
        transposed.host = transposed.host.T
        cases = [({'x': self.x}, {'y': y}, 'not in the memory of a GPU'), ({'x': x}, {'y': np.zeros((5, 3), np.float32)}, 'not in'),
                 ({'x': WithInterface(self.gpu, self.x.astype(np.float64))}, {'y': y}, 'float32, got f8'),
                 ({'x': WithDlpack(self.gpu, self.x.astype(np.int64))}, {'y': y}, 'float32, got i8'),
                 ({'x': strided}, {'y': y}, 'contiguous'), ({'x': transposed}, {'y': y}, 'contiguous'),
                 ({'x': x}, {'y': self.outputs(4)}, r'shape \(5, 3\)'), ({'x': x}, {}, 'takes outputs'),
                 ({'x': x}, {'y': WithInterface(self.gpu, y.host, read_only=True)}, 'written to'), ({'x': x}, None, 'are given as arrays')]
        for feeds, outputs, text in cases:
            with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                self.engine.run(feeds, outputs)
        with self.assertRaises(lathe.Error):
            self.engine.run({'x': WithInterface(self.gpu, np.zeros((9, 4), np.float32))}, {'y': y})


class RuntimeCaches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, 'kernels.cache')
        self.gpu = Gpu()

    def check_runs(self, engine, rows=3):
        x = np.random.default_rng(rows).integers(-9, 10, (rows, 4)).astype(np.float32)
        y = WithInterface(self.gpu, np.zeros((rows, 3), np.float32))
        engine.run({'x': WithInterface(self.gpu, x)}, {'y': y})
        self.gpu.called('cuStreamSynchronize', None)
        np.testing.assert_array_equal(y.host, expected(x))

    def kernels(self, engine):
        """How many are in the file."""
        cache = engine._engine.create_runtime_config().create_runtime_cache()
        self.assertTrue(cache._load(str(self.path)))
        return json.loads(cache._json())['kernels']

    # S224, S225, S236, S237: the file of a part of a program has what was compiled there, and spares it the next one.
    def test_of_a_part_of_a_program(self):
        engine = lathe.build(model(), shapes={'x': ((1, 4), (2, 4), (8, 4))}, target='cuda', budget=0)
        eager = trt.DynamicShapesKernelSpecializationStrategy.EAGER
        for part in range(2):
            with engine.strategies(specialization=eager, runtime_cache=self.path):
                self.check_runs(engine)
                counts = json.loads(engine._context.get_runtime_config().get_runtime_cache()._json())
            self.assertEqual(counts['compiled'] == 0, part == 1, counts)
            engine = lathe.Engine(engine.plan)
            self.check_runs(engine)
        self.assertGreater(self.kernels(engine), 0)
        with self.assertRaises(ZeroDivisionError), engine.strategies(specialization=eager, runtime_cache=self.path):
            self.check_runs(engine, 4)
            raise ZeroDivisionError
        self.assertIsNone(engine._context.get_runtime_config().get_runtime_cache())
        self.assertGreater(self.kernels(engine), counts['kernels'])


    # S224, S225, S236: the file of an engine.
    def test_of_an_engine(self):
        plan = self.path.with_name('model.engine')
        lathe.build(model(), shapes={'x': ((1, 4), (2, 4), (8, 4))}, target='cuda', budget=0).save(plan)
        files = []
        for _ in range(2):
            engine = lathe.load(plan, runtime_cache=self.path)
            with engine.strategies(specialization=trt.DynamicShapesKernelSpecializationStrategy.EAGER):
                self.check_runs(engine)
            del engine
            files.append(self.path.stat().st_ino)  # a file that is written is a new one
        self.assertEqual(*files, 'the second start has compiled something')
        self.assertGreater(self.kernels(lathe.load(plan)), 0)

    # Its destructor waits for the threads that make kernels, and these for the interpreter, as the logger is of Python.
    def test_an_engine_goes_while_its_kernels_are_made(self):
        engine = lathe.build(model(), shapes={'x': ((1, 4), (2, 4), (8, 4))}, target='cuda', budget=0)
        faulthandler.dump_traceback_later(300, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        for rows in range(1, 5):
            engine = lathe.Engine(engine.plan, runtime_cache=self.path)
            self.check_runs(engine, rows)


class HostOutputs(unittest.TestCase):
    def test_outputs_that_are_given(self):
        engine = lathe.build(model(), shapes={'x': ((1, 4), (2, 4), (8, 4))})
        x, y = np.random.default_rng(3).integers(-9, 10, (5, 4)).astype(np.float32), np.zeros((5, 3), np.float32)
        self.assertIs(engine.run({'x': x}, {'y': y})['y'], y)
        np.testing.assert_array_equal(y, expected(x))
        np.testing.assert_array_equal(engine(x), y)
        with self.assertRaisesRegex(lathe.Error, 'stream'):
            engine.run({'x': x}, stream=4096)


if __name__ == '__main__':
    unittest.main()
