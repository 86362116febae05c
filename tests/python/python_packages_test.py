# SPDX-License-Identifier: Apache-2.0
"""The packages tensorrt, tensorrt_lean and tensorrt_dispatch: each alone, several at once, and a program with either."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGES = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve() / 'python'
ENVIRONMENT = os.environ | {'PYTHONPATH': f'{PACKAGES}:{PACKAGES / "compat"}'}
NAMES = ('tensorrt', 'tensorrt_lean', 'tensorrt_dispatch')

BUILD = """
import tensorrt as trt
builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
network = builder.create_network(0)
x = network.add_input('x', trt.float32, (2, 3))
network.mark_output(network.add_activation(x, trt.ActivationType.RELU).get_output(0))
open('net.plan', 'wb').write(builder.build_serialized_network(network, builder.create_builder_config()))
"""

# Only the import is another one.
RUN = """
import {name} as trt
import numpy as np
runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
engine = runtime.deserialize_cuda_engine(open('net.plan', 'rb').read())
context = engine.create_execution_context()
x, y = np.array([[-1, 2, -3], [4, -5, 6]], np.float32), np.zeros((2, 3), np.float32)
names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
for name in names:
    is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
    assert context.set_tensor_address(name, (x if is_input else y).ctypes.data)
assert context.execute_async_v3(0)
assert (y == np.maximum(x, 0)).all(), y
print(trt.__version__)
"""


class Packages(unittest.TestCase):
    def run_script(self, script):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, '-c', BUILD], cwd=folder, env=ENVIRONMENT, check=True)
            done = subprocess.run([sys.executable, '-c', script], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_numpy_is_imported_when_it_is_needed(self):
        script = """
import sys
import lathe, tensorrt
from lathe import tensorrt as trt
runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
engine = runtime.deserialize_cuda_engine(open('net.plan', 'rb').read())
assert engine.create_execution_context() is not None
print('numpy' in sys.modules, lathe.load('net.plan').inputs, 'numpy' in sys.modules)
"""
        self.assertEqual(' '.join(self.run_script(script)), "False {'x': (<class 'numpy.float32'>, (2, 3))} True")

    # S183, S184.
    def test_one_program_with_each(self):
        versions = {tuple(self.run_script(RUN.format(name=name))) for name in NAMES}
        self.assertEqual(len(versions), 1, versions)

    # S183.
    def test_what_each_has(self):
        for name in NAMES:
            with self.subTest(name):
                classes = 'Builder', 'OnnxParser', 'INetworkDefinition', 'Runtime', 'ICudaEngine'
                found = self.run_script(f'import {name} as trt; print(*(hasattr(trt, each) for each in {classes}))')
                builds = str(name == 'tensorrt')
                self.assertEqual(found, [builds, builds, builds, 'True', 'True'])

    # S184.
    def test_several_at_once(self):
        script = 'import tensorrt, tensorrt_lean, tensorrt_dispatch\n' + RUN.format(name='tensorrt_dispatch')
        self.run_script(script + 'assert tensorrt.Runtime is tensorrt_lean.Runtime is tensorrt_dispatch.Runtime')


if __name__ == '__main__':
    unittest.main()
