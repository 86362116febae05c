#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is refused and how (status 2: asked wrongly, 1: it cannot be done, message on standard error, never a signal),
and the tensor files that `lathe run` reads and writes."""
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
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
NUMPY_TYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
               "bool")


def lathe(*words):
    return subprocess.run([LATHE, *map(str, words)], capture_output=True, text=True)


def identity(path, dtype=TensorProto.FLOAT, shape=(2, 3), name="x"):
    """A model that gives its input back."""
    graph = helper.make_graph([helper.make_node("Identity", [name], ["y"])], "identity",
                              [helper.make_tensor_value_info(name, dtype, shape)],
                              [helper.make_tensor_value_info("y", dtype, shape)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = identity(self.folder / "model.onnx")

    def refused(self, status, text, *words):
        result = lathe(*words)
        self.assertEqual(result.returncode, status, f"{words}: {result.stdout}{result.stderr}")
        self.assertIn(text, result.stderr)

    def run_on(self, tensor_file, model=None, name="x"):
        result = lathe("run", model or self.model, f"--loadInputs={name}:{tensor_file}", "--exportOutput",
                       self.folder / "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        return np.load(self.folder / "out/y.npy")

    def test_help_of_every_command(self):
        for command in ("build", "run", "bench", "inspect", "compare", "conformance", "doctor"):
            result = lathe(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Usage", result.stdout + "Usage" * ("OPTIONS" in result.stdout))

    def test_help_lists_what_is_easier_than_trtexec(self):
        text = lathe("--help").stdout
        self.assertIn("Easier here than with trtexec:", text)
        examples = re.findall(r"^  lathe (\w+) (.*?)(?:   |$)", text[text.index("Easier"):], re.MULTILINE)
        self.assertGreaterEqual(len(examples), 8)
        for command, words in examples:  # each command and flag is there
            explained = lathe(command, "--help").stdout
            for flag in re.findall(r"--\w+", words):
                self.assertIn(flag, explained, f"lathe {command}")

    # S59.
    def test_verbose_builds_tell_what_was_timed(self):
        digits = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
        words = ("build", digits, "-o", self.folder / "digits.engine", "--buildBudget=5", "--optShapes=image:1x1x8x8")
        result = lathe(*words, "--verbose")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"timing .*convolution")
        self.assertRegex(result.stderr, r"us, predicted \d")
        self.assertIn("about 0.0 % of the time goes to plain evaluations", result.stdout)
        self.assertNotIn("timing", lathe(*words).stderr)

    def test_timing_caches_outlive_plans_that_cannot_be_written(self):
        cache = self.folder / "cache"
        words = ("build", ROOT / "examples/digits/digits.onnx", "--buildBudget=5", "--optShapes=image:1x1x8x8", "--verbose",
                 f"--timingCacheFile={cache}", "-o")
        self.refused(1, "File name too long", *words, self.folder / ("e" * 250))
        result = lathe(*words, self.folder / "digits.engine")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotRegex(result.stderr, r"timing .*convolution")  # all was measured before

    def test_usage_errors(self):
        engine = self.folder / "model.engine"
        self.refused(2, "required", "build", self.model)
        self.refused(2, "not of the form", "build", self.model, "-o", engine, "--optShapes=x")
        self.refused(2, "not a shape", "build", self.model, "-o", engine, "--optShapes=x:1xtwo")
        self.refused(2, "no input 'z'", "build", self.model, "-o", engine, "--optShapes=z:2x3")
        self.refused(2, "does not fit", "build", self.model, "-o", engine, "--optShapes=x:4x4")
        self.refused(2, "there is no 'CUBLAS'", "build", self.model, "-o", engine, "--tacticSources=+CUBLAS")
        self.refused(2, "fold_constants, sink_constants", "build", self.model, "-o", engine, "--skipPass=fold")
        self.refused(2, "say +NAME or -NAME", "build", self.model, "-o", engine, "--tacticSources=CUDNN")
        self.refused(2, "--loadInputs=x:FILE", "run", self.model)
        self.refused(2, "no input 'z'; the inputs: x (float32 2x3)", "run", self.model, "--loadInputs=z:z.npy")
        self.refused(2, "not a folder", "conformance", self.folder / "nowhere")
        self.assertFalse(engine.exists())

    def test_inputs_that_are_sequences(self):
        sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
        optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
        graph = helper.make_graph(
            [helper.make_node("ConcatFromSequence", ["s"], ["joined"], axis=0),
             helper.make_node("OptionalHasElement", ["o"], ["has"]),
             helper.make_node("Cast", ["has"], ["one"], to=TensorProto.FLOAT),
             helper.make_node("Add", ["joined", "one"], ["y"])], "sequence",
            [sequence, helper.make_value_info("o", optional)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        model = self.folder / "sequence.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), model)
        parts = np.arange(6, dtype=np.float32).reshape(3, 2)
        for name, part in zip(("a", "b"), (parts[:1], parts[1:])):
            np.save(self.folder / f"{name}.npy", part)
        inputs = f"--loadInputs=s_0:{self.folder / 'a.npy'},s_1:{self.folder / 'b.npy'}"
        result = lathe("run", model, "--inputElements=s:2@?x2,o:none", inputs, "--exportOutput", self.folder / "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        np.testing.assert_array_equal(np.load(self.folder / "out/y.npy"), parts)
        result = lathe("compare", model, "--inputElements=s:2@?x2,o:none", inputs, "--buildBudget=0")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("the outputs agree", result.stdout)
        engine = self.folder / "sequence.engine"
        self.refused(1, "setInputElements()", "build", model, "-o", engine)
        for wrong in ("s", "s:", ":2", "s:two", "s:2@", "s:2@1xtwo", "s:-2", "s:2@" + "x".join("1" * 9)):
            self.refused(2, f"--inputElements: '{wrong}' is not of the form", "build", model, "-o", engine, f"--inputElements={wrong}")
        self.refused(1, "which is no input of the model", "build", model, "-o", engine, "--inputElements=s:2@?x2,z:1")
        result = lathe("inspect", model, "--support", "--inputElements=s:2@?x2,o:none")
        self.assertIn("nodes are supported", result.stdout)
        self.assertNotIn("nodes are supported", lathe("inspect", model, "--support").stdout)
        self.refused(2, "--inputElements: 's' is not of the form", "inspect", model, "--support", "--inputElements=s")

    def test_passes_are_dumped_and_skipped(self):
        model, dump, engine = ROOT / "examples/digits/digits.onnx", self.folder / "passes", self.folder / "digits.engine"
        words = ("build", model, "-o", engine, "--buildBudget=0", "--optShapes=image:1x1x8x8", "--dumpPasses", dump)
        self.assertEqual(lathe(*words).returncode, 0)
        names = sorted(path.name for path in dump.iterdir())
        self.assertEqual(names[0], "000_before.graph")
        self.assertEqual([name[:4] for name in names], [f"{i:03}_" for i in range(len(names))])
        texts = [(dump / name).read_text() for name in names]
        self.assertTrue(all(before != after for before, after in zip(texts, texts[1:])))
        passes = {name[4:-len(".graph")] for name in names[1:]}
        self.assertGreater(len(passes), 0)
        skips = [f"--skipPass={name}" for name in sorted(passes)]
        result = lathe(*words, *skips)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(passes & {path.name[4:-len(".graph")] for path in dump.iterdir()})
        result = lathe("compare", model, "--buildBudget=0", *skips)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.refused(1, "file_read", *words[:-1], engine)

    def test_files_that_cannot_be_read(self):
        self.refused(1, "file_not_found", "build", self.folder / "none.onnx", "-o", self.folder / "e")
        (self.folder / "bad.onnx").write_bytes(b"\xff" * 100)
        self.refused(1, "LATHE-", "build", self.folder / "bad.onnx", "-o", self.folder / "e")
        (self.folder / "bad.engine").write_bytes(b"not an engine")
        self.refused(1, f"'{self.folder / 'bad.engine'}'", "inspect", self.folder / "bad.engine")
        self.refused(1, "folder cannot be written to", "build", self.model, "-o", self.folder / "none/model.engine")
        self.refused(1, "is a folder", "build", self.model, "-o", self.folder)
        engine = self.folder / "cut.engine"
        self.assertEqual(lathe("build", self.model, "-o", engine).returncode, 0)
        engine.write_bytes(engine.read_bytes()[:-100])
        self.refused(1, "LATHE-", "bench", engine)

    def test_tensor_files_that_do_not_fit(self):
        for name, content, text in (("a.npy", b"\x93NUMPY\1\0", "not a .npy"), ("a.pb", b"\x0a\xff", "in the middle"),
                                    ("a.png", b"no picture", ""), ("a.raw", b"123", "3 bytes")):
            path = self.folder / name
            path.write_bytes(content)
            self.refused(1, text, "run", self.model, f"--loadInputs=x:{path}")
        np.save(self.folder / "b.npy", np.zeros((2, 3), np.float64))
        self.refused(1, "astype('float32')", "run", self.model, f"--loadInputs=x:{self.folder / 'b.npy'}")
        np.save(self.folder / "c.npy", np.zeros((3, 2), np.float32))
        self.refused(1, "shape 2x3", "run", self.model, f"--loadInputs=x:{self.folder / 'c.npy'}")

    def test_every_type_goes_through(self):
        for dtype in NUMPY_TYPES:
            with self.subTest(dtype=dtype):
                data = (np.random.default_rng(1).integers(0, 100, (2, 3)) % (2 if dtype == "bool" else 100)).astype(dtype)
                model = identity(self.folder / f"{dtype}.onnx", helper.np_dtype_to_tensor_dtype(data.dtype))
                np.save(self.folder / "x.npy", data)
                (self.folder / "x.pb").write_bytes(numpy_helper.from_array(data).SerializeToString())
                (self.folder / "x.raw").write_bytes(data.tobytes())
                for file in ("x.npy", "x.pb", "x.raw"):
                    got = self.run_on(self.folder / file, model)
                    self.assertEqual(got.dtype, data.dtype)
                    np.testing.assert_array_equal(got, data)

    def test_shapes_and_orders(self):
        for shape in ((), (0, 3), (4,), (2, 3, 4)):
            data = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
            model = identity(self.folder / "shape.onnx", shape=shape)
            np.save(self.folder / "x.npy", np.array(data, order="F"))
            np.testing.assert_array_equal(self.run_on(self.folder / "x.npy", model), data)

    def test_pictures(self):
        pixels = np.random.default_rng(3).integers(0, 256, (5, 7, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(self.folder / "x.png")
        model = identity(self.folder / "chw.onnx", shape=(1, 3, 5, 7))
        got = self.run_on(self.folder / "x.png", model)
        np.testing.assert_allclose(got[0], pixels.transpose(2, 0, 1) / 255, atol=1e-6)
        model = identity(self.folder / "hwc.onnx", TensorProto.UINT8, (1, 5, 7, 3))
        np.testing.assert_array_equal(self.run_on(self.folder / "x.png", model)[0], pixels)

    def test_names_with_colons(self):
        model = identity(self.folder / "colon.onnx", name="scope/x:0")
        np.save(self.folder / "x.npy", np.ones((2, 3), np.float32))
        np.testing.assert_array_equal(self.run_on(self.folder / "x.npy", model, "scope/x:0"), np.ones((2, 3)))

    def test_compare_and_inspect(self):
        report = self.folder / "report.json"
        result = lathe("compare", ROOT / "examples/digits/digits.onnx", "--shapes=image:3x1x8x8", "--buildBudget=0",
                       f"--json={report}")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        compared = json.loads(report.read_text())
        self.assertGreater(len(compared["tensors"]), 5)
        for tensor in compared["tensors"] + compared["outputs"]:
            self.assertTrue(tensor["passed"], tensor)
        image = self.folder / "image.npy"
        np.save(image, np.ones((2, 1, 8, 8), np.float32))
        both = (f"--loadInputs=image:{image}", "--buildBudget=0")
        result = lathe("compare", ROOT / "examples/digits/digits.onnx", "--shapes=image:2x1x8x8", *both)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.refused(1, "its shape is 2x1x8x8", "compare", ROOT / "examples/digits/digits.onnx", "--shapes=image:3x1x8x8",
                     *both)
        self.refused(2, "target 'abacus'", "compare", ROOT / "examples/digits/digits.onnx", "--target=abacus")
        model = ROOT / "examples/digits/digits.onnx"
        result = lathe("inspect", model, "--buildBudget=0", f"--json={report}")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = lathe("inspect", model, "--buildBudget=0", "--why=image", f"--json={report}")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("an input of the network", result.stdout)
        self.assertEqual(json.loads(report.read_text())["layout"], "linear")
        self.refused(2, "has no tensor 'nothing'; it has", "inspect", model, "--buildBudget=0", "--why=nothing")
        self.refused(2, "--why needs a model", "inspect", self.folder / "bad.engine", "--why=image")
        result = lathe("inspect", ROOT / "examples/digits/digits.onnx", "--support", f"--json={report}")
        self.assertEqual(result.returncode, 0, result.stderr)
        listed = json.loads(report.read_text())["list"]
        self.assertGreater(len(listed), 10)
        self.assertLessEqual({node["support"] for node in listed}, {"native", "generic"})
        result = lathe("inspect", ROOT / "examples/digits/digits.onnx", "--buildBudget=0", f"--json={report}")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("conv1", report.read_text())
        self.assertIn("times: predicted", result.stdout)
        named = self.folder / "names_alone.engine"
        result = lathe("trtexec", f"--onnx={model}", f"--saveEngine={named}", "--skipInference", "--buildBudget=0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("keeps the names of its layers alone", lathe("inspect", named).stdout)

    def test_conformance_tells_wrong_answers(self):
        case = self.folder / "cases/one/test_data_set_0"
        case.mkdir(parents=True)
        identity(case.parent / "model.onnx")
        data = np.arange(6, dtype=np.float32).reshape(2, 3)
        (case / "input_0.pb").write_bytes(numpy_helper.from_array(data).SerializeToString())
        for wanted, status, summary in ((data, 0, "passed=1 failed=0 unsupported=0"),
                                        (data + 1, 1, "passed=0 failed=1 unsupported=0"),
                                        (data[:1], 1, "passed=0 failed=1 unsupported=0"),
                                        (data.astype(np.float64), 1, "passed=0 failed=1 unsupported=0")):
            (case / "output_0.pb").write_bytes(numpy_helper.from_array(wanted).SerializeToString())
            for mode in ("runtime", "frozen", "symbolic", "reload"):
                result = lathe("conformance", self.folder / "cases", f"--mode={mode}")
                self.assertEqual(result.returncode, status, result.stdout + result.stderr)
                self.assertEqual(result.stdout.strip().splitlines()[-1], summary)


if __name__ == "__main__":
    unittest.main()
