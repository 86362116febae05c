#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flags of trtexec: each is in --help and in docs/trtexec.md, and is honoured, refused or warned about as its row of
tools/trtexec/flags.def says. `trtexec_flags_cli_test.py --write` brings the page up to date."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRTEXEC = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve() / "bin/trtexec"
PAGE = ROOT / "docs/trtexec.md"
START = "<!-- from here on made by `trtexec --help=markdown` -->\n"
ROW = re.compile(r'^TRTEXEC_FLAG\((\w+), "(-[-\w]+)", (\w+), "([^"]*)", .*?, (honoured|warned|refused), "([^"]*)", "([^"]+)"\)$')
MODEL = f"--onnx={ROOT}/examples/digits/digits.onnx"
QUICK = ("--shapes=image:1x1x8x8", "--warmUp=0", "--duration=0", "--iterations=2", "--buildBudget=0", "--target=cpu")
# A value for each flag that is honoured and takes one, and what else must be given with it.
VALUES = {
    "--onnx": [], "--loadEngine": ["{engine}"], "--saveEngine": ["{folder}/e"], "--minShapes": ["image:1x1x8x8"],
    "--optShapes": ["image:1x1x8x8"], "--maxShapes": ["image:1x1x8x8"], "--profile": ["0"], "--inputIOFormats": ["fp32:chw"],
    "--outputIOFormats": ["fp32:chw"], "--memPoolSize": ["workspace:1G,tacticSharedMem:64K"], "--workspace": ["64"],
    "--builderOptimizationLevel": ["2"], "--maxTactics": ["3"], "--avgTiming": ["2"], "--profilingVerbosity": ["detailed"],
    "--nvtxMode": ["verbose"], "--timingCacheFile": ["{folder}/c"], "--tacticSources": ["+CUBLAS_LT,-CUDNN"],
    "--preview": ["+aliasedPluginIO1003"], "--precisionConstraints": ["prefer"], "--layerPrecisions": ["*:fp32"],
    "--layerOutputTypes": ["*:fp32"], "--sparsity": ["disable", "force"], "--leanDLLPath": ["{lean}"],
    "--hardwareCompatibilityLevel": ["none"], "--runtimePlatform": ["SameAsBuild"], "--tempdir": ["{folder}"],
    "--tempfileControls": ["in_memory:allow,temporary:deny"], "--maxAuxStreams": ["1"], "--tilingOptimizationLevel": ["1"],
    "--l2LimitForTiling": ["1000000"], "--decomposableAttentions": ["*"], "--markDebug": ["probabilities"],
    "--layerDeviceTypes": ["*:GPU"], "--useRuntime": ["full"], "--shapes": [], "--useProfile": ["0"],
    "--loadInputs": ["image:{folder}/image"], "--iterations": ["3"], "--duration": ["0.01"], "--warmUp": ["1"], "--sleepTime": ["1"],
    "--idleTime": ["1"], "--infStreams": ["2"], "--streams": ["2"], "--allocationStrategy": ["static"],
    "--persistentCacheRatio": ["0.5"], "--weightStreamingBudget": ["30%"], "--loadRefOutputs": [], "--refPair": ["0"],
    "--accuracyAlgorithm": ["cos"], "--atol": ["1e-3"], "--rtol": ["1e-3"], "--accuracyThreshold": ["1"],
    "--saveDebugTensors": [], "--saveAllDebugTensors": ["summary"], "--avgRuns": ["2"], "--percentile": ["50,99.9"],
    "--exportTimes": ["{folder}/t"], "--exportOutput": ["{folder}/o"], "--exportProfile": ["{folder}/p"],
    "--exportLayerInfo": ["{folder}/l"], "--device": ["0"], "--generation": ["10"], "--target": [], "--buildBudget": ["0.1"],
    "--cpuThreads": ["1"], "--calib": ["{folder}/calibration"]}
NEEDS = {"--excludeLeanRuntime": ["--versionCompatible"], "--calib": ["--int8"]}
# Honoured by passing on what the library refuses, for now or for ever.
LIBRARY_REFUSES = {"--setBuildRoute": "[]x", "--staticPlugins": "/no/lib", "--plugins": "/no/lib", "--dynamicPlugins": "/no/lib",
                   "--setPluginsToSerialize": None, "--refitFromOnnx": None, "--timeRefit": None}


def rows():
    for line in (ROOT / "tools/trtexec/flags.def").read_text().splitlines():
        if row := ROW.match(line):
            yield row.groups()
        elif line.startswith("TRTEXEC_FLAG"):
            raise ValueError(f"flags.def: a row in one line, please: {line}")


def run(*words, environment=None):
    clean = {name: value for name, value in os.environ.items() if name != "LATHE_TARGET"}
    return subprocess.run([str(word) for word in (TRTEXEC, *words)], capture_output=True, text=True,
                          env=clean | {"LATHE_CUDA_DRIVER": "/no/driver"})


def table():
    return "\n".join(line for line in run("--help=markdown").stdout.splitlines() if not line.startswith("&&&&")) + "\n"


