#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sources share a translation unit only where neither sees what the other defines for itself."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

GROUPS = pathlib.Path(__file__).resolve().parents[2] / "cmake/unity_groups.py"


def groups(sources, headers=None):
    """The sets of names that share a group."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in {**sources, **(headers or {})}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        listing = "".join(f"target|{root / name}\n" for name in sources)
        result = subprocess.run([sys.executable, GROUPS, "--root", root], input=listing, capture_output=True, text=True,
                                check=True)
        found = {}
        for line in result.stdout.splitlines():
            group, path = line.split("|")
            found.setdefault(group, set()).add(pathlib.Path(path).stem)
        return list(found.values())


class UnityGroups(unittest.TestCase):
    def together(self, one, other, **headers):
        self.assertEqual(groups({"f/a.cpp": one, "f/b.cpp": other}, **headers), [{"a", "b"}])

    def apart(self, one, other, **headers):
        self.assertEqual(groups({"f/a.cpp": one, "f/b.cpp": other}, **headers), [])

    def test_functions_that_each_gives_another_body(self):
        self.apart("namespace n { int f() { return 1; } }", "namespace n { int f() { return 2; } }")
        self.together("namespace n { int f() { return 1; } }", "namespace n { int f(int) { return 2; } }")
        self.together("namespace n { int f() { return 1; } }", "namespace m { int f() { return 2; } }")

    def test_names_of_their_own(self):
        self.together("namespace { int f() { return 1; } }", "namespace { int g() { return 2; } }")
        self.apart("namespace { int f() { return 1; } }", "namespace { int f() { return 2; } }")
        self.apart("namespace { int f() { return 1; } }", "int g() { return f(); }")
        self.apart("static int f() { return 1; }", "int g() { return f(1.5); }")
        self.apart("constexpr int kSize = 1;", "constexpr int kSize = 2;")
        self.apart("namespace a { struct Plan {}; }", "namespace a { int g(Plan&); }")
        self.apart("namespace { template <class T, int N = 3>\nT f(T x) { return x; } }", "int g() { return f(1); }")
        self.apart("using Op = int;", "using Op = long;")
        self.apart("enum Input { kX, kW = 3 };", "enum Operand : long { kA, kX };")
        self.together("enum class Input { kX };", "enum class Operand { kX };")
        self.apart("#define SIZE 3\nint x[SIZE];", "int SIZE = 4;")
        self.apart("namespace m = lathe::math;", "namespace m = lathe::maps;")

    def test_what_others_see_anyway_is_no_obstacle(self):
        self.together("int f() { return 1; }", "int f();\nint g() { return f(); }")
        self.together("using lathe::Expr;\nExpr a();", "using lathe::Expr;\nExpr b();")
        self.together("namespace { int f() { return 1; } }", "int g(A& a) { return a.f() + B::f() + sizeof(\"f()\"); } // f")

    def test_headers_that_only_one_includes(self):
        headers = {"f/h.h": "namespace a { int f(long x); }"}
        self.apart("namespace a { namespace { int f(int x) { return x; } } }", '#include "f/h.h"\nint g();', headers=headers)
        self.together("namespace a { namespace { int e(int x) { return x; } } }", '#include "f/h.h"\nint g();',
                      headers=headers)

    def test_using_directives_and_prepared_headers(self):
        self.apart("using namespace a;\nint f();", "int g();")
        self.apart("#define SETTING 1\n#include <vector>", "int g();")
        self.together("#define ROW(x) x,\n#include \"rows.def\"\n#undef ROW", "#define ROW(x) x;\n#include \"rows.def\"\n#undef ROW")
        row = "#define ROW(x) x,\n#include \"f/rows.def\""
        self.together(row, row, headers={"f/rows.def": "ROW(a)\n#undef ROW"})
        self.apart(row, row, headers={"f/rows.def": "ROW(a)"})

    def test_what_is_kept_holds_until_a_source_changes(self):
        with tempfile.TemporaryDirectory() as name:
            root, kept = pathlib.Path(name).resolve(), pathlib.Path(name) / "kept"
            (root / "f").mkdir()
            sources = [root / "f/a.cpp", root / "f/b.cpp"]

            def rows(text):
                for source in sources:
                    source.write_text(text)
                return subprocess.run([sys.executable, GROUPS, "--root", root, "--kept", kept], capture_output=True, text=True,
                                      input="".join(f"target|{source}\n" for source in sources), check=True).stdout

            together = rows("")
            self.assertEqual(len(together.splitlines()), 2)
            kept.write_text(kept.read_text().replace("f_0", "kept"))
            self.assertEqual(rows(""), together.replace("f_0", "kept"))
            self.assertEqual(rows("static int x;"), "")
            self.assertEqual(rows(""), together)

    def test_folders_and_sizes(self):
        self.assertEqual(groups({"f/a.cpp": "", "g/b.cpp": ""}), [])
        sizes = [len(group) for group in groups({f"f/a{i}.cpp": "" for i in range(49)})]
        self.assertEqual(sorted(sizes), [24, 24])


if __name__ == "__main__":
    unittest.main()
