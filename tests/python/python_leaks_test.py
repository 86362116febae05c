# SPDX-License-Identifier: Apache-2.0
"""When programs end, no object, class or function of the extension module is left: nanobind would tell of each."""
import os
import pathlib
import subprocess
import sys
import unittest

PACKAGES = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve() / 'python'
TESTS = pathlib.Path(__file__).resolve().parent
START = f"""
import gc, sys, unittest
sys.path[:0] = [{str(PACKAGES)!r}, {str(TESTS)!r}]
from lathe import _tensorrt
_tensorrt._set_leak_warnings(True)
"""
SUITE = """
import {suite}
result = unittest.TextTestRunner(stream=open('/dev/null', 'w')).run(unittest.defaultTestLoader.loadTestsFromModule({suite}))
assert result.wasSuccessful(), result.failures + result.errors
del result
"""
LEFT = """
from lathe import tensorrt as trt
kept = trt.Builder(trt.Logger())
class Cycle(trt.ILogger):
    pass
cycle = Cycle()
cycle.itself = cycle
sys.modules['kept for ever'] = (kept, cycle)
import ctypes
ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
"""


def ended(script):
    return subprocess.run([sys.executable, '-c', START + script], capture_output=True, text=True)


class Leaks(unittest.TestCase):
    def test_suites(self):
        for suite in ('python_engine_test', 'python_tensorrt_test', 'python_callbacks_test', 'python_plugin_test',
                      'python_plugin_errors_test', 'python_function_plugin_test'):
            with self.subTest(suite):
                done = ended(SUITE.format(suite=suite))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn('nanobind', done.stderr)

    def test_a_leak_is_told(self):
        self.assertIn('nanobind: leaked', ended(LEFT).stderr)


if __name__ == '__main__':
    unittest.main()
