#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eight processes, of C++ and of Python, share one artifact cache and one runtime cache, and one of them is killed every second.

Answers stay right, files whole, and nobody waits for ever. For a few seconds as a test; `--seconds 600` for longer.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve()
LATHE = BUILD / "bin/lathe"
SECONDS = float(sys.argv.pop(sys.argv.index("--seconds") + 1)) if "--seconds" in sys.argv else 8
if "--seconds" in sys.argv:
    sys.argv.remove("--seconds")
PROCESSES, BATCHES, ROUNDS = 8, (1, 2, 3, 4), 5
TARGET = "sm_80+"  # its plans hold PTX, which is compiled when an engine is loaded
# So little that engines and kernels have to go, and are made again.
MOST_ENGINES, MOST_KERNELS = 150_000, 30_000
PATIENCE = 300  # seconds, after which whoever has not come to an end counts as stuck
WEIGHTS = np.random.default_rng(1).integers(-9, 10, (4, 3)).astype(np.float32)  # of which TF32 loses nothing


def write_model(path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    graph = helper.make_graph(nodes, "product", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])], [numpy_helper.from_array(WEIGHTS, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def values(batch):
    return np.random.default_rng(batch).integers(-9, 10, (batch, 4)).astype(np.float32)


def check(x, y):
    np.testing.assert_array_equal(y, np.maximum(x @ WEIGHTS, 0))


def work(folder, chosen):
    """A process of Python: some rounds of both caches."""
    sys.path.insert(0, str(BUILD / "python"))
    from lathe import _tensorrt
    from lathe import tensorrt as trt
    logger = trt.Logger(trt.Logger.ERROR)
    for batch in chosen:
        request = {"onnx": f"{folder}/net.onnx", "target": TARGET, "batch": batch, "budget_seconds": 0}
        plan = bytes(_tensorrt._artifact_plan(json.dumps(request), logger, MOST_ENGINES))
        runtime = trt.Runtime(logger)
        runtime._set_runtime_cache_file(f"{folder}/kernels.cache", MOST_KERNELS)
        engine = runtime.deserialize_cuda_engine(plan)
        context = engine.create_execution_context()
        x, y = values(batch), np.empty((batch, 3), np.float32)
        assert context.set_tensor_address("x", x.ctypes.data) and context.set_tensor_address("y", y.ctypes.data)
        assert context.execute_async_v3(0)
        check(x, y)


class Worker(threading.Thread):
    """One process after the other, until it is told to stop."""

    def __init__(self, folder, number):
        super().__init__()
        self.folder, self.number, self.random = folder, number, random.Random(number)
        self.process, self.killed, self.stops = None, False, False
        self.finished, self.ended_at, self.problem = 0, time.monotonic(), None
        self.lock = threading.Lock()

    def run_process(self, *command):
        """Whether it has come to its end by itself; what goes wrong then is a problem."""
        with self.lock:
            self.killed = False
            self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said, _ = self.process.communicate()
        self.ended_at = time.monotonic()
        with self.lock:
            if self.killed:
                return False
        if self.process.returncode != 0:
            self.problem = f"{command}: {self.process.returncode}\n{said}"
        return self.problem is None

    def kill(self):
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                return False
            self.killed = True
            self.process.kill()
            return True

    def of_cpp(self):
        batch = self.random.choice(BATCHES)
        engine, out = self.folder / f"{self.number}.engine", self.folder / f"out{self.number}"
        np.save(self.folder / f"x{self.number}.npy", values(batch))
        done = (self.run_process(LATHE, "cache", "get", self.folder / "net.onnx", f"--target={TARGET}", f"--batch={batch}", "--budget=0",
                                 f"--mostBytes={MOST_ENGINES}", "-o", engine) and
                self.run_process(LATHE, "run", engine, f"--runtimeCacheFile={self.folder / 'kernels.cache'}",
                                 f"--loadInputs=x:{self.folder / f'x{self.number}.npy'}", f"--exportOutput={out}"))
        if done:
            check(values(batch), np.load(next(out.glob("*.npy"))))
        return done

    def of_python(self):
        chosen = [str(self.random.choice(BATCHES)) for _ in range(ROUNDS)]
        return self.run_process(sys.executable, __file__, "--work", self.folder, *chosen)

    def run(self):
        try:
            while self.problem is None and not (self.stops and self.finished > 0):
                self.finished += self.of_cpp() if self.number % 2 else self.of_python()
        except Exception as error:  # of a comparison: told by the main thread
            self.problem = repr(error)


class SharedCaches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        code = tempfile.TemporaryDirectory()
        cls.addClassCleanup(code.cleanup)
        emulated = mock.patch.dict(os.environ, {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                                                "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CACHE_DIR": code.name})
        emulated.start()
        cls.addClassCleanup(emulated.stop)

    # S225, S238, S247.
    def test_processes_that_are_killed(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_model(folder / "net.onnx")
            workers = [Worker(folder, number) for number in range(PROCESSES)]
            for worker in workers:
                worker.start()
            kills = self.kill_some(workers)
            finished = [worker.finished for worker in workers]
            for worker in workers:  # each comes to an end once more when nobody is killed
                worker.finished, worker.stops = 0, True
            for worker in workers:
                worker.join(PATIENCE)
                stuck = worker.is_alive() and worker.kill()
                self.assertFalse(stuck, f"process {worker.number} is stuck")
                self.assertIsNone(worker.problem)
            self.check_files(folder)
        print(f"{PROCESSES} processes, {SECONDS:g} s: {kills} were killed, {sum(finished)} came to their end before that was over, "
              f"by process {finished}", file=sys.stderr)
        self.assertGreater(kills, 0)

    def kill_some(self, workers):
        """One each second; gives how many. Who has not come to an end for long fails the test."""
        kills, chosen, until = 0, random.Random(0), time.monotonic() + SECONDS
        while time.monotonic() < until and all(worker.problem is None for worker in workers):
            time.sleep(1)
            kills += any(worker.kill() for worker in chosen.sample(workers, len(workers)))
            self.assertLess(max(time.monotonic() - worker.ended_at for worker in workers), PATIENCE, "a process is stuck")
        return kills

    def check_files(self, folder):
        told = subprocess.run([LATHE, "cache", "verify", folder], capture_output=True, text=True)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        self.assertIn("0 of no use", told.stdout + told.stderr)
        # Whatever the killed ones had begun goes with the next that is written.
        self.assertLessEqual({path.suffix for path in folder.glob("kernels.cache*")}, {".cache", ".lock", ".tmp"})
        loads = ("import sys; sys.path.insert(0, sys.argv[1])\nfrom lathe import tensorrt as trt\n"
                 "runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))\n"
                 "engine = runtime.deserialize_cuda_engine(open(sys.argv[2], 'rb').read())\n"
                 "cache = engine.create_runtime_config().create_runtime_cache()\n"
                 "assert cache._load(sys.argv[3])\nprint(cache._json())")
        done = subprocess.run([sys.executable, "-c", loads, BUILD / "python", folder / "1.engine", folder / "kernels.cache"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["kernels"], 0)


if __name__ == "__main__":
    if "--work" in sys.argv:
        work(sys.argv[2], map(int, sys.argv[3:]))
    else:
        unittest.main()
