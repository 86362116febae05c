#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trtexec: what it prints, writes and gives back, on the CPU and on an emulated GPU, and what it says to flags that it
cannot honour."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve()
TRTEXEC = BUILD / "bin/trtexec"
QUICK = ("--warmUp=0", "--duration=0", "--iterations=20", "--buildBudget=0")
TIMES = ("Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency")
FIGURES = r"min = ([\d.e-]+) ms, max = ([\d.e-]+) ms, mean = ([\d.e-]+) ms, median = ([\d.e-]+) ms"
LINE = re.compile(r"(&&&& (RUNNING|PASSED|FAILED) TensorRT\.trtexec \[TensorRT v\d+\] \[b\d+\] # "
                  r"|\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[[VIWEF]\] )")


def network(path, nodes, inputs, outputs, constants=()):
    """A model of nodes (operator, inputs, outputs, attributes), and inputs and outputs (name, type, shape)."""
    graph = helper.make_graph(
        [helper.make_node(op, ins, outs, name=outs[0], **more) for op, ins, outs, more in nodes], "network",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


class Trtexec(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {name: value for name, value in os.environ.items() if name != "LATHE_TARGET"}
        self.environment |= {"LATHE_CUDA_DRIVER": "/no/driver", "LATHE_CACHE_DIR": str(self.folder / "cache")}
        self.model = network(
            self.folder / "model.onnx",
            [("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["r"], {}), ("MatMul", ["r", "v"], ["y"], {})],
            [("x", TensorProto.FLOAT, ["n", 8])], [("y", TensorProto.FLOAT, ["n", 4])],
            [("w", np.random.default_rng(1).standard_normal((8, 16), np.float32)),
             ("v", np.random.default_rng(2).standard_normal((16, 4), np.float32))])

    def use_emulated_gpu(self):
        self.environment |= {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                             "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so")}

    def run_words(self, *words, program=(TRTEXEC,)):
        return subprocess.run([str(word) for word in (*program, *words)], capture_output=True, text=True,
                              env=self.environment, cwd=self.folder)

    def passes(self, *words):
        result = self.run_words(*words)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], "^&&&& RUNNING TensorRT.trtexec ")
        self.assertEqual(lines[-1], lines[0].replace("RUNNING", "PASSED"))
        for line in lines + result.stderr.splitlines():
            self.assertRegex(line, LINE)
        return result

    def fails(self, text, *words):
        result = self.run_words(*words)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout.splitlines()[-1], "^&&&& FAILED TensorRT.trtexec ")
        self.assertRegex(result.stderr, r"\[E\] ")
        self.assertIn(text, result.stderr)
        return result

    def figures(self, output):
        """The summary: name to (least, largest, mean, median)."""
        found = {name: re.search(rf"\[I\] {name}: {FIGURES}", output) for name in TIMES}
        for name, match in found.items():
            self.assertTrue(match, f"{name}: {output}")
        return {name: tuple(map(float, match.groups())) for name, match in found.items()}

    def expected(self, x):
        weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(self.model).graph.initializer}
        return np.maximum(x @ weights["w"], 0) @ weights["v"]

    def check_output(self, path, wanted):
        (output,) = json.loads((self.folder / path).read_text())
        self.assertEqual(list(output), ["name", "dimensions", "values"])
        self.assertEqual(output["dimensions"], "x".join(map(str, wanted.shape)))
        np.testing.assert_allclose(np.reshape(output["values"], wanted.shape), wanted, 1e-3, 1e-4)

    def test_build_save_load_and_run(self):
        x = np.random.default_rng(3).standard_normal((5, 8), np.float32)
        x.tofile(self.folder / "x.bin")
        built = self.passes(f"--onnx={self.model}", "--minShapes=x:1x8", "--optShapes=x:5x8", "--maxShapes=x:9x8",
                            "--saveEngine=engine", "--skipInference", *QUICK).stdout
        for text in ("Finished parsing network model. Parse time: ", "Engine built in ", "Created engine with size: ",
                     "Engine deserialized in ", "Skipped inference", "Input build shape (profile 0): x=1x8+5x8+9x8"):
            self.assertIn(text, built)
        self.assertNotIn("Performance summary", built)
        for reader in ((), ("--asyncFileReader",), ("--useRuntime=lean", f"--leanDLLPath={BUILD}/lib/liblathe_lean.so"),
                       ("--useRuntime=lean",), ("--useRuntime=dispatch",), (f"--leanDLLPath={BUILD}/lib/liblathe_lean.so",)):
            with self.subTest(reader):
                loaded = self.passes("--loadEngine=engine", "--shapes=x:5x8", "--loadInputs=x:x.bin",
                                     "--exportOutput=out.json", *reader, *QUICK).stdout
                self.assertIn("Loaded engine with size: ", loaded)
                self.check_output("out.json", self.expected(x))
        self.assertIn("Plan was created with TensorRT version 11.1.0.",
                      self.passes("--loadEngine=engine", "--getPlanVersionOnly").stdout)

    def test_sections_and_summary(self):
        output = self.passes(f"--onnx={self.model}", "--shapes=x:3x8", "--percentile=50,99", "--avgRuns=5", *QUICK).stdout
        sections = ["Model Options", "Build Options", "System Options", "Inference Options", "Reporting Options",
                    "Device Information", "Trace details", "Performance summary"]
        places = [output.index(f"=== {section} ===") for section in sections]
        self.assertEqual(places, sorted(places))
        keys = ["Throughput: ", *(f"{name}: " for name in TIMES), "Total Host Walltime: ", "Total GPU Compute Time: "]
        summary = output[places[-1]:]
        self.assertEqual([summary.index(f"[I] {key}") for key in keys],
                         sorted(summary.index(f"[I] {key}") for key in keys))
        self.assertIn("percentile(50%) = ", summary)
        self.assertNotIn("percentile(95%)", summary)
        self.assertEqual(output.count("Average on 5 runs - GPU latency: "), 4)
        self.assertIn("Timing trace has 20 queries over ", output)
        for least, largest, mean, median in self.figures(output).values():
            self.assertTrue(least <= median <= largest and least <= mean <= largest)

    def test_times_and_layers_as_json(self):
        output = self.passes(f"--onnx={self.model}", "--shapes=x:3x8", "--exportTimes=t.json", "--exportProfile=p.json",
                             "--exportLayerInfo=l.json", "--dumpProfile", "--dumpLayerInfo",
                             "--profilingVerbosity=detailed", *QUICK).stdout
        times = json.loads((self.folder / "t.json").read_text())
        self.assertEqual(len(times), 20)
        self.assertEqual(list(times[0]), ["startEnqMs", "endEnqMs", "startH2dMs", "endH2dMs", "startComputeMs",
                                          "endComputeMs", "startD2hMs", "endD2hMs", "h2dMs", "computeMs", "d2hMs",
                                          "latencyMs"])
        for query in times:
            self.assertGreater(query["computeMs"], 0)
            self.assertAlmostEqual(query["latencyMs"], query["h2dMs"] + query["computeMs"] + query["d2hMs"])
        self.assertAlmostEqual(self.figures(output)["GPU Compute Time"][0], min(query["computeMs"] for query in times), 4)
        count, *layers = json.loads((self.folder / "p.json").read_text())
        self.assertEqual(count, {"count": 20})
        self.assertEqual(list(layers[0]), ["name", "timeMs", "averageMs", "medianMs", "percentage"])
        self.assertAlmostEqual(sum(layer["percentage"] for layer in layers), 100, 3)
        self.assertIn("=== Profile (20 iterations ) ===", output)
        self.assertRegex(output, r"\[I\]    Time\(ms\)     Avg\.\(ms\)   Median\(ms\)   Time\(%\)   Layer\n")
        self.assertRegex(output, r" 100\.0   Total\n")
        info = json.loads((self.folder / "l.json").read_text())
        self.assertEqual(len(info["Layers"]), len(layers))
        self.assertEqual(info["Bindings"], ["x", "y"])

    def test_outputs_are_shown_and_compared(self):
        x = np.arange(16, dtype=np.float32).reshape(2, 8) / 16
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "good.npy", self.expected(x))
        np.save(self.folder / "bad.npy", self.expected(x) + np.float32([0.01, 0, 0, 0]))
        run = (f"--onnx={self.model}", "--shapes=x:2x8", "--loadInputs=x:x.npy", "--dumpOutput", "--rtol=1e-3",
               "--atol=1e-4", *QUICK)
        output = self.passes(*run, "--dumpRawBindingsToFile", "--loadRefOutputs=y:good.npy").stdout
        self.assertIn("[I] y: (2x4)\n", output)
        self.assertIn("Accuracy of y: l0 = 0, threshold = 0: PASSED", output)
        np.testing.assert_array_equal(np.fromfile(self.folder / "x.2x8.Binary", np.float32), x.ravel())
        np.testing.assert_allclose(np.fromfile(self.folder / "y.2x4.Binary", np.float32), self.expected(x).ravel(), 1e-3)
        self.assertIn("l0 = 2, threshold = 0: FAILED", self.fails("--accuracyThreshold", *run, "--loadRefOutputs=y:bad.npy").stdout)
        self.passes(*run, "--loadRefOutputs=y:bad.npy", "--accuracyThreshold=2")
        for how, figure in (("lInf", "0.01"), ("l1", "0.02"), ("l2", "0.0141")):
            self.assertRegex(self.fails("", *run, "--loadRefOutputs=y:bad.npy", f"--accuracyAlgorithm={how}").stdout,
                             rf"{how} = {re.escape(figure)}|{how} = 0\.0(0999|199|1000|200)")
        self.passes(*run, "--loadRefOutputs=y:good.npy", "--accuracyAlgorithm=cos")
        self.fails("", *run, "--loadRefOutputs=y:good.npy", "--refPair=1", "--loadInputs=x:x.npy",
                   "--loadRefOutputs=y:bad.npy")

    def test_streams_threads_and_profiles(self):
        shapes = ("--minShapes=x:1x8", "--optShapes=x:2x8", "--maxShapes=x:4x8", "--profile=1", "--minShapes=x:5x8",
                  "--optShapes=x:6x8", "--maxShapes=x:8x8")
        for more in ((), ("--threads",)):
            output = self.passes(f"--onnx={self.model}", *shapes, "--useProfile=1", "--shapes=x:8x8", "--infStreams=3",
                                 "--dumpOptimizationProfile", "--idleTime=1", *more, *QUICK).stdout
            self.assertIn("Timing trace has 60 queries", output)
            self.assertIn("x: profile 1, min=5x8, opt=6x8, max=8x8", output)
            self.assertEqual(output.count("Input binding for x with dimensions 8x8"), 1)

    def test_strategies_of_memory(self):
        for strategy in ("static", "profile", "runtime"):
            with self.subTest(strategy):
                self.passes(f"--onnx={self.model}", "--minShapes=x:1x8", "--maxShapes=x:64x8", "--shapes=x:7x8",
                            f"--allocationStrategy={strategy}", *QUICK)

    def test_timing_cache(self):
        words = (f"--onnx={self.model}", "--shapes=x:2x8", "--timingCacheFile=cache.bin", "--skipInference", "--buildBudget=1")
        self.assertRegex(self.passes(*words).stderr, r"\[W\] Could not read timing cache from: cache.bin")
        self.assertGreater((self.folder / "cache.bin").stat().st_size, 0)
        self.passes(*words, "--errorOnTimingCacheMiss")
        self.assertEqual(self.passes(*words, "--noBuilderCache").stdout.count("of timing cache"), 0)

    def test_open_shapes_become_one_with_a_warning(self):
        result = self.passes(f"--onnx={self.model}", *QUICK)
        self.assertIn("Dynamic dimensions required for input: x, but no shapes were provided. Automatically overriding shape "
                      "to: 1x8", result.stderr)
        self.assertIn("--optShapes", result.stderr)

    def test_inputs_that_are_shapes(self):
        model = network(self.folder / "reshape.onnx", [("Reshape", ["x", "s"], ["y"], {})],
                        [("x", TensorProto.FLOAT, [2, 6]), ("s", TensorProto.INT64, [2])],
                        [("y", TensorProto.FLOAT, [None, None])])
        output = self.passes(f"--onnx={model}", "--minShapes=s:1x1", "--optShapes=s:3x4", "--maxShapes=s:12x12",
                             "--shapes=s:4x3", "--exportOutput=out.json", *QUICK).stdout
        self.assertIn("Output binding for y with dimensions 4x3 is created.", output)
        self.assertEqual(json.loads((self.folder / "out.json").read_text())[0]["dimensions"], "4x3")

    def test_debug_tensors(self):
        self.passes(f"--onnx={self.model}", "--shapes=x:2x8", "--markDebug=r", "--saveEngine=engine", "--skipInference", *QUICK)
        output = self.passes("--loadEngine=engine", "--shapes=x:2x8", "--saveDebugTensors=r:r.bin",
                             "--saveAllDebugTensors=summary,numpy,string,raw", *QUICK).stdout
        values = np.fromfile(self.folder / "r.bin", np.float32)
        self.assertEqual(values.size, 32)
        self.assertGreaterEqual(values.min(), 0)
        np.testing.assert_array_equal(np.load(self.folder / "0000_r.npy").ravel(), values)
        np.testing.assert_array_equal(np.fromfile(self.folder / "0000_r.raw", np.float32), values)
        np.testing.assert_allclose(np.loadtxt(self.folder / "0000_r.txt"), values, 1e-5)
        self.assertRegex(output, r"Debug tensor r \(inference 0\): float32 2x16: min = ")

    def test_emulated_gpu(self):
        self.use_emulated_gpu()
        x = np.random.default_rng(4).standard_normal((3, 8), np.float32)
        np.save(self.folder / "x.npy", x)
        built = self.passes(f"--onnx={self.model}", "--shapes=x:3x8", "--saveEngine=engine", "--noTF32", *QUICK)
        self.assertIn("Selected Device: Fake H200", built.stdout)
        self.assertIn("Compute Capability: 9.0", built.stdout)
        self.assertEqual(self.figures(built.stdout)["H2D Latency"], (0, 0, 0, 0))
        self.assertNotIn("capture", built.stderr)
        for more in ((), ("--exposeDMA", "--noSpinWait"), ("--noCudaGraph", "--infStreams=2", "--threads"), ("--sleepTime=1",),
                     ("--allocationStrategy=runtime",)):
            with self.subTest(more):
                output = self.passes("--loadEngine=engine", "--shapes=x:3x8", "--loadInputs=x:x.npy", "--dumpProfile",
                                     "--includeDataTransfers", "--exportOutput=out.json", *more, *QUICK).stdout
                figures = self.figures(output)
                for name in ("H2D Latency", "GPU Compute Time", "D2H Latency"):
                    self.assertGreater(figures[name][0], 0)
                self.check_output("out.json", self.expected(x))
        output = self.passes("--loadEngine=engine", "--shapes=x:3x8", "--loadInputs=x:x.npy", "--useManagedMemory",
                             "--includeDataTransfers", "--exportOutput=out.json", *QUICK).stdout
        self.assertEqual(self.figures(output)["H2D Latency"], (0, 0, 0, 0))
        self.check_output("out.json", self.expected(x))

    def test_weights_are_left_out_and_replaced(self):
        x = np.random.default_rng(5).standard_normal((3, 8), np.float32)
        np.save(self.folder / "x.npy", x)
        run = ("--shapes=x:3x8", "--loadInputs=x:x.npy", "--exportOutput=out.json", *QUICK)
        first, self.model = self.model, network(
            self.folder / "other.onnx",
            [("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["r"], {}), ("MatMul", ["r", "v"], ["y"], {})],
            [("x", TensorProto.FLOAT, ["n", 8])], [("y", TensorProto.FLOAT, ["n", 4])],
            [("w", np.random.default_rng(6).standard_normal((8, 16), np.float32)),
             ("v", np.random.default_rng(7).standard_normal((16, 4), np.float32))])
        for emulated in (False, True):
            if emulated:
                self.use_emulated_gpu()
            with self.subTest(emulated):
                self.passes(f"--onnx={first}", "--stripAllWeights", "--saveEngine=light", "--skipInference", "--noTF32", *run)
                self.fails("lacks 'w', 'v'", "--loadEngine=light", *run)
                output = self.passes("--loadEngine=light", f"--refitFromOnnx={self.model}", "--dumpRefit", "--timeRefit",
                                     *run).stdout
                self.assertIn("Refittable weights: 2", output)
                self.assertIn("Total refit time = ", output)
                self.check_output("out.json", self.expected(x))
                self.passes(f"--onnx={first}", "--stripWeights", "--saveEngine=same", "--skipInference", *run)
                self.fails("kREFIT_IDENTICAL", "--loadEngine=same", f"--refitFromOnnx={self.model}", *run)
                self.passes("--loadEngine=same", f"--refitFromOnnx={first}", *run)

    def test_weights_are_streamed(self):
        x = np.random.default_rng(8).standard_normal((3, 8), np.float32)
        np.save(self.folder / "x.npy", x)
        self.model = network(
            self.folder / "wide.onnx",
            [("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["r"], {}), ("MatMul", ["r", "v"], ["y"], {})],
            [("x", TensorProto.FLOAT, ["n", 8])], [("y", TensorProto.FLOAT, ["n", 64])],
            [("w", np.random.default_rng(9).standard_normal((8, 256), np.float32)),
             ("v", np.random.default_rng(10).standard_normal((256, 64), np.float32))])
        run = ("--shapes=x:3x8", "--loadInputs=x:x.npy", "--exportOutput=out.json", *QUICK)
        self.passes(f"--onnx={self.model}", "--allowWeightStreaming", "--saveEngine=plain", "--skipInference", *run)
        self.assertIn("--weightStreamingBudget has no effect",
                      self.passes("--loadEngine=plain", "--weightStreamingBudget=0", *run).stderr)
        self.use_emulated_gpu()
        self.passes(f"--onnx={self.model}", "--allowWeightStreaming", "--saveEngine=engine", "--skipInference", "--noTF32", *run)
        streamable = 4 * (8 * 256 + 256 * 64)
        for budget, told in (("-2", streamable), ("-1", streamable), ("50%", streamable // 2), ("1K", 1024), ("0", 0)):
            with self.subTest(budget):
                output = self.passes("--loadEngine=engine", f"--weightStreamingBudget={budget}", *run).stdout
                self.assertIn(f"Weight streaming budget: {told} of {streamable} bytes", output)
                self.check_output("out.json", self.expected(x))

    def test_defaults_of_each_generation(self):
        self.use_emulated_gpu()
        for generation, graph, transfers, spin in ((10, "Disabled", "Enabled", "Disabled"), (11, "Enabled", "Disabled", "Enabled")):
            output = self.passes(f"--onnx={self.model}", "--shapes=x:1x8", f"--generation={generation}", *QUICK).stdout
            self.assertIn(f"CUDA Graph: {graph}\n", output)
            self.assertIn(f"Data transfers: {transfers}\n", output)
            self.assertIn(f"Spin-wait: {spin}\n", output)

    def test_levels_of_hardware_are_of_gpus(self):
        for level in ("ampere+", "sameComputeCapability"):
            done = self.passes(f"--onnx={self.model}", "--shapes=x:1x8", f"--hardwareCompatibilityLevel={level}",
                               "--skipInference", *QUICK)
            self.assertIn("setHardwareCompatibilityLevel has no effect", done.stdout + done.stderr)

    def test_failures(self):
        model = f"--onnx={self.model}"
        (self.folder / "no.onnx").write_bytes(b"nothing")
        self.fails("--onnx=FILE")
        self.fails("Failed to parse onnx file", "--onnx=no.onnx")
        self.fails("Error opening engine file: missing", "--loadEngine=missing")
        self.fails("LATHE-", "--loadEngine=no.onnx")
        self.fails('Cannot find input tensor with name "z"', model, "--shapes=z:1x8", *QUICK)
        self.fails("does not fit input x", model, "--shapes=x:1x9", *QUICK)
        self.fails("x is float32 in the model, not float16", model, "--inputIOFormats=fp16:chw", *QUICK)
        self.fails("LATHE-3002", model, "--inputIOFormats=fp32:chw32", "--shapes=x:1x8", *QUICK)
        self.fails("the engine has no input z", model, "--loadInputs=z:no.onnx", "--shapes=x:1x8", *QUICK)
        self.fails("7 bytes do not make", model, "--loadInputs=x:no.onnx", "--shapes=x:1x8", *QUICK)
        self.fails("--target", model, "--target=tpu", *QUICK)
        self.fails("/no/such", model, "--saveEngine=/no/such/engine", *QUICK)
        self.use_emulated_gpu()
        self.fails("Cannot find device ID 7!", model, "--device=7", *QUICK)

    def test_the_same_as_a_command_of_lathe(self):
        result = self.run_words(f"--onnx={self.model}", "--shapes=x:1x8", *QUICK, program=(BUILD / "bin/lathe", "trtexec"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("lathe trtexec --onnx=", result.stdout.splitlines()[-1])
        self.assertIn("trtexec", self.run_words("--help", program=(BUILD / "bin/lathe",)).stdout)


if __name__ == "__main__":
    unittest.main()
