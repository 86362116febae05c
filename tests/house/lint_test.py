#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lint fails when it runs out of time, looks at each source that is built, and again only at what has changed."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import lint  # noqa: E402
import unity_groups  # noqa: E402


class MayLack(unittest.TestCase):
    """Which sources compile only for what comes before them."""

    def check(self, source, header="struct Grid { int size; };\nint area(const Grid& grid);\n", own=""):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            (folder / "grid.h").write_text(header)
            (folder / "own.h").write_text(own)
            (folder / "other.cpp").write_text('#include "grid.h"\n')
            (folder / "source.cpp").write_text('#include "own.h"\n' + source)
            return unity_groups.Tree((folder,)).may_lack(folder / "source.cpp", {folder / "other.cpp"})

    def test_types_functions_and_macros_of_others(self):
        self.assertTrue(self.check("Grid g;"))
        self.assertTrue(self.check("int a(int& x) { return area(x); }"))
        self.assertTrue(self.check("int a() { return CELLS; }", header="#define CELLS 4\n"))
        self.assertTrue(self.check("int a() { return grids::kCells; }", header="namespace grids { constexpr int kCells = 4; }\n"))

    def test_what_is_only_declared_before_it_is_used_whole(self):
        self.assertTrue(self.check("int size(const Grid& g) { return g.size; }", own="struct Grid;\n"))

    def test_own_names_and_locals(self):
        self.assertFalse(self.check("int count() { return 4; }"))
        self.assertFalse(self.check("int f(int area) { return area + 1; }"))
        self.assertFalse(self.check("Grid g;", own='#include "grid.h"\n'))


class MayPrecede(unittest.TestCase):
    """Which sources lint may read one after the other."""

    def check(self, first, then, **headers):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            for file, text in {"first.cpp": first, "then.cpp": then, **headers}.items():
                (folder / file.replace("_h", ".h")).write_text(text)
            tree = unity_groups.Tree((folder,))
            groups = tree.groups([folder / "first.cpp", folder / "then.cpp"], 2, tree.may_precede)
            return [[path.stem for path in group] for group in groups]

    def test_who_mentions_a_name_comes_before_who_defines_it(self):
        own = "namespace { int f() { return 1; } }"
        self.assertEqual(self.check("int g() { return f(); }", own), [["first", "then"]])
        self.assertEqual(self.check(own, "int g() { return f(); }"), [["then", "first"]])
        self.assertEqual(self.check(own, '#include "g.h"\n', g_h="int g() { return f(); }"), [["then", "first"]])
        self.assertEqual(self.check(own, own), [["first"], ["then"]])
        self.assertEqual(self.check(own, '#include "f.h"\n', f_h="int f();"), [["first"], ["then"]])

    def test_directives_come_last_and_prepared_headers_first(self):
        self.assertEqual(self.check("using namespace a;\nint f();", "int g();"), [["then", "first"]])
        self.assertEqual(self.check("using namespace a;\nint f();", "using namespace b;\nint g();"), [["first"], ["then"]])
        self.assertEqual(self.check("int f();", "#define SETTING 1\n#include <vector>"), [["then", "first"]])


class Lint(unittest.TestCase):
    def setUp(self):
        alone = mock.patch.object(unity_groups.Tree, "may_lack", lambda _, path, others: bool(others))
        alone.start()
        self.addCleanup(alone.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name).resolve()
        unity = self.build / "Unity/unity_base_0_cxx.cxx"
        unity.parent.mkdir()
        unity.write_text("".join(f'#include "{ROOT / name}"\n' for name in ("src/base/hash.cpp", "src/base/file.cpp")))
        alone, outside = ROOT / "src/base/version.cpp", ROOT / "tests/base/base_test.cpp"
        (self.build / "compile_commands.json").write_text(json.dumps([
            {"directory": str(self.build), "file": str(file),
             "command": f"ccache /usr/bin/c++ -I{ROOT / 'src'} -include x/cmake_pch.hxx -o {file.stem}.o -c {file}"}
            for file in (unity, alone, outside)]))

    def check(self, status=0, seconds=60):
        """Whether it passes, and what it ran, when every tool ends with this status."""
        ran = []

        def run(command, **_):
            ran.append(" ".join(map(str, command)))
            return subprocess.CompletedProcess(command, status if "-x c++-header" not in ran[-1] else 0, "finding", "")

        with mock.patch.object(lint.subprocess, "run", run), contextlib.redirect_stdout(io.StringIO()) as output:
            passed = lint.check_code(self.build, seconds, jobs=1)
        return passed, ran, output.getvalue()

    def test_what_it_looks_at(self):
        passed, ran, _ = self.check()
        self.assertTrue(passed)
        tidied = [pathlib.Path(command.split()[-1]) for command in ran if command.startswith(str(lint.CLANG_TIDY))]
        # hash.cpp sets a macro before a header, so it comes first.
        self.assertEqual([file.read_text() for file in tidied], ["".join(
            f'#include "{ROOT / name}"\n' for name in ("src/base/hash.cpp", "src/base/file.cpp", "src/base/version.cpp"))])
        parsed = sorted(command.split("/")[-1] for command in ran if "-fsyntax-only" in command)
        self.assertEqual(parsed, ["file.cpp", "version.cpp"])

    def test_a_source_built_for_several_instruction_sets_is_looked_at_once_with_the_most_options(self):
        database = self.build / "compile_commands.json"
        entries = json.loads(database.read_text())
        wide = {**entries[1], "command": entries[1]["command"].replace("c++ ", "c++ -mavx2 ")}
        for order in ([wide, *entries], [*entries, wide]):
            database.write_text(json.dumps(order))
            compiled = lint.compiled_sources(self.build)
            self.assertEqual(compiled[ROOT / "src/base/version.cpp"], wide)
            self.assertEqual(len(compiled), 3)

    def test_of_generation_10_of_the_interface_is_looked_at_what_it_alone_has(self):
        database = self.build / "compile_commands.json"
        entries = json.loads(database.read_text())
        old = [{**entries[1], "file": str(ROOT / "src" / name),
                "command": f"c++ -DLATHE_TENSORRT_MAJOR=10 -o {name}.o -c {ROOT / 'src' / name}"}
               for name in ("base/version.cpp", "plugin/registry_10_16.cpp")]
        database.write_text(json.dumps([*entries, *old]))
        compiled = lint.compiled_sources(self.build)
        self.assertEqual(compiled[ROOT / "src/base/version.cpp"], entries[1])
        self.assertEqual(compiled[ROOT / "src/plugin/registry_10_16.cpp"], old[1])

    def test_what_passed_is_not_looked_at_again(self):
        self.check()
        self.assertEqual(self.check()[:2], (True, []))

    def test_findings_fail_and_stay(self):
        for _ in range(2):
            passed, ran, output = self.check(status=1)
            self.assertFalse(passed)
            self.assertEqual(len([command for command in ran if "-x c++-header" not in command]), 3)
            self.assertIn("3 with findings", output)

    def test_running_out_of_time_fails(self):
        passed, ran, output = self.check(seconds=-1)
        self.assertEqual((passed, ran), (False, []))
        self.assertIn("3 not made for want of time", output)


if __name__ == "__main__":
    unittest.main()
