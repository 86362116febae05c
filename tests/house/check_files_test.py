#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of sizes counts the lines of files and of every kind of function, and wants reasons for exceptions."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "cmake/check_files.py"
LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


def lines(count):
    return "  x;\n" * count


def check(text, name="a.cpp", budgets=""):
    """Exit status and text of the check of a tree with this file, or with this text in several."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "cmake").mkdir()
        (root / "cmake/budgets.txt").write_text(budgets)
        for file in [name] if isinstance(name, str) else name:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text((LICENCE if not file.endswith(".py") else LICENCE.replace("//", "#")) + text)
        result = subprocess.run([sys.executable, CHECK, "--root", folder], capture_output=True, text=True)
        return result.returncode, result.stdout


class CheckFiles(unittest.TestCase):
    def reports(self, text, what, **options):
        status, output = check(text, **options)
        self.assertEqual(status, 1, output)
        self.assertIn(what, output)

    def passes(self, text, **options):
        status, output = check(text, **options)
        self.assertEqual(status, 0, output)

    def test_functions_of_each_kind(self):
        for head, name in {
            "void f(int a) {\n": "f",
            "namespace a {\nnamespace {\ntemplate <class T, int N = (2 > 1)>\nauto g(T x = {}) -> int {\n": "g",
            "struct S : B {\n  int y = 3;\n  bool operator()(int a) const noexcept {\n": "operator",
            "S::S(int a) : a_{a}, b_(\"}{\") {\n": "S::S",
            "class C {\n public:\n  explicit C(int a) : a_(a) {\n": "C",
            "bool operator==(const S& a, const S& b) {\n": "operator",
            "#define A {\nTEST_F(Suite, Name) {\n": "Suite.Name",
        }.items():
            with self.subTest(head):
                self.passes(head + lines(70) + "}\n")
                self.reports(head + lines(85) + "}\n", f"a.cpp:{name}: ")

    def test_the_lines_are_counted_to_the_one(self):
        self.passes("void f() {\n" + lines(78) + "}\n")
        self.reports("void f() {\n" + lines(79) + "}\n", "a.cpp:f: 81 lines, limit 80")

    def test_tables_and_classes_are_no_functions(self):
        self.passes("constexpr Row kTable[] = {\n" + lines(100) + "};\n")
        self.passes("enum class E {\n" + lines(100) + "};\n")
        self.passes("struct S {\n" + lines(100) + "};\n")

    def test_functions_of_python(self):
        self.passes("def f():\n" + "    x\n" * 79, name="a.py")
        self.reports("class C:\n    def f(self):\n" + "        x\n" * 80, "a.py:f: 81 lines, limit 80", name="a.py")

    def test_files(self):
        self.passes(lines(399))
        self.reports(lines(400), "a.cpp: 401 lines, limit 400")

    def test_exceptions(self):
        self.passes(lines(400), budgets="a.cpp 450 a table\n")
        self.reports(lines(450), "a.cpp: 451 lines, limit 450", budgets="a.cpp 450 a table\n")
        self.reports(lines(3), "a.cpp no longer needs its row", budgets="a.cpp 450 a table\n")
        self.passes("void f() {\n" + lines(90) + "}\n", budgets="a.cpp:f 100 a table\n")

    def test_two_classes_of_one_name(self):
        pair = ["src/a/x.h", "tools/y.h"]
        for text in ["struct S {\n  int a;\n};\n", "namespace n {\ntemplate <class T>\nclass S final : public B<T> {\n};\n}\n",
                     "enum class S : int { a, b };\n"]:
            with self.subTest(text):
                self.reports(text, "class:S: of src/a/x.h, tools/y.h", name=pair)
                self.passes(text, name=pair, budgets="class:S 2 the interface calls both so\n")
                self.passes(text, name=["src/a/x.cpp", "src/a/y.cpp"])  # each a file's own
        self.reports("", "class:S no longer needs its row", budgets="class:S 2 the interface calls both so\n")
        for text in ["struct S;\n", "struct S::T {\n};\n", "struct S f() {\n}\n"]:
            self.passes(text, name=pair)


if __name__ == "__main__":
    unittest.main()
