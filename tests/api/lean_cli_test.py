#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runtime that links alone, liblathe_lean.so: it runs what the whole library has built, with the same bits, on a CPU
and on the stand-in for a GPU; and nothing of the builder is in it."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LIBRARY, LEAN, LEAN_10 = (BUILD / f"lib/liblathe{name}.so" for name in ("", "_lean", "_lean_10"))
ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits/digits.onnx"
SHAPES = [f"--{which}Shapes=image:4x1x8x8" for which in ("min", "opt", "max")]
IS_RELEASE = "CMAKE_BUILD_TYPE:STRING=Release\n" in (BUILD / "CMakeCache.txt").read_text()
# Bytes of the stripped libraries.
LARGEST = 3_000_000
BUILDING = ("lathe::ir::", "lathe::onnx::", "lathe::build_plan(", "lathe::run_passes(", "lathe::Tuner", "lathe::Tactic",
            "lathe::api::Builder", "lathe::api::NetworkDefinition", "lathe::api::Parser",
            "lathe::cuda::cuda_tactics", "lathe::cuda::headers(")


def checked(*command, **variables):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            env=os.environ | variables)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


RUNTIME = re.compile(r"(base|shape|ops|device|plan|plugin|runtime|api/(runtime|guest|dispatch))/.*|kernels/cpu/.*(?<!_tactic)(?<!/backend)\.cpp|api/\w+\.cpp")


def sources_of(object_file):
    """Paths from src/ of what the object file was compiled from: one source, or those that a unity build put together."""
    together = object_file.with_suffix("")
    if together.suffix == ".cxx":
        return [pathlib.Path(path).relative_to(ROOT / "src").as_posix()
                for path in re.findall(r'^#include "(.*\.cpp)"', together.read_text(), re.MULTILINE)]
    source = object_file.relative_to(BUILD / "src/CMakeFiles").as_posix().split(".dir/", 1)[1][:-len(".o")]
    return [source] if (ROOT / "src" / source).is_file() else []


def building_objects():
    """Object files of sources that are none of the runtime's."""
    for path in [*(BUILD / "src/CMakeFiles").rglob("*.cpp.o"), *(BUILD / "src/CMakeFiles").rglob("unity_*.cxx.o")]:
        sources = sources_of(path)
        if sources and not any(RUNTIME.fullmatch(source) or source.startswith("worker/") for source in sources):
            yield path


def symbols(kinds, *files):
    """Names of the functions of these kinds (see nm) that the files define."""
    lines = (line.split() for line in checked("nm", "--defined-only", *files).splitlines())
    return {words[2] for words in lines if len(words) == 3 and words[1] in kinds and words[2].startswith("_Z")}


def write_network(path):
    """Statistics of training, for which no device has a kernel (the plain evaluation runs), and an op whose size depends on
    data."""
    nodes = [helper.make_node("BatchNormalization", ["x", "one", "zero", "zero", "one"], ["n", "mean", "variance"],
                              training_mode=1, momentum=0.0),
             helper.make_node("Relu", ["n"], ["y"]), helper.make_node("NonZero", ["y"], ["places"])]
    numbers = [helper.make_tensor(name, TensorProto.FLOAT, [4], [value] * 4) for name, value in [("one", 1.0), ("zero", 0.0)]]
    graph = helper.make_graph(
        nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 5, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 5, 5]),
         helper.make_tensor_value_info("mean", TensorProto.FLOAT, [4]),
         helper.make_tensor_value_info("places", TensorProto.INT64, [4, None])], numbers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


class Lean(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, model, outputs, dims, *options, **variables):
        plan, given = self.folder / "plan", self.folder / "given"
        checked(BUILD / "bin/lathe", "build", model, "-o", plan, "--buildBudget=0", *options, **variables)
        given.mkdir()
        for name, shape in dims.items():
            np.random.default_rng(2).standard_normal(shape, np.float32).tofile(given / name)
        results = {}
        for library in ("lathe", "lathe_lean"):
            folder = self.folder / library
            folder.mkdir()
            checked(BUILD / f"bin/plan_runner_{library}", plan, given, folder, **variables)
            results[library] = {name: (folder / name).read_bytes() for name in outputs}
            self.assertTrue(all(results[library].values()))
        self.assertEqual(results["lathe"], results["lathe_lean"])
        return results["lathe_lean"]

    # S60, S61.
    def test_on_the_cpu(self):
        probabilities = np.frombuffer(self.compare(DIGITS, ["probabilities"], {"image": (4, 1, 8, 8)},
                                                   *SHAPES, "--target=cpu")["probabilities"], np.float32)
        self.assertAlmostEqual(float(probabilities.sum()), 4, places=4)

    def test_evaluations_and_computed_sizes(self):
        write_network(self.folder / "model.onnx")
        outputs = self.compare(self.folder / "model.onnx", ["y", "mean", "places"], {"x": (1, 4, 5, 5)},
                               "--target=cpu")
        x = np.fromfile(self.folder / "given/x", np.float32).reshape(1, 4, 5, 5)
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        np.testing.assert_allclose(np.frombuffer(outputs["mean"], np.float32), mean, rtol=1e-5, atol=1e-6)
        y = np.frombuffer(outputs["y"], np.float32).reshape(1, 4, 5, 5)
        column = (1, 4, 1, 1)
        want = (x - mean.reshape(column)) / np.sqrt(variance.reshape(column) + 1e-5)
        np.testing.assert_allclose(y, np.maximum(want, 0), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(np.frombuffer(outputs["places"], np.int64).reshape(4, -1), np.nonzero(y))
        report = self.folder / "report.json"
        checked(BUILD / "bin/lathe", "inspect", self.folder / "plan", "--json", report)
        self.assertIn('"plain evaluation"', report.read_text())

    def test_on_an_emulated_gpu(self):
        self.compare(DIGITS, ["probabilities"], {"image": (4, 1, 8, 8)}, *SHAPES, "--target=cuda",
                     LATHE_CUDA_DRIVER=str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                     LATHE_NVRTC=str(BUILD / "fake_cuda/libnvrtc.so"), LATHE_CACHE_DIR=str(self.folder))

    def test_nothing_of_the_builder_is_in_it(self):
        building, lean = symbols("T", *building_objects()), symbols("Tt", LEAN)
        self.assertGreater(len(building), 1000)
        self.assertGreater(len(lean), 500)
        self.assertEqual(building & lean, set())
        whole, names = (checked("nm", "-C", "--defined-only", library) for library in (LIBRARY, LEAN))
        self.assertEqual([word for word in BUILDING if word not in whole], [])
        self.assertEqual([word for word in BUILDING if word in names], [])

    @unittest.skipUnless(IS_RELEASE, "instrumented code needs more")
    def test_it_needs_libc_and_libstdcxx_alone(self):
        needed = {line.split("[")[1].rstrip("]") for line in checked("readelf", "-d", LEAN).splitlines()
                  if "(NEEDED)" in line}
        self.assertTrue(needed)
        for library in needed:
            self.assertRegex(library, r"^(libstdc\+\+|libm|libc|libgcc_s|ld-linux[-\w]*|libdl|libpthread)\.so\.\d+$")

    @unittest.skipUnless(IS_RELEASE, "instrumented code is larger")
    def test_size(self):  # S177
        stripped = self.folder / "stripped.so"
        for library in (LEAN, LEAN_10):
            checked("strip", "-o", stripped, library)
            self.assertLess(stripped.stat().st_size, LARGEST, library)


if __name__ == "__main__":
    unittest.main()
