#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wrapper compiles and runs with an interface that has no IRuntimeConfig, and asks in one place what there is."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve()
WRAPPER = ROOT / "src/wrapper"
# What came with IRuntimeConfig and after it, in the order of the headers: members of public classes, and classes.
MEMBERS = {"engine.h": ["createExecutionContext(IRuntimeConfig* runtimeConfig)", "createRuntimeConfig()"],
           "execution_context.h": ["getRuntimeConfig() const", "setCommunicator(void* communicator)",
                                   "isStreamCapturable(cudaStream_t stream) const"]}
CLASSES = ["IRuntimeCache", "IRuntimeConfig"]


def without_runtime_config(headers):
    """Takes them out of a copy of the headers; the tables of functions stay, for they are the library's."""
    for name, members in MEMBERS.items():
        text = (headers / name).read_text()
        for member in members:
            text, count = re.subn(r"\n  \S[^\n]*" + re.escape(member) + r"[^{;]*\{[^}]*\}", "", text)
            assert count == 1, member
        (headers / name).write_text(text)
    path = headers / "runtime_objects.h"
    text = path.read_text()
    for name in CLASSES:
        text, count = re.subn(rf"\nclass {name} : .*?\ninline {name}::[^\n]*\n", "\n", text, flags=re.DOTALL)
        assert count == 1, name
    path.write_text(text)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def together(sources, folder):
    """Sources that include these where they may be compiled together, as in the build: most of their time is headers'."""
    rows = run(sys.executable, ROOT / "cmake/unity_groups.py", "--root", ROOT / "src", "--root", ROOT / "include",
               input="".join(f"wrapper|{path}\n" for path in sources)).splitlines()
    groups = dict(row.split("|")[::-1] for row in rows)
    for path, group in groups.items():
        with open(folder / f"{group}.cpp", "a") as file:
            file.write(f'#include "{path}"\n')
    return [*folder.glob("*.cpp"), *(path for path in sources if str(path) not in groups)]


class Interfaces(unittest.TestCase):
    # S189, S203: nothing but the file that says so asks for a generation or a member.
    def test_features_are_asked_for_in_one_place(self):
        for path in WRAPPER.iterdir():
            text = re.sub(r"//[^\n]*", "", path.read_text())
            if path.name != "interface_features.h":
                self.assertNotRegex(text, r"NV_TENSORRT|LATHE_TENSORRT|\brequires\s*\(|\bconcept\b", path.name)
            conditions = re.findall(r"^#\s*(?:el)?if.*$", text, re.MULTILINE)
            self.assertTrue(all("__linux__" in line for line in conditions), f"{path.name}: {conditions}")

    # S200, S203: contexts are created in one function, and no strategy can be set past the settings.
    def test_contexts_are_created_in_one_place(self):
        text = {path.name: re.sub(r"decltype\([^\n]*", "", path.read_text()) for path in WRAPPER.iterdir()}
        callers = [name for name, body in text.items() if re.search(r"[.>]createExecutionContext\(", body)]
        self.assertEqual(callers, ["context_maker.h"])
        creates = [name for name, body in text.items() if "maker_.create(" in body]
        self.assertEqual((creates, text["wrapped_engine.cpp"].count("maker_.create(")), (["wrapped_engine.cpp"], 1))
        header = (ROOT / "include/lathe_wrapper.h").read_text()
        self.assertNotRegex(header, r"\bset(Specialization|DynamicShapes|CudaGraphStrategy|RuntimeCache)")

    @unittest.skipIf("LATHE_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text(),
                     "programs would have to be linked with the sanitizers, too")
    def test_without_runtime_config(self):
        # S198, S205, S219: it compiles, runs, and writes records that say so. S232: it needs no macro but the generation's.
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copytree(ROOT / "include", folder / "include")
            without_runtime_config(folder / "include/nvinfer")
            link = (BUILD / "build.ninja").read_text()
            objects = re.search(r"^build lib/liblathe_wrapper\.so\.\S+: \S+ ([^|\n]*)", link, re.MULTILINE)[1].split()
            objects = [BUILD / path for path in objects if "/wrapper/" not in path]
            sources = [*together(sorted(WRAPPER.glob("*.cpp")), folder), ROOT / "tests/wrapper/old_client.cpp"]
            program = folder / "old_client"
            run("g++", "-std=c++20", "-O0", "-Wall", "-Werror", "-Wno-unused-parameter", "-DLATHE_WITHOUT_CUDA_HEADERS",
                "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", f"-I{folder}/include", f"-I{ROOT}/src",
                *sources, *objects, f"-L{BUILD}/lib", "-llathe", "-lsodium", f"-Wl,-rpath,{BUILD}/lib", "-o", program)
            model = ROOT / "examples/digits/digits.onnx"
            said = run(program, model, env=os.environ | {"LATHE_TARGET": "cpu"}).splitlines()
            self.assertEqual(said, ["none of 6 features", "HAS_RUNTIME_CFG_IDX: '0'", "RUNTIME_CACHE_PATH_IDX: ''",
                                    "warnings: 3", "10 probabilities sum up to 1"])


if __name__ == "__main__":
    unittest.main()
