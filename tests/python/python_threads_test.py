# SPDX-License-Identifier: Apache-2.0
"""Threads of Python: runs let each other go on, callbacks and plugins of several contexts come in between, nothing waits for ever."""
import faulthandler
import pathlib
import sys
import threading
import time
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pad_plugin import PadCreator, WithPlugins, trt  # noqa: E402
import lathe  # noqa: E402

SECONDS = 2


class Threads(WithPlugins):
    def together(self, *functions):
        """Runs each again and again in a thread of its own; returns how often each ran."""
        counts, failures, until = [0] * len(functions), [], time.monotonic() + SECONDS

        def loop(index):
            try:
                while time.monotonic() < until:
                    functions[index]()
                    counts[index] += 1
            except BaseException as failure:
                failures.append(failure)
        threads = [threading.Thread(target=loop, args=(index,), daemon=True) for index in range(len(functions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS + 60)
            if thread.is_alive():
                faulthandler.dump_traceback()
                self.fail('a thread waits for ever')
        self.assertEqual(failures, [])
        self.assertTrue(all(counts), counts)
        return counts

    def test_contexts_with_plugins_allocators_and_the_registry(self):
        self.register(PadCreator())
        engine = trt.Runtime(self.logger).deserialize_cuda_engine(self.plan(self.pad(1, 1)))

        class Allocator(trt.IOutputAllocator):
            def reallocate_output(self, name, memory, size, alignment):
                self.memory = np.empty(size + 256, np.uint8)
                return self.memory.ctypes.data + -self.memory.ctypes.data % 256

            def notify_shape(self, name, shape):
                self.shape = tuple(shape)

        def run():
            context, allocator, x = engine.create_execution_context(), Allocator(), np.ones((2, 3), np.float32)
            context.set_tensor_address('x0', x.ctypes.data)
            context.set_output_allocator('y0', allocator)
            for _ in range(3):
                assert context.execute_async_v3(0)
            assert allocator.shape == (2, 5)

        def ask():
            assert trt.get_plugin_registry().get_creator('Pad', '1', 'tests') is not None
            assert trt.get_plugin_registry().all_creators

        def build():
            assert self.plan(self.pad(0, 1)) is not None

        self.together(run, run, ask, build)
        self.assertEqual(self.seen, [])

    def test_python_goes_on_while_an_engine_runs(self):
        builder = trt.Builder(self.logger)
        network = builder.create_network(0)
        x = network.add_input('x', trt.float32, (768, 768))
        product = x
        for _ in range(4):
            product = network.add_matrix_multiply(product, trt.MatrixOperation.NONE, x, trt.MatrixOperation.NONE).get_output(0)
        network.mark_output(product)
        self.config._build_budget = 0.0
        engine = lathe.Engine(bytes(builder.build_serialized_network(network, self.config)), threads=1)
        array = np.zeros((768, 768), np.float32)
        until, ran = time.monotonic() + SECONDS, 0
        switch = sys.getswitchinterval()
        finished = threading.Event()

        def run():
            nonlocal ran
            while time.monotonic() < until:
                engine(array)
                ran += 1
            finished.set()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        steps = 0
        while not finished.is_set():
            steps += 1
        thread.join(60)
        # With the interpreter held, this loop would make one step for each run, or for each switch between threads.
        self.assertGreater(ran, 0)
        self.assertGreater(steps, 100 * (ran + SECONDS / switch / 10), (steps, ran))


if __name__ == '__main__':
    unittest.main()
