# SPDX-License-Identifier: Apache-2.0
"""What Python classes that the library calls may do: raise, return the wrong thing, leave methods out, let go of objects."""
import gc
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np

PACKAGES = pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'
sys.path.insert(0, str(PACKAGES))
from lathe import tensorrt as trt  # noqa: E402


class Silent(trt.ILogger):
    def log(self, severity, msg):
        pass


def network_of(builder, dynamic=False):
    network = builder.create_network(0)
    x = network.add_input('x', trt.float32, (2, 3))
    layer = network.add_non_zero(x) if dynamic else network.add_activation(x, trt.ActivationType.RELU)
    layer.get_output(0).name = 'y'
    network.mark_output(layer.get_output(0))
    return network


class Reported(unittest.TestCase):
    """Collects what goes to sys.unraisablehook: (type, text of the exception, where)."""

    def setUp(self):
        self.seen = []
        hook = sys.unraisablehook
        sys.unraisablehook = lambda report: self.seen.append((report.exc_type, str(report.exc_value), report.object))
        self.addCleanup(setattr, sys, 'unraisablehook', hook)
        self.logger = Silent()
        self.builder = trt.Builder(self.logger)
        self.config = self.builder.create_builder_config()

    def build(self, dynamic=False):
        return self.builder.build_serialized_network(network_of(self.builder, dynamic), self.config)

    def context(self, dynamic=False):
        return trt.Runtime(self.logger).deserialize_cuda_engine(self.build(dynamic)).create_execution_context()

    def check_seen(self, kind, text, method):
        self.assertTrue(self.seen)
        for seen_kind, seen_text, where in self.seen:
            self.assertEqual((seen_kind, where), (kind, f'[ERROR] Exception caught in {method}()'))
            self.assertIn(text, seen_text)


def monitor(**methods):
    defaults = {'phase_start': lambda self, name, parent, steps: None, 'step_complete': lambda self, name, step: True,
                'phase_finish': lambda self, name: None}
    return type('Monitor', (trt.IProgressMonitor,), defaults | methods)()


def failing(*arguments):
    raise KeyError('in a callback')


class Monitors(Reported):
    def test_exception_in_a_method_without_result(self):
        self.config.progress_monitor = monitor(phase_start=failing)
        self.assertIsNotNone(self.build())
        self.check_seen(KeyError, 'in a callback', 'phase_start')

    def test_exception_in_step_complete_ends_the_build(self):
        self.config.progress_monitor = monitor(step_complete=failing)
        self.assertIsNone(self.build())
        self.check_seen(KeyError, 'in a callback', 'step_complete')

    def test_truth_of_results(self):
        for answer, built in ((np.bool_(True), True), (1, True), (None, False), (0, False)):
            self.config.progress_monitor = monitor(step_complete=lambda self, name, step, answer=answer: answer)
            self.assertEqual(self.build() is not None, built, answer)
        self.assertEqual(self.seen, [])

    def test_method_left_out(self):
        class Empty(trt.IProgressMonitor):
            pass
        self.config.progress_monitor = Empty()
        self.assertIsNone(self.build())
        self.assertEqual({kind for kind, _, _ in self.seen}, {NotImplementedError})
        self.assertIn('Empty must define phase_start()', self.seen[0][1])

    def test_interrupt_in_a_callback_reaches_the_program(self):
        def interrupted(self, name, step):
            raise KeyboardInterrupt
        self.config.progress_monitor = monitor(step_complete=interrupted)
        with self.assertRaises(KeyboardInterrupt):
            self.build()
            for _ in range(1000):  # signals are seen between instructions
                pass
        self.assertEqual(self.seen, [])


class Loggers(Reported):
    def test_exception(self):
        class Broken(trt.ILogger):
            log = failing
        self.logger = Broken()
        self.assertIsNone(trt.Runtime(self.logger).deserialize_cuda_engine(b'no plan'))
        self.check_seen(KeyError, 'in a callback', 'log')

    def test_exception_that_is_being_unwound_stays(self):
        class Freed(trt.ILogger):
            calls = 0

            def log(self, severity, msg):
                Freed.calls += 1

        class Owner:
            def __del__(self):
                # As a destructor does while an exception passes through the frame that owned it.
                trt.Runtime(Freed()).deserialize_cuda_engine(b'no plan')

        def unwound():
            owner = Owner()  # noqa: F841
            raise ValueError('first')
        with self.assertRaisesRegex(ValueError, 'first'):
            unwound()
        gc.collect()
        self.assertGreater(Freed.calls, 0)

    def test_traceback_on_the_standard_error_stream(self):
        script = """
from lathe import tensorrt as trt
class Broken(trt.ILogger):
    def log(self, severity, msg):
        raise KeyError('lost?')
trt.Runtime(Broken()).deserialize_cuda_engine(b'no plan')
"""
        ran = subprocess.run([sys.executable, '-c', script], env=os.environ | {'PYTHONPATH': str(PACKAGES)},
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0)
        for line in ('[ERROR] Exception caught in log()', 'Traceback', "KeyError: 'lost?'"):
            self.assertEqual(ran.stderr.count(line), 1, ran.stderr)


