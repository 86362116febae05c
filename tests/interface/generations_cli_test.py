#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both generations of the interface, by source and by binary: programs that were compiled for one run with the libraries of
its names, and the tables lie where it looks for them."""
import itertools
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits/digits.onnx"
GENERATIONS = (10, 11)
VERSIONS = {"getInferLibVersion", "getInferLibMajorVersion", "getInferLibMinorVersion", "getInferLibPatchVersion",
            "getInferLibBuildVersion"}
RUNTIME = {"createInferRuntime_INTERNAL", "createInferRefitter_INTERNAL", "getPluginRegistry", "getLogger"} | VERSIONS
NAMES = {
    "nvinfer": RUNTIME | {"createInferBuilder_INTERNAL", "getBuilderPluginRegistry", "getBuilderSafePluginRegistry",
                          "setInternalLibraryPath"},
    "nvonnxparser": {"createNvOnnxParser_INTERNAL", "createNvOnnxParserRefitter_INTERNAL", "getNvOnnxParserVersion"},
    "nvinfer_plugin": {"initLibNvInferPlugins"},
    "nvinfer_lean": RUNTIME,
    "nvinfer_dispatch": RUNTIME,
    "nvinfer_vc_plugin": {"getCreators", "setLoggerFinder"},
}
# How many versions are of the V2 family, those from 1 on, and how many behind them of V3.
PLUGIN_VERSIONS = {
    "BatchedNMS_TRT": (1, 0), "CropAndResize": (1, 0), "CropAndResizeDynamic": (1, 1), "CustomEmbLayerNormPluginDynamic": (3, 3),
    "CustomFCPluginDynamic": (1, 0), "CustomGeluPluginDynamic": (1, 0), "CustomQKVToContextPluginDynamic": (3, 3),
    "CustomSkipLayerNormPluginDynamic": (4, 4), "DisentangledAttention_TRT": (1, 1), "EfficientNMS_Implicit_TF_TRT": (1, 0),
    "FlattenConcat_TRT": (1, 0), "InstanceNormalization_TRT": (2, 1), "ModulatedDeformConv2d": (1, 1),
    "MultiscaleDeformableAttnPlugin_TRT": (1, 1), "NMS_TRT": (1, 0), "NMSDynamic_TRT": (1, 0), "Normalize_TRT": (1, 0),
    "PyramidROIAlign_TRT": (1, 0), "ROIAlign_TRT": (1, 1), "Reorg_TRT": (2, 0), "ResizeNearest_TRT": (1, 0), "ScatterElements": (1, 1),
    "ScatterND": (1, 0), "TopkLastDim": (0, 1), "DecodeBbox3DPlugin": (1, 0), "PillarScatterPlugin": (1, 0),
    "VoxelGeneratorPlugin": (1, 0), "NoSuch_TRT": (0, 0),
}
CPU = {"LATHE_TARGET": "cpu"}
CPU_FLAGS = pathlib.Path("/proc/cpuinfo").read_text().split()
EMULATED_GPU = {"LATHE_TARGET": "cuda", "LATHE_CUDA_DRIVER": f"{BUILD}/fake_cuda/libfake_cuda_driver.so",
                "LATHE_NVRTC": f"{BUILD}/fake_cuda/libnvrtc.so", "LATHE_CACHE_DIR": f"{BUILD}/interface_cache"}


def checked(*command, device=CPU):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=os.environ | device)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def library(name, generation):
    return BUILD / f"lib/compat/{generation}/lib{name}.so.{generation}"


class Generations(unittest.TestCase):
    def test_tables_of_10_lie_where_its_programs_look(self):
        self.assertIn(" functions, 0 in a wrong slot", checked(BUILD / "bin/slots_10_16"))

    def test_libraries_have_the_names_and_functions_of_the_originals(self):
        for generation in GENERATIONS:
            for name, functions in NAMES.items():
                with self.subTest(name=name, generation=generation):
                    path = library(name, generation)
                    dynamic = checked("readelf", "--dynamic", "--wide", path)
                    self.assertIn(f"Library soname: [lib{name}.so.{generation}]", dynamic)
                    symbols = checked("nm", "--dynamic", "--defined-only", path).split("\n")
                    self.assertEqual({line.split()[-1] for line in symbols if line.strip()}, functions)
                    self.assertLess(path.stat().st_size, 64 << 10)  # the implementation is one library, not five

    def test_a_program_that_knows_slot_numbers_alone_builds_and_runs(self):
        for generation, device in itertools.product(GENERATIONS, (CPU, EMULATED_GPU)):
            with self.subTest(generation=generation, device=device["LATHE_TARGET"]):
                path = library("nvinfer", generation)
                *log, result = checked(BUILD / "bin/slots_client", path, generation, device=device).splitlines()
                self.assertEqual(result, "y = 0 2 0 4")
                if generation == 10:
                    self.assertIn("NetworkDefinitionCreationFlag::kEXPLICIT_BATCH is deprecated", log.pop(0))
                # Its number of the flag is that of another flag in the other generation.
                self.assertRegex("\n".join(log), r"\Alog 2: .*BuilderFlag::kEXCLUDE_LEAN_RUNTIME has no effect[^\n]*\Z")

    def test_a_program_of_the_other_generation_is_refused_with_one_report_each_time(self):
        for generation, other in (GENERATIONS, GENERATIONS[::-1]):
            with self.subTest(generation=generation):
                path = library("nvinfer", other)
                *log, result = checked(BUILD / "bin/slots_client", path, generation).splitlines()
                self.assertEqual(result, "refused")
                self.assertEqual(len(log), 2, log)  # of a builder, of a runtime
                for line in log:
                    self.assertRegex(line, rf"^log 1: .*LATHE-9001.*lib/compat/{generation}")

    def test_programs_compiled_against_the_headers_build_and_run_each_others_plans(self):
        with tempfile.TemporaryDirectory() as folder:
            for generation in GENERATIONS:
                program = BUILD / f"bin/source_client_{generation}"
                plan = pathlib.Path(folder, f"{generation}.plan")
                checked(program, "build", plan, library("nvinfer_vc_plugin", generation))
                for other in GENERATIONS:
                    with self.subTest(built_by=generation, run_by=other):
                        output = checked(BUILD / f"bin/source_client_{other}", "run", plan)
                        self.assertEqual(output.splitlines()[-1], "y = 0 4 6")
                with self.subTest(generation=generation):
                    self.assertRegex(checked(program, "count", DIGITS).splitlines()[-1], r"^[1-9]\d* layers$")

    def test_standard_plugins_have_the_versions_of_the_originals(self):
        for generation, (name, (v2, v3)) in itertools.product(GENERATIONS, PLUGIN_VERSIONS.items()):
            with self.subTest(generation=generation, name=name):
                kinds = ["PLUGIN CREATOR_V1"] * v2 + ["PLUGIN CREATOR_V3ONE"] * v3
                found = checked(BUILD / f"bin/source_client_{generation}", "creators", name).splitlines()
                self.assertEqual([line for line in found if line[0] != "l"], [f"{i} {kind}" for i, kind in enumerate(kinds, 1)])

    def test_the_application_is_called_as_its_generation_lays_it_out(self):
        leans = {10: BUILD / "lib/liblathe_lean.so.0", 11: BUILD / "lib/liblathe_lean_10.so.0"}
        # By the library's own runtime, and by one of the other generation.
        for generation, lean in itertools.product(GENERATIONS, (False, True)):
            with self.subTest(generation=generation, lean=lean):
                self.assertEqual(checked(BUILD / f"bin/callbacks_client_{generation}", *[leans[generation]] * lean).splitlines(), [
                    "recorder hears of errors: yes", "recorder is let go: yes", "progress is told: yes",
                    "creator is registered: yes", "runs: yes", "y = 3 6 9", "listener: scaled -3.000000",
                    "profiler is told of layers: yes", "logger has lines: yes"])

    # S20, S23, S179.
    def test_engines_of_a_runtime_of_the_other_generation(self):
        leans = {generation: library("nvinfer_lean", generation) for generation in GENERATIONS}
        answer = "y = -2 0 20, not zero at 0 2 of 2"
        refitted = "y = -10 0 150, not zero at 0 2 of 2"
        for generation, other in (GENERATIONS, GENERATIONS[::-1]):
            gone = ["reads by an old reader: yes", "sizes agree: yes", answer, "all shapes are specified: yes", "implicit batch: no",
                    "budgets: yes", "values of 32 bits are reported: yes"]
            ranges = ["ranges are reported: yes", "no ranges: yes"]
            with self.subTest(generation=generation):
                lines = checked(BUILD / f"bin/other_generation_client_{generation}", leans[other], leans[generation]).splitlines()
                self.assertEqual(lines, [
                    "logger is the application's: yes",
                    "a creator of the V2 family is left out: yes", "and not listed: yes", "nor registered: yes",
                    "registry is the runtime's: yes",
                    "sources have this interface's numbers: yes", "shapes are told: yes", "recorder hears of errors: yes",
                    "recorder is let go: yes", "gives its plan: yes", "gives it as told: yes",
                    "no cache at first: yes", "cache is set: yes", "cache is written and read: yes",
                    "context has the settings: yes", "settings of other engines are refused: yes",
                    "context knows its engine: yes", "no profiler at first: yes", "profiler is set: yes", answer,
                    "profiler is told of layers: yes", "profiler is let go: yes", "inspector takes the context: yes",
                    "inspector describes the engine: yes", *(gone if generation == 10 else []),
                    "refitter has its logger: yes", "refitter names weights: yes", "refits: yes", "weights are told: yes",
                    "unknown weights are reported: yes", *(ranges if generation == 10 else []), refitted,
                    refitted, answer, f"errors: {4 if generation == 10 else 3}"])

    def test_what_only_generation_10_has_works_or_is_told_of(self):
        lines = checked(BUILD / "bin/weak_typing_client").splitlines()
        log = [line for line in lines if re.match("warning|error", line)]
        self.assertEqual([line for line in lines if line not in log], [
            "fast fp16: no", "fast int8: yes", "tf32: no",
            "precision is set at first: no", "precision is half: yes", "type of output 0 is set, not of 7: yes",
            "both are reset: yes", "range is set: yes", "range of NaN is set: no", "range is reset: yes",
            "input is half: yes", "a type that is refused leaves the one before: yes", "quantized is int8: yes", "fill is float: yes", "calibrator's algorithm: yes",
            "flags are set: yes", "a weakly typed network is built: yes",
            "a strongly typed one with flags is built: no", "implicit batch: no", "sizes agree: yes",
            "all shapes are specified: yes", "runs: yes",
            "creator is registered: yes", "creator is listed: yes", "creator is found: yes",
            "registered twice: no", "its plugin says that inputs are broadcast: yes",
            "a layer of the V2 family is added: yes", "creator is gone: yes"])
        told = {
            "ILayer::setOutputType: ": "error",
            "ITensor::setDynamicRange: ": "error", "ITensor::setType: ": "error",
            "int8 is asked for": "warning", "ILayer::setPrecision: ": "error", "BuilderFlag::kFP16 is set": "error"}
        for text, severity in told.items():
            with self.subTest(text):
                self.assertEqual([line.split(":")[0] for line in log if text in line], [severity], log)

    def test_memory_of_weakly_typed_networks_has_the_types_that_are_set(self):
        *log, last = checked(BUILD / "bin/bound_types_client", DIGITS).splitlines()
        self.assertEqual(last, "precisions of all layers are obeyed: yes")
        refusal = log.pop(-2)
        self.assertEqual(log, [
            "halves: told yes, engine has them yes, y = 4000 4200 4400 bc00",
            "bfloats to floats: told yes, engine has them yes, y = 2 3 4 -1",
            "floats to halves: told yes, engine has them yes, y = 4000 4200 4400 bc00",
            "levels: told yes, engine has them yes, y = 4 6 8 -2", "levels without ranges: told yes, no engine"])
        self.assertRegex(refusal, r"^error: .*LATHE-3002.*'x' is of kINT8 in memory.*call ITensor::setDynamicRange")

    def test_batches_in_a_gpus_memory_calibrate_as_those_of_the_host(self):
        *cache, end = checked(BUILD / "bin/calibration_client", "device", device=EMULATED_GPU).splitlines()
        self.assertEqual(end, "4 batches, plan: yes")
        scales = [re.fullmatch("(hidden|x): [0-9a-f]{8}", line) for line in cache[-2:]]
        self.assertTrue(all(scales), cache)
        if {"avx512_vnni", "avx_vnni"} & set(CPU_FLAGS):
            of_host = checked(BUILD / "bin/calibration_client").splitlines()
            self.assertLessEqual(set(cache[-2:]), set(of_host))

    @unittest.skipUnless({"avx512_vnni", "avx_vnni"} & set(CPU_FLAGS), "the processor multiplies no integers")
    def test_float_networks_are_quantised_by_calibrators_and_ranges(self):
        lines = checked(BUILD / "bin/calibration_client").splitlines()
        log = [line for line in lines if re.match("warning|error|info", line)]
        told = [line for line in lines if line not in log]
        scales = {}
        for line in told:
            if tensor := re.fullmatch("(hidden|x): ([0-9a-f]{8})", line):
                scales[tensor[1]] = 127 * struct.unpack(">f", bytes.fromhex(tensor[2]))[0]
        self.assertEqual(set(scales), {"hidden", "x"})
        self.assertTrue(2.5 < scales["x"] < 4.6, scales)  # of a normal distribution
        self.assertEqual([line for line in told if not re.match("hidden: |x: ", line)], [
            "entropy: near", "TRT-101600-EntropyCalibration2", "4 batches, 1 written",
            "entropy from the cache: near", "4 batches, 1 written", "dynamic sizes: near", "a profile of its own: near",
            "caches agree: yes", "entropy of old: near", "extremes: near", "quantile: near", "half of the values: far",
            "4 batches in all", "ranges: near", "ranges and a calibrator: near", "asked 0 times", "without the flag: the same",
            "weights that can be replaced: the same", "a cache of another method: near", "no batch: refused",
            "no address: refused", "a wrong cache: refused", "infinite values: the same", "a quantile of 2: refused"])
        self.assertEqual(sum("2 convolutions and matrix products multiply integers" in line for line in log), 11)
        reports = {
            "int8 is not asked for": "warning", "build without kREFIT": "warning",
            "the calibration cache is of EntropyCalibration2": "warning", "the calibrator gives no batch": "error",
            "gave no address for input 'x'": "error", "line 2 of the calibration cache is 'x: zero'": "error",
            "'x' holds infinities or NaNs": "warning", "'hidden' holds infinities or NaNs": "warning",
            "2 tensors have no range": "warning", "getQuantile gave 2": "error",
            "IBuilderConfig::setInt8Calibrator is deprecated": "warning", "ITensor::setDynamicRange is deprecated": "warning",
            "BuilderFlag::kINT8 is deprecated": "warning", "IBuilderConfig::setCalibrationProfile is deprecated": "warning"}
        for text, severity in reports.items():
            with self.subTest(text):
                self.assertEqual([line.split(":")[0] for line in log if text in line], [severity], log)
        self.assertEqual(sum(line.split(":")[0] in ("warning", "error") for line in log), len(reports), log)

    def test_plugins_of_8_bits_stand_between_tensors_with_ranges(self):
        for device in (CPU, EMULATED_GPU):
            with self.subTest(device=device["LATHE_TARGET"]):
                lines = checked(BUILD / "bin/bert_ranges_client", device=device).splitlines()
                self.assertEqual([line for line in lines if not line.startswith("info")], ["version 3: near", "version 4: near"])
                integers = sum("2 convolutions and matrix products multiply integers" in line for line in lines)
                self.assertEqual(integers, 2 if device is EMULATED_GPU or "avx512_vnni" in CPU_FLAGS else 0, lines)


if __name__ == "__main__":
    unittest.main()
