#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands that the documentation quotes exist: targets of make and CMake, presets, programs and their options, tests,
files. Nothing is run or built; the other tests do what the commands do."""
import pathlib
import re
import shlex
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("CONTRIBUTING.md", "README.md", "docs/gpu.md", "docs/looking.md", "docs/quantization.md", "docs/trtexec.md", "bench/README.md")
FENCED = re.compile(r"^```(?:sh|bash)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
MADE_BY_COMMANDS = ("build", "data", ".venv", "digits.engine", "passes")  # what begins with these need not be there


def read(name):
    return (ROOT / name).read_text()


def commands(page):
    for block in FENCED.findall(read(page)):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield line, words


def make_targets():
    return set(re.findall(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)[0].split())


def presets():
    return set(re.findall(r'"name": "(\w+)"', read("CMakePresets.json")))


def programs():
    """Executables that CMake makes: those it names, and one per folder of tests and per fuzzer."""
    named = {name for folder in ("examples", "tools")
             for name in re.findall(r"add_executable\((\w+)", read(f"{folder}/CMakeLists.txt"))}
    tests = {"_".join(("test", *file.parent.relative_to(ROOT / "tests").parts))
             for file in (ROOT / "tests").rglob("*_test.cpp")}
    fuzzers = {file.stem for file in (ROOT / "tests/fuzz").glob("fuzz_*.cpp")}
    return named | tests | fuzzers | {"lathe"}


def cli_options():
    """What each subcommand of the command line takes."""
    text = "".join(read(f"tools/cli/{name}.cpp") for name in ("main", "quantize_options", "shared_options"))
    bodies = dict(re.findall(r"^void (add_\w+)\(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))

    def options(name):
        body = bodies[name]
        found = {option for names in re.findall(r'"(-[^" ]*)"', body) for option in names.split(",")}
        for inner in re.findall(r"\b(add_\w+)\(\*?command", body):
            found |= options(inner)
        return found

    commands = {re.search(r'add_subcommand\("(\w+)"', body)[1]: name for name, body in bodies.items()
                if "add_subcommand" in body}
    known = {command: options(name) | {"--help"} for command, name in commands.items()}
    return known | {"trtexec": set(re.findall(r'^TRTEXEC_FLAG\(\w+, "([^"]+)"', read("tools/trtexec/flags.def"), re.MULTILINE))}


def gtest_names(suite):
    text = "".join(file.read_text() for file in (ROOT / "tests" / suite).glob("*.cpp"))
    plain = {f"{group}.{name}" for group, name in re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", text, re.MULTILINE)}
    by_file = re.findall(r"INSTANTIATE_TEST_SUITE_P\((\w+), (\w+), testing::ValuesIn\(\w+_files\(\)\)", text)
    for prefix, group in by_file:
        for name in re.findall(rf"^TEST_P\({group}, (\w+)\)", text, re.MULTILINE):
            plain |= {f"{prefix}/{group}.{name}/{file.stem}" for file in (ROOT / "tests" / suite).iterdir()}
    return plain


def ctest_names():
    folders = {file.parent.name for file in ROOT.glob("tests/*/*_test.cpp")}
    return folders | {file.stem for file in ROOT.glob("tests/*/*_test.py")}


def check_make(words):
    known = make_targets()
    return [f"make has no target {word}" for word in words if "=" not in word and word not in known]


def cmake_options():
    text = "".join(file.read_text() for file in ROOT.glob("cmake/*.cmake")) + read("CMakeLists.txt")
    return set(re.findall(r"^ *(?:option\((?=\w+ )|set\((?=\w+ .* CACHE ))(\w+)", text, re.MULTILINE))


def environment_variables():
    files = [file for top in ("src", "tests") for file in (ROOT / top).rglob("*.*") if file.suffix in (".cpp", ".h", ".py")]
    return {name for file in files for name in re.findall(r'"(LATHE_\w+)"', file.read_text())}


def check_cmake(words):
    defined = [word[2:].partition("=")[0] for word in words if word.startswith("-DLATHE_")]
    problems = [f"CMake has no option {name}" for name in defined if name not in cmake_options()]
    for option, value in zip(words, words[1:]):
        if option == "--preset" and value not in presets():
            problems.append(f"no preset {value}")
        if option == "--target" and value not in programs():
            problems.append(f"no target {value}")
    return problems


def check_ctest(words):
    pattern = words[words.index("-R") + 1] if "-R" in words else ""
    return [] if any(re.search(pattern, name) for name in ctest_names()) else [f"no test matches {pattern}"]


def check_lathe(words):
    if not words or words[0] == "COMMAND":
        return []
    known = cli_options()
    if words[0] not in known:
        return [f"lathe has no command {words[0]}"]
    return [f"lathe {words[0]} has no option {word}" for word in words[1:]
            if word.startswith("-") and word.split("=")[0] not in known[words[0]]]


def check_python(words):
    script, *rest = words
    if script.startswith("-"):
        return []
    problems = [] if (ROOT / script).is_file() else [f"no file {script}"]
    if not problems and script.endswith("_test.py"):
        text = read(script)
        problems = [f"{script} has no {name}" for test in rest for name in test.split(".")
                    if not re.search(rf"\b(class|def) {name}\b", text)]
    return problems


def check_program(program, words):
    name = pathlib.Path(program).name
    if name not in programs():
        return [f"no program {name}"]
    if name in ("lathe", "trtexec"):
        return check_lathe(words if name == "lathe" else [name, *words])
    filters = [word.partition("=")[2] for word in words if word.startswith("--gtest_filter=")]
    return [f"{name} has no test {test}" for test in filters if test not in gtest_names(name.removeprefix("test_"))]


def problems_of(words):
    problems = []
    while words and re.match(r"^[A-Z_]+=", words[0]):  # variables of the command's environment
        variable, _, value = words.pop(0).partition("=")
        if variable == "PRESET" and value not in presets():
            problems.append(f"no preset {value}")
        if variable.startswith("LATHE_") and variable not in environment_variables():
            problems.append(f"nothing reads {variable}")
    if not words or words[0] == "export":
        return problems
    program, rest = words[0], words[1:]
    if program == "make":
        return problems + check_make(rest)
    if program == "cmake":
        return problems + check_cmake(rest)
    if program == "ctest":
        return problems + check_ctest(rest)
    if program.endswith(("python", "python3")):
        return problems + check_python(rest)
    if re.match(r"^build[\w-]*/bin/", program) or program == "lathe":
        problems += check_program(program, rest)
    elif "/" in program and not program.startswith((".venv/", "build/", "/")) and not (ROOT / program).exists():
        problems.append(f"no file {program}")
    paths = (word for word in rest if "/" in word and not word.startswith("-") and ":" not in word)
    return problems + [f"no file {path}" for path in paths
                       if not path.startswith(MADE_BY_COMMANDS) and "gtest" not in path and not (ROOT / path).exists()]


class Commands(unittest.TestCase):
    def test_quoted_commands_exist(self):
        found = [f"{page}: {line.strip()}: {problem}" for page in PAGES for line, words in commands(page)
                 for problem in problems_of(words)]
        self.assertEqual(found, [])
        self.assertGreater(sum(1 for _ in commands("CONTRIBUTING.md")), 20)

    def test_commands_of_the_table_exist(self):
        rows = re.findall(r"^\| `lathe ([^`]*)`", read("README.md"), re.MULTILINE)
        self.assertGreater(len(rows), 5)
        self.assertEqual([problem for row in rows for problem in check_lathe(row.split())], [])

    def test_targets_are_explained(self):
        """`make help` tells of each target that a user calls, and the pages quote no other by way of the text."""
        text = read("Makefile")
        explained = set(re.findall(r'@echo "make ([\w-]+)', text)) | {
            "help", "packages", "python", "demo-python", "lint-tools", "test-data", "browser", "setup", "configure", "everything", "format"}
        self.assertEqual(make_targets(), explained)
        quoted = {target for page in PAGES for target in re.findall(r"`(?:[A-Z]+=\S+ )?make ([\w-]+)", read(page))}
        self.assertLessEqual(quoted, make_targets())

    def test_what_does_not_exist_is_found(self):
        for text in ("make tea", "PRESET=fast make test", "cmake --preset slow", "build/bin/test_tea", "lathe brew",
                     "build/bin/lathe build m.onnx --tea", "build/bin/test_passes --gtest_filter=Recipe.Tea",
                     "build/bin/test_ops --gtest_filter=Files/OpCases.Hold/tea", "ctest --test-dir build -R tea",
                     ".venv/bin/python tests/house/tea_test.py", "cmake --build build --target tea", "cmake/tea.sh build",
                     "cmake -DLATHE_TEA=ON build", "LATHE_TEA=1 make test",
                     ".venv/bin/python tests/house/links_test.py Links.test_tea", "build/bin/lathe inspect tea/m.onnx"):
            self.assertEqual(len(problems_of(text.split())), 1, text)


if __name__ == "__main__":
    unittest.main()
