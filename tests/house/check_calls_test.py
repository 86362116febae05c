#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of calls finds each kind of list with two boolean literals, and nothing in lists that name them."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "cmake/check_calls.py"


def check(code):
    """Exit status and text of the check on one source."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "src/ops/op.cpp")
        source.parent.mkdir(parents=True)
        source.write_text(code)
        result = subprocess.run([sys.executable, CHECK, "--root", folder], capture_output=True, text=True)
        return result.returncode, result.stdout


class CheckCalls(unittest.TestCase):
    def test_two_literals_of_one_call_are_refused(self):
        for line in ("y = multiply(a, b, false, true);", "y = multiply(true, a, /* transposed */ false);",
                     "return {x, true, true};", "Sink sink{f(x), true, false};", "run(x, {true, true}, y);",
                     "scan<true, false, T>(x);", "return {scan<T>(x), true, g<A, B>(y), true};",
                     "each([&] { return f(\n    true,\n    true); });"):
            with self.subTest(line):
                status, output = check(f"// A source.\nvoid f() {{\n  {line}\n}}\n")
                self.assertEqual(status, 1, output)
                self.assertIn("src/ops/op.cpp:3: two boolean literals", output)

    def test_what_names_them_passes(self):
        for line in ("y = multiply(a, b, {.a = true, .b = true});", "y = f(true, g(false));", 'log("f(true, true)");',
                     "for (bool fused : {true, false}) f(fused);", "if (a < b && f(true, x) > c) g(false);",
                     "// f(true, true)", "each(true, [] { f(a), true; });", "bool a = true, b = true;",
                     "void g(bool a = true, bool b = true);"):
            with self.subTest(line):
                status, output = check(f"void f() {{\n  {line}\n}}\n")
                self.assertEqual(status, 0, output)


if __name__ == "__main__":
    unittest.main()
