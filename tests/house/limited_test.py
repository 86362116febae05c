#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/limited.py ends what spends too much processor time, and nothing else; its parts make up the whole."""
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

LIMITED = pathlib.Path(__file__).resolve().parents[1] / "limited.py"
SPIN = "while True: pass"
SUITE = """
    import unittest
    class One(unittest.TestCase):
        def test_a(self): pass
        def test_b(self): pass
        def test_c(self): self.fail()
    class Two(unittest.TestCase):
        def test_d(self): pass
        def test_e(self): pass
"""


def limited(*words):
    return subprocess.run([sys.executable, LIMITED, *map(str, words)], capture_output=True, text=True)


class Limited(unittest.TestCase):
    def test_processor_time_is_limited(self):
        result = limited("--seconds=0.5", sys.executable, "-c", SPIN)
        self.assertEqual(result.returncode, 124, result.stderr)
        self.assertIn("of processor time, its limit is 0.5 s", result.stdout)

    def test_time_of_children_counts_and_they_end_too(self):
        child = f"import subprocess, sys; print('x', flush=True); subprocess.run([sys.executable, '-c', {SPIN!r}])"
        self.assertEqual(limited("--seconds=0.5", sys.executable, "-c", child).returncode, 124)
        # It would not come back if the child held its output open.

    def test_time_of_children_that_ended_counts(self):
        burn = "import time\nwhile time.process_time() < 0.4: pass"
        many = f"import subprocess, sys\nfor _ in range(100): subprocess.run([sys.executable, '-c', {burn!r}])"
        self.assertEqual(limited("--seconds=1", sys.executable, "-c", many).returncode, 124)

    def test_waiting_is_free(self):
        self.assertEqual(limited("--seconds=0.6", sys.executable, "-c", "import time; time.sleep(1.5)").returncode, 0)

    def test_status_and_signal_are_the_command_s_own(self):
        self.assertEqual(limited("sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(limited("sh", "-c", "kill -SEGV $$").returncode, -11)

    def test_parts_of_google_tests(self):
        result = limited("--part=1/4", "sh", "-c", "echo $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS")
        self.assertEqual(result.stdout, "1 of 4\n")

    def test_parts_of_python_suites(self):
        with tempfile.TemporaryDirectory() as folder:
            suite = pathlib.Path(folder, "some_test.py")
            suite.write_text(textwrap.dedent(SUITE))
            results = [limited(f"--part={part}/3", sys.executable, suite) for part in range(3)]
            ran = [line.split()[0] for result in results for line in result.stderr.splitlines() if line.startswith("test_")]
            self.assertEqual(sorted(ran), ["test_a", "test_b", "test_c", "test_d", "test_e"])
            self.assertEqual([result.returncode for result in results], [0, 0, 1])
            empty = limited("--part=5/6", sys.executable, suite)
            self.assertNotEqual(empty.returncode, 0)
            self.assertIn("has no tests", empty.stderr)


if __name__ == "__main__":
    unittest.main()