class Allocator(trt.IOutputAllocator):
    def __init__(self, answer=None):
        super().__init__()
        self.answer, self.shapes, self.memory = answer, [], []

    def reallocate_output(self, name, memory, size, alignment):
        if self.answer is not None:
            return self.answer()
        self.memory.append(np.empty(size + 256, np.uint8))
        return self.memory[-1].ctypes.data + -self.memory[-1].ctypes.data % 256

    def notify_shape(self, name, shape):
        self.shapes.append(tuple(shape))


class Memory(Reported):
    def run_with(self, allocator):
        context = self.context(dynamic=True)
        x = np.eye(2, 3, dtype=np.float32)
        context.set_tensor_address('x', x.ctypes.data)
        self.assertTrue(context.set_output_allocator('y', allocator))
        return context.execute_async_v3(0)

    def test_output_allocator(self):
        allocator = Allocator()
        self.assertTrue(self.run_with(allocator))
        self.assertEqual(allocator.shapes, [(2, 2)])

    def test_what_is_no_address(self):
        for answer, kind in ((lambda: 'memory', TypeError), (lambda: 1.5, TypeError), (lambda: 1 << 80, OverflowError),
                             (failing, KeyError)):
            self.seen.clear()
            self.assertFalse(self.run_with(Allocator(answer)))
            self.check_seen(kind, '', 'reallocate_output')
        self.seen.clear()
        self.assertFalse(self.run_with(Allocator(lambda: 0)))
        self.assertEqual(self.seen, [])

    def test_replaced_allocators_are_let_go(self):
        context = self.context(dynamic=True)
        first = Allocator()
        context.set_output_allocator('y', first)
        references = sys.getrefcount(first)
        self.assertIs(context.get_output_allocator('y'), first)
        context.set_output_allocator('y', Allocator())
        self.assertEqual(sys.getrefcount(first), references - 1)
        context.set_output_allocator('y', None)
        self.assertIsNone(context.get_output_allocator('y'))

    def test_gpu_allocator_without_a_gpu_is_kept(self):
        class Never(trt.IGpuAllocator):
            pass
        runtime = trt.Runtime(self.logger)
        runtime.gpu_allocator = Never()
        gc.collect()
        self.assertIsNotNone(runtime.deserialize_cuda_engine(self.build()))
        with self.assertRaisesRegex(NotImplementedError, 'must define allocate'):
            Never().allocate_async(1, 1, 0, 0)
        self.assertIsNone(Never().reallocate(0, 1, 1))


class Reader(trt.IStreamReaderV2):
    def __init__(self, data, step=1 << 20, wrong=None):
        super().__init__()
        self.data, self.at, self.step, self.wrong = bytes(data), 0, step, wrong

    def read(self, num_bytes, stream):
        if self.wrong is not None:
            return self.wrong(num_bytes)
        self.at += min(num_bytes, self.step)
        return self.data[self.at - min(num_bytes, self.step):self.at]

    def seek(self, offset, where):
        self.at = offset
        return True


class Writer(trt.IStreamWriter):
    def __init__(self, answer=len):
        super().__init__()
        self.data, self.answer = b'', answer

    def write(self, data):
        self.data += data
        return self.answer(data)


class Streams(Reported):
    def test_plans_go_through_streams(self):
        writer = Writer()
        self.assertTrue(self.builder.build_serialized_network_to_stream(network_of(self.builder), self.config, writer))
        for step in (1 << 20, 100):
            engine = trt.Runtime(self.logger).deserialize_cuda_engine(Reader(writer.data, step))
            self.assertEqual([engine[0], engine[1]], ['x', 'y'])

    def test_readers_that_fail(self):
        for wrong, kind in ((failing, KeyError), (lambda size: 7, TypeError), (lambda size: b'x' * (size + 1), TypeError)):
            self.seen.clear()
            self.assertIsNone(trt.Runtime(self.logger).deserialize_cuda_engine(Reader(b'', wrong=wrong)))
            self.check_seen(kind, '', 'read')

    def test_writers_that_fail(self):
        for answer, kind in ((failing, KeyError), (lambda data: 'all', TypeError)):
            self.seen.clear()
            self.assertFalse(self.builder.build_serialized_network_to_stream(network_of(self.builder), self.config,
                                                                             Writer(answer)))
            self.check_seen(kind, '', 'write')


class Recorders(Reported):
    def test_recorder(self):
        class Recorder(trt.IErrorRecorder):
            def __init__(self):
                super().__init__()
                self.errors = []

            def report_error(self, code, desc):
                self.errors.append((code, desc))
                return False

        runtime = trt.Runtime(self.logger)
        runtime.error_recorder = recorder = Recorder()
        self.assertIsNone(runtime.deserialize_cuda_engine(b'no plan'))
        self.assertEqual(len(recorder.errors), 1)
        self.assertIsInstance(recorder.errors[0][0], trt.ErrorCodeTRT)
        self.assertEqual(trt.IErrorRecorder.MAX_DESC_LENGTH, 127)

    def test_interfaces_say_what_they_are(self):
        for interface, kind in ((Silent(), 'ILogger'), (monitor(), 'IProgressMonitor'), (Writer(), 'IStreamWriter')):
            self.assertEqual((interface.api_language, interface.interface_info.kind), (trt.APILanguage.PYTHON, kind))
        self.assertEqual(trt.Logger().api_language, trt.APILanguage.CPP)


if __name__ == '__main__':
    unittest.main()