class Flags(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_the_page_is_the_table(self):
        head, start, rest = PAGE.read_text().partition(START)
        self.assertTrue(start)
        self.assertGreater(rest.count("\n| `-"), 140)
        self.assertEqual(rest, table(), "run tests/cli/trtexec_flags_cli_test.py --write")

    def test_help_has_every_flag(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for _, name, *_ in rows():
            self.assertRegex(result.stdout, rf"\n  {name}[= \n]")

    def test_what_is_refused_says_why_and_ends(self):
        seen = 0
        for _, name, _, argument, handling, words, _ in rows():
            if handling != "refused":
                continue
            with self.subTest(name):
                result = run(MODEL, f"{name}=1" if argument else name, *QUICK)
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"[E] {name} is refused: {words}", result.stderr)
                self.assertNotIn("Engine built", result.stdout)
            seen += 1
        self.assertGreater(seen, 20)

    def values(self, name):
        places = {"folder": self.folder, "engine": self.folder / "engine", "lean": TRTEXEC.parents[1] / "lib/liblathe_lean.so"}
        return [value.format(**places) for value in VALUES.get(name, [])]

    def test_all_others_run(self):
        self.assertEqual(run(MODEL, f"--saveEngine={self.folder}/engine", "--skipInference", *QUICK).returncode, 0)
        (self.folder / "image").write_bytes(bytes(4 * 64))
        (self.folder / "calibration").write_text("TRT-101600-EntropyCalibration2\nimage: 3c010204\n")
        for _, name, _, argument, handling, words, _ in rows():
            if handling == "refused" or name in LIBRARY_REFUSES or name in ("--getPlanVersionOnly",):
                continue
            given = self.values(name)
            if argument and not given:
                if handling == "honoured":
                    self.assertIn(name, VALUES)
                    continue
                given = ["1"]
            with self.subTest(name):
                result = run(MODEL, *[word for word in QUICK if not word.startswith(name + "=")], *NEEDS.get(name, []),
                             *([f"{name}={value}" for value in given] if argument else [name]), "--avgRuns=1000")
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                if handling == "warned":
                    self.assertEqual(result.stderr.count(f"[W] {name}: {words}"), 1, result.stderr)

    def test_values_that_make_no_sense(self):
        for words, text in (
                (["--iterations=many"], "--iterations: 'many' is no whole number"), (["--iterations=-1"], "at least 0"),
                (["--builderOptimizationLevel=6"], "6 is not from 0 to 5"), (["--iterations"], "--iterations needs a value"),
                (["--fp16=yes"], "--fp16 takes no value"), (["--shapes=x"], "'x' is not of the form name:value"),
                (["--shapes=x:1xy"], "'y' is no whole number"), (["--shapes=image:1x1x8x8"], "'image' is given twice"),
                (["--memPoolSize=heap:1"], "'heap' is no memory pool"), (["--memPoolSize=workspace:lots"], "'lots' is no number"),
                (["--percentile=101"], "101 is not from 0 to 100"), (["--sparsity=always"], "'always' is none of disable, enable, force"),
                (["--useRuntime=dispatch"], "need --loadEngine"), (["--excludeLeanRuntime"], "needs --versionCompatible"),
                (["--duration=-2"], "-2 is negative"), (["--fp16", "--bf16"], "narrowed to one of them"),
                (["--inputIOFormats=fp32:chw,fp32:chw"], "2 entries"), (["--inputIOFormats=f:chw"], "'f' is no type"),
                (["--precisionConstraints=maybe"], "'maybe' is none of none, prefer, obey"), (["--preview=x"], "'x' is no change"),
                (["--tacticSources=CUDNN"], "'CUDNN' is no change"), (["--markDebug=nothing"], "no tensor nothing"),
                (["--layerDeviceTypes=*:TPU"], "'TPU' is neither GPU nor DLA"), (["--timeRefit"], "--refitFromOnnx=FILE"),
                (["--saveAllDebugTensors=gif"], "'gif' is none of"), (["--tempfileControls=a:b"], "in_memory:allow"),
                (["--loadRefOutputs=z:x"], "no output z"), (["--persistentCacheRatio=2"], "2 is not from 0 to 1"),
                (["--weightStreamingBudget=130%"], "from 0 to 100"), (["--generation=9"], "9 is not from 10 to 11"),
                (["--int8", f"--calib={PAGE}"], "line 1 of the calibration cache")):
            with self.subTest(words):
                result = run(MODEL, *QUICK, *words)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn(text, result.stderr)
                self.assertIn("&&&& FAILED", result.stdout)

    def test_unknown_flags_are_answered_with_the_nearest(self):
        for wrong, near in (("--loadInput=x:y", "--loadInputs"), ("--saveengine=f", "--saveEngine"), ("--useCudaGraphs", "--useCudaGraph"),
                            ("--memPoolSizes=x", "--memPoolSize"), ("model.onnx", "--onnx")):
            result = run(MODEL, wrong)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"[E] Unknown option: {wrong.split('=')[0]}. The nearest is {near} (", result.stderr)

    def test_values_after_a_blank(self):
        result = run("--onnx", MODEL.split("=")[1], "--shapes", "image:2x1x8x8", *QUICK[1:])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Input inference shape : image=2x1x8x8", result.stdout)

    def test_what_the_library_refuses_ends_the_program(self):
        for name, value in LIBRARY_REFUSES.items():
            if value:
                with self.subTest(name):
                    result = run(MODEL, f"{name}={value}", *QUICK)
                    self.assertEqual(result.returncode, 1, result.stdout)
                    self.assertIn("[E]", result.stderr)


if __name__ == "__main__":
    if "--write" in sys.argv:
        head, start, _ = PAGE.read_text().partition(START)
        PAGE.write_text(head + start + table())
    else:
        unittest.main()
