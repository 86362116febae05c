#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/operating.md: a supervisor, and memory of a GPU within limits."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve()
DIGITS, SEVEN = ROOT / "examples/digits/digits.onnx", ROOT / "examples/cpp/seven.txt"
EMULATED = {"LATHE_TARGET": "cuda", "LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so")}


def run(program, *arguments, **environment):
    return subprocess.run([BUILD / "bin" / program, *map(str, arguments)], capture_output=True, text=True, timeout=100,
                          env={**os.environ, **environment})


class Supervisor(unittest.TestCase):
    # S88
    def test_workers_that_are_lost_are_followed_by_others(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder, "digits.plan")
            self.assertEqual(run("example_classify", DIGITS, SEVEN, plan).returncode, 0)
            done = run("example_supervisor", plan, SEVEN, 3)
            self.assertEqual(done.returncode, 0, done.stdout)
            lines = re.sub(r"after \d+ ms", "after MS", done.stdout).splitlines()
            first = "worker {}: digit 7, the first answer after MS"
            self.assertEqual(lines, [first.format(1), "worker 1: lost after 1 answers", first.format(2),
                                     "worker 2: lost after 1 answers", first.format(3), "worker 3: all 3 answers"])
            self.assertLess(max(map(int, re.findall(r"after (\d+) ms", done.stdout))), 5000)

    def test_no_worker_follows_one_that_cannot_start(self):
        done = run("example_supervisor", SEVEN, SEVEN)
        self.assertEqual((done.returncode, done.stdout), (1, ""))


class MemoryLimits(unittest.TestCase):
    # S139
    def test_refusals_are_records_that_programs_can_read(self):
        done = run("example_memory_limits", DIGITS, 0, 0, **EMULATED)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        *records, end = done.stdout.splitlines()
        self.assertIn("the engine does not fit", end)
        for record in map(json.loads, records):
            self.assertEqual((record["event"], record["most"], record["used"]), ("refused", 0, 0))
            self.assertGreater(record["bytes"], 0)
        self.assertTrue(records)
        self.assertIn("LATHE-", done.stderr)

    def test_what_fits_is_given_back(self):
        done = run("example_memory_limits", DIGITS, 64, 0, **EMULATED)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^the engine is ready: at most [1-9]\d* KiB were in use, 0 times there was no more, "
                                      r"0 bytes are left\n$")

    def test_a_cpu_asks_for_none(self):
        done = run("example_memory_limits", DIGITS, 0, 0, LATHE_TARGET="cpu")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("it is for a CPU", done.stdout)


if __name__ == "__main__":
    unittest.main()
