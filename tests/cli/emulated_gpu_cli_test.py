#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole stack on a GPU, where there is none: the stand-in driver runs kernels on the CPU, and a stand-in for NVRTC
compiles them for it. The demo reads its digits, and a share of ONNX's cases (every 17th) gives the CPU's verdicts."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"
SHARE, PARTS = 17, 3  # of the cases, so many tests


def squeeze_excitation(path, residual, channels=24, squeezed=6):
    """An image's convolution, gates of its channels, a 1x1 convolution and perhaps a residual."""
    random = np.random.default_rng(3)

    def weights(name, *dims):
        return numpy_helper.from_array(random.normal(0, np.prod(dims[1:]) ** -0.5, dims).astype(np.float32), name)

    pads = {"c": [1, 1, 1, 1]}
    nodes = [("Conv", ["x", "w0"], "c"), ("Sigmoid", ["c"], "s"), ("Mul", ["c", "s"], "a"),
             ("GlobalAveragePool", ["a"], "p"), ("Conv", ["p", "w1"], "f"), ("Relu", ["f"], "r"),
             ("Conv", ["r", "w2"], "g"), ("Sigmoid", ["g"], "gate"), ("Mul", ["a", "gate"], "m"),
             ("Conv", ["m", "w3"], "o"), ("Add", ["o", "x"], "y") if residual else ("Relu", ["o"], "y")]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [output], name=output, **({"pads": pads[output]} if output in pads else {}))
         for op, inputs, output in nodes], "gates",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 9, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3, 9, 7])],
        [weights("w0", channels, 3, 3, 3), weights("w1", squeezed, channels, 1, 1),
         weights("w2", channels, squeezed, 1, 1), weights("w3", 3, channels, 1, 1)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


def write_network(path):
    """A convolution with a bias, and a matrix product; the inputs lie beside it."""
    values = np.random.default_rng(1)
    weights = {"w": (32, 16, 3, 3), "b": (32,), "m": (64, 64)}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"]),
             helper.make_node("MatMul", ["z", "m"], ["v"])]
    inputs, outputs = {"x": (1, 16, 8, 8), "z": (64, 64)}, {"y": (1, 32, 8, 8), "v": (64, 64)}
    graph = helper.make_graph(nodes, "network",
                              *([helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                                 for name, shape in each.items()] for each in (inputs, outputs)),
                              [numpy_helper.from_array(values.standard_normal(shape, np.float32), name)
                               for name, shape in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    for name, shape in inputs.items():
        np.save(path.parent / f"{name}.npy", values.standard_normal(shape, np.float32))


class EmulatedGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.environment = os.environ | {
            "LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"),
            "LATHE_CUBLASLT": str(BUILD / "fake_cuda/libfake_cublaslt.so"),
            "LATHE_CUDNN": str(BUILD / "fake_cuda/libfake_cudnn.so"),
            "LATHE_CACHE_DIR": self.folder.name}

    def run_checked(self, *command):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_comparison_of_what_was_asked_for(self):
        """compare builds as it is told: in float16 the engine on the GPU differs, by what float16 rounds away."""
        report = pathlib.Path(self.folder.name) / "report.json"
        words = (LATHE, "compare", ROOT / "examples/digits/digits.onnx", "--target=cuda", "--buildBudget=0", "--json", report)
        self.run_checked(*words, "--noTF32")
        exact = json.loads(report.read_text())["outputs"][0]["max_abs"]
        self.run_checked(*words, "--fp16", "--rtol=1e-2", "--atol=1e-2")
        compared = json.loads(report.read_text())
        self.assertTrue(all(tensor["passed"] for tensor in compared["tensors"]), compared)
        self.assertGreater(compared["outputs"][0]["max_abs"], 10 * exact + 1e-6)

    def verdicts(self, cases, target):
        report = pathlib.Path(self.folder.name) / f"{target}.json"
        self.run_checked(LATHE, "conformance", *cases, f"--target={target}", "--noTF32", "--quiet", "--json", report)
        return {case["case"]: case["result"] for case in json.loads(report.read_text())["cases"]}

    def test_demo(self):
        # Kernels are measured at the largest batch, here by the emulator: it is that of the images, and no larger.
        output = self.run_checked(sys.executable, ROOT / "tools/demo.py", "--device=cuda", "--most=360",
                                  "--folder", self.folder.name)
        self.assertRegex(output, r"accuracy  9[789]\.\d+% of 360 held-out images")

    def check_conformance(self, part):
        subprocess.run([sys.executable, ROOT / "tools/conformance_data.py"], check=True, stdout=subprocess.DEVNULL)
        cases = sorted((ROOT / "data/conformance/node").iterdir())[::SHARE][part::PARTS]
        cpu, cuda = self.verdicts(cases, "cpu"), self.verdicts(cases, "cuda")
        self.assertGreater(len(cpu), 50 / PARTS)
        self.assertEqual(cpu, cuda)

    def test_sizes_that_depend_on_data_are_found_on_the_device(self):
        subprocess.run([sys.executable, ROOT / "tools/conformance_data.py"], check=True, stdout=subprocess.DEVNULL)
        folder = ROOT / "data/conformance/node"
        cases = [*folder.glob("test_nonzero*"), *folder.glob("test_compress*"), folder / "test_string_split_empty_tensor"]
        cpu, cuda = self.verdicts(cases, "cpu"), self.verdicts(cases, "cuda")
        self.assertGreater(len(cpu), 3)
        self.assertEqual(cpu, cuda)
        shown = self.run_checked(LATHE, "inspect", folder / "test_compress_0/model.onnx", "--target=cuda")
        self.assertIn("select", shown)
        self.assertNotRegex(shown, r"\n +\d+ +eval ")

    def test_types_of_few_bits_are_evaluated_on_the_host(self):
        subprocess.run([sys.executable, ROOT / "tools/conformance_data.py"], check=True, stdout=subprocess.DEVNULL)
        folder = ROOT / "data/conformance/node"
        cases = [case for name in ("test_cast_FLOAT_to_*", "test_cast_*_to_FLOAT", "test_dequantizelinear_*4*",
                                   "test_quantizelinear_blocked*") for case in sorted(folder.glob(name))]
        cpu, cuda = self.verdicts(cases, "cpu"), self.verdicts(cases, "cuda")
        self.assertGreater(len(cpu), 20)
        self.assertEqual(set(cpu.values()), {"passed"})
        self.assertEqual(cpu, cuda)

    def test_engines_are_inspected_without_a_gpu(self):
        engine = pathlib.Path(self.folder.name) / "digits.engine"
        self.run_checked(LATHE, "build", ROOT / "examples/digits/digits.onnx", "-o", engine, "--target=cuda",
                         "--buildBudget=0")
        without = {name: value for name, value in os.environ.items() if not name.startswith("LATHE_")}
        report = engine.with_suffix(".json")
        shown = subprocess.run([LATHE, "inspect", engine, "--json", report], capture_output=True, text=True, env=without)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("cuda-sm_90", shown.stdout)
        for layer in json.loads(report.read_text())["layers"]:
            self.assertEqual({tensor["Location"] for tensor in layer["Outputs"]}, {"Device"})

    def results(self, model, target, *flags):
        """Its output for the images of x.npy, and the kinds of its kernels."""
        folder = pathlib.Path(self.folder.name)
        engine, out, report = folder / f"{target}.engine", folder / target, folder / "layers.json"
        self.run_checked(LATHE, "build", model, "-o", engine, f"--target={target}", "--noTF32", *flags,
                         "--minShapes=x:1x3x9x7", "--optShapes=x:3x3x9x7", "--maxShapes=x:4x3x9x7")
        self.run_checked(LATHE, "run", engine, f"--loadInputs=x:{folder}/x.npy", "--exportOutput", out)
        self.run_checked(LATHE, "inspect", engine, "--json", report)
        return np.load(out / "y.npy"), [layer["LayerType"] for layer in json.loads(report.read_text())["layers"]]

    def test_images_gates_and_residuals(self):
        folder = pathlib.Path(self.folder.name)
        np.save(folder / "x.npy", np.random.default_rng(4).normal(size=(3, 3, 9, 7)).astype(np.float32))
        for residual in (False, True):
            squeeze_excitation(folder / "gates.onnx", residual)
            expected, _ = self.results(folder / "gates.onnx", "cpu")
            for flags, tolerance in (((), 1e-5), (("--fp16",), 1e-2)):
                with self.subTest(residual=residual, flags=flags):
                    got, kernels = self.results(folder / "gates.onnx", "cuda", "--buildBudget=0", *flags)
                    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
                    # The gates are applied by the convolution that reads them.
                    self.assertNotIn("pointwise", kernels)

    def test_pins_hold_inside_fusions(self):
        folder = pathlib.Path(self.folder.name)
        x = np.random.default_rng(4).normal(size=(3, 3, 9, 7)).astype(np.float32)
        np.save(folder / "x.npy", x)
        squeeze_excitation(folder / "gates.onnx", residual=True)
        exact, _ = self.results(folder / "gates.onnx", "cpu")
        flags = ("--fp16", "--buildBudget=0", "--precisionConstraints=obey")

        def error(*pins):
            return np.abs(self.results(folder / "gates.onnx", "cuda", *flags, *pins)[0] - exact).max()

        self.assertLess(error("--layerPrecisions=*:fp32"), 1e-5)
        everything = error()
        self.assertGreater(everything, 1e-4)
        # The last convolution alone: its sum is not rounded before the residual is added, but its operands are.
        last = error("--layerPrecisions=o:fp32,y:fp32")
        self.assertLess(last, everything)
        self.assertGreater(last, 1e-5)
        refused = subprocess.run([LATHE, "build", folder / "gates.onnx", "-o", folder / "no.engine", "--target=cuda",
                                  *flags, "--layerPrecisions=o:int8"], capture_output=True, text=True,
                                 env=self.environment)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("'o'", refused.stderr)
        self.assertIn("not quantised", refused.stderr)

    def test_a_driver_that_no_variable_names(self):
        """As on a machine with a GPU, where Lathe and the API's tests find libcuda.so.1 by its name."""
        driver = pathlib.Path(self.environment.pop("LATHE_CUDA_DRIVER")).resolve()
        (pathlib.Path(self.folder.name) / "libcuda.so.1").symlink_to(driver)
        self.environment |= {"LD_LIBRARY_PATH": self.folder.name, "LATHE_TARGET": "cuda"}
        self.assertIn("cuda-sm_90", self.run_checked(LATHE, "doctor"))
        output = self.run_checked(BUILD / "bin/test_api", "--gtest_filter=*EachSetting.*setDeviceMemoryV2")
        self.assertIn("PASSED  ] 1 test", output)

    def test_doctor_sees_the_gpu(self):
        self.assertIn("cuda-sm_90", self.run_checked(LATHE, "doctor"))

    # S251.
    def test_doctor_sees_the_gpu_and_the_libraries(self):
        output = self.run_checked(LATHE, "doctor")
        for text in ("cuda-sm_90", "13.1.0", "9.19.0"):
            self.assertIn(text, output)

    def test_libraries_are_used_where_they_are_allowed_and_needed_then(self):
        model, engine = (pathlib.Path(self.folder.name) / name for name in ("model.onnx", "model.engine"))
        write_network(model)
        build = (LATHE, "build", model, "-o", engine, "--target=sm_90", "--buildBudget=0")
        self.run_checked(*build)
        output = self.run_checked(LATHE, "inspect", engine)
        self.assertFalse("cudnn" in output or "cublaslt" in output, output)
        sources = "--tacticSources=+CUBLAS_LT,+CUDNN"
        self.run_checked(*build, sources)
        output = self.run_checked(LATHE, "inspect", engine)
        self.assertIn("cudnn.convolution", output)
        self.assertIn("cublaslt.matmul", output)
        self.run_checked(LATHE, "run", engine, f"--loadInputs=x:{model.parent}/x.npy,z:{model.parent}/z.npy")
        self.environment["LATHE_CUDNN"] = "/nowhere/libcudnn.so.9"
        self.run_checked(LATHE, "inspect", engine)
        result = subprocess.run([str(LATHE), "bench", str(engine)], capture_output=True, text=True,
                                env=self.environment)
        self.assertEqual(result.returncode, 1)
        self.assertIn("library_missing", result.stderr)


for number in range(PARTS):
    setattr(EmulatedGpu, f"test_conformance_{number}", lambda self, part=number: self.check_conformance(part))


if __name__ == "__main__":
    unittest.main()
