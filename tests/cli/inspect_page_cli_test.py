#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lathe inspect --html`: the page's numbers are those of --json, it loads nothing, names of layers cannot break out of it, and where
there is a Chromium, its rows and lanes stand where they should."""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = '</script><b onclick="x">&amp;'
VOID = {"meta", "input", "col"}  # elements of the page that have no end


class Page(html.parser.HTMLParser):
    """Elements as (tag, attributes, own text, the nearest enclosing id)."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        inside = next((element["attributes"]["id"] for element in reversed(self.open) if element["attributes"].get("id")), None)
        element = {"tag": tag, "attributes": attributes, "text": "", "in": inside}
        self.elements.append(element)
        while self.open and tag in ("td", "tr", "th") and self.open[-1]["tag"] in ("td", "th"):
            self.open.pop()
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        while self.open and self.open[-1]["tag"] != tag:
            self.open.pop()
        if self.open:
            self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.open[-1]["text"] += data

    def numbers(self, where):
        """What the elements in the one with this id say: {key: (value, text)}."""
        return {element["attributes"]["data-key"]: (element["attributes"]["data-value"], element["text"])
                for element in self.elements if "data-key" in element["attributes"] and element["in"] == where}

    def find(self, tag, where=None):
        return [element for element in self.elements if element["tag"] == tag and where in (None, element["in"])]


def lathe(*words, status=0):
    result = subprocess.run([str(word) for word in (LATHE, *words)], capture_output=True, text=True)
    if result.returncode != status:
        raise AssertionError(f"{words}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def write_chain(path, layers):
    """So many products, of which every fifth is added to an earlier one; a transposition that is copied comes last."""
    nodes, x = [], "x"
    for i in range(layers):
        nodes += [helper.make_node("MatMul", [x, "w"], [f"m{i}"], name=f"/block.{i}/{HOSTILE}/" + "long_name_" * 20),
                  helper.make_node("Softmax", [f"m{i}"], [f"s{i}"])]
        x = f"s{i}"
        if i % 5 == 4:
            nodes.append(helper.make_node("Add", [x, f"s{i - 4}"], [f"a{i}"]))
            x = f"a{i}"
    nodes.append(helper.make_node("Transpose", [x], ["y"], name="turn", perm=[1, 0]))
    weights = numpy_helper.from_array(np.random.default_rng(1).normal(0, 0.1, (16, 16)).astype(np.float32), "w")
    graph = helper.make_graph(nodes, HOSTILE, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 8])], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


LOST = {  # by the softmax's name, which is that of its result: what stands around it, and the reason that is said
    "read": "'read' is read by others, too",
    "axis": "it runs along axis 2, and not along the last",
    "logarithm": "it is a logarithm",
    "einsum": "its scores pass the einsum 'bhqd,bhkd->hqk' of 'einsum_scores'",
    "factors": "its scores are multiplied by values of each query or key",
    "root": "its scores pass unary 'root_abs'",
    "sorted": "its probabilities pass slice 'sorted_changed'",
    "right": "its probabilities are the right operand of matmul 'right_y'",
    "single": "its products are of single matrices",
    "rounded": "its scores are rounded to integers",
    "levels": "its probabilities are rounded to integers: a kernel would need the sum over all keys first",
}


WHOLE_MASKS = {
    "any_y": "no part of 'any' is known to follow from the places of queries and keys",
    "half_y": "what 'half_mask' hides by places has -65504, and a query that sees no key is told apart by that",
}


def write_masks(path):
    size = ["batch", 2, "length", 8]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name in "qkv"]
    inputs += [helper.make_tensor_value_info("any", TensorProto.FLOAT, ["batch", 1, "length", "length"]),
               helper.make_tensor_value_info("padding", TensorProto.BOOL, ["batch", 1, 1, "length"])]
    nodes = [helper.make_node(kind, names.split(), [name], name) for name, kind, names in (
        ("sizes", "Shape", "q"), ("length_", "Gather", "sizes two"), ("keys", "Range", "zero length_ one"),
        ("queries", "Reshape", "keys column"), ("earlier", "LessOrEqual", "keys queries"), ("first", "Sub", "queries three"),
        ("near", "Greater", "keys first"), ("band", "And", "earlier near"), ("shown", "And", "earlier padding"),
        ("half_mask", "Where", "shown none low"), ("window_mask", "Where", "band none lowest"))]
    nodes.append(helper.make_node("Transpose", ["k"], ["turned"], "turned", perm=[0, 1, 3, 2]))
    for name, mask, left in (("any", "any", "q"), ("half", "half_mask", "k"), ("window", "window_mask", "v")):
        for kind, words, result in (("MatMul", [left, "turned"], "scores"), ("Add", [f"{name}_scores", mask], "sums"), 
                                    ("Softmax", [f"{name}_sums"], "weights"), ("MatMul", [f"{name}_weights", "v"], "y")):
            nodes.append(helper.make_node(kind, words, [f"{name}_{result}"], f"{name}_{result}"))
    numbers = {"zero": np.int64(0), "one": np.int64(1), "two": np.int64(2), "three": np.int64(3), "column": np.array([-1, 1]),
               "none": np.float32(0), "low": np.float32(-65504), "lowest": np.finfo(np.float32).min}
    outputs = [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, size) for name in ("any", "half", "window")]
    graph = helper.make_graph(nodes, "masks", inputs, outputs,
                              [numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_lost_attentions(path):
    """A softmax between products for each reason, and an attention that is recognised."""
    nodes, outputs, shapes = [], [], {"of_each": [2, 1, 5, 5]}

    def op(kind, inputs, name, **attributes):
        nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def rounded(x, name, zero):
        return op("DequantizeLinear", [op("QuantizeLinear", [x, "scale", zero], f"{name}_levels"), "scale", zero], f"{name}_changed")

    for name in ("attention", *LOST):
        q, k, v = (f"{name}_{each}" for each in "qkv")
        shapes |= dict.fromkeys((q, k, v), [5, 5] if name == "single" else [2, 3, 5, 5])
        scores = f"{name}_scores"
        if name == "einsum":
            op("Einsum", [q, k], scores, equation="bhqd,bhkd->hqk")
        else:
            op("MatMul", [q, k], scores)
        if name == "factors":
            scores = op("Mul", [scores, "of_each"], "factors_changed")
        if name == "root":
            scores = op("Sqrt", [op("Abs", [scores], "root_abs")], "root_changed")
        if name == "rounded":
            scores = rounded(scores, name, "zero_i8")
        weights = op("LogSoftmax" if name == "logarithm" else "Softmax", [scores], name, axis=2 if name == "axis" else -1)
        if name == "sorted":
            weights = op("Slice", [weights, "starts", "ends", "axes", "steps"], "sorted_changed")
        if name == "levels":
            weights = rounded(weights, name, "zero_u8")
        outputs.append(op("MatMul", [v, weights] if name == "right" else [weights, v], f"{name}_y"))
    outputs.append("read")
    constants = [numpy_helper.from_array(np.array([value], np.int64), each)
                 for each, value in {"starts": -1, "ends": -10, "axes": 3, "steps": -1}.items()]
    constants += [helper.make_tensor("scale", TensorProto.FLOAT, [], [0.05]), helper.make_tensor("zero_i8", TensorProto.INT8, [], [0]),
                  helper.make_tensor("zero_u8", TensorProto.UINT8, [], [0])]
    graph = helper.make_graph(nodes, "lost", [helper.make_tensor_value_info(each, TensorProto.FLOAT, shape) for each, shape in shapes.items()],
                              [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in outputs], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class InspectPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.kept.name)
        write_chain(cls.folder / "chain.onnx", 40)
        write_chain(cls.folder / "long.onnx", 220)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def inspect(self, file, *options):
        page, report = self.folder / "page.html", self.folder / "report.json"
        lathe("inspect", file, "--html", page, "--json", report, *options)
        text = page.read_text()
        return text, Page(text), json.loads(report.read_text())

    def check(self, text, page, report):
        layers = report["layers"]
        rows = [row for row in page.find("tr", "steps-table") if "data-step" in row["attributes"]]
        self.assertEqual([row["attributes"]["data-step"] for row in rows], [str(i) for i in range(len(layers))])
        for i, layer in enumerate(layers):
            shown = page.numbers(f"r{i}")
            for key in ("TimeMilliseconds", "Share", "FloorMilliseconds"):
                self.assertEqual(json.loads(shown[key][0]), layer[key], f"step {i}: {key}")
            if layer["Share"] > 0:
                self.assertAlmostEqual(float(shown["Share"][1].split()[0]), 100 * layer["Share"], delta=0.051)
            panel = page.numbers(f"s{i}")
            for key in ("Operations", "Bytes"):
                self.assertEqual(json.loads(panel[key][0]), layer[key])
            self.assertEqual([item["text"] for item in page.find("li", f"s{i}")][:len(layer["NetworkLayers"])],
                             layer["NetworkLayers"])
        buffers = [rect["attributes"] for rect in page.find("rect", "memory")]
        self.assertEqual([(int(rect["data-offset"]), int(rect["data-bytes"])) for rect in buffers],
                         [(buffer["offset"], buffer["bytes"]) for buffer in report["buffers"]])
        self.assertAlmostEqual(sum(layer["Share"] for layer in layers), 1)
        for element in page.elements:  # nothing is loaded, nothing broke out
            self.assertNotIn("src", element["attributes"])
            self.assertNotIn("onclick", element["attributes"])
            self.assertTrue(element["attributes"].get("href", "#").startswith("#"))
        self.assertEqual(len(page.find("script")), 1)
        self.assertIsNone(re.search(r"https?:|@import|url\(", text))

    def test_model(self):
        text, page, report = self.inspect(self.folder / "chain.onnx", "--buildBudget=0", "--target=cpu")
        self.check(text, page, report)
        kernels = {}
        for layer in report["layers"]:
            kernels[layer["LayerType"]] = kernels.get(layer["LayerType"], 0) + 1
        self.assertEqual(sum(kernels.values()), len(report["layers"]))
        self.assertEqual(report["time_source"], "predicted")
        self.assertEqual(report["total_milliseconds"], sum(layer["PredictedMilliseconds"] for layer in report["layers"]))
        product = next(layer for layer in report["layers"] if layer["LayerType"] == "gemm")
        self.assertEqual(product["Operations"], 2 * 8 * 16 * 16)
        self.assertEqual(product["Bytes"], 4 * (8 * 16 + 16 * 16 + 8 * 16))
        rates = report["device"]
        self.assertAlmostEqual(product["FloorMilliseconds"] * 1000,
                               max(product["Operations"] / rates["operations_per_us"]["f32"],
                                   product["Bytes"] / rates["memory_bytes_per_us"]))
        self.assertTrue(all("Candidates" in layer and "Why" in layer for layer in report["layers"]))

    def test_lost_attentions(self):
        self.maxDiff = None
        file = self.folder / "lost.onnx"
        write_lost_attentions(file)
        shown = lathe("inspect", file, "--buildBudget=0", "--target=cpu")
        text, page, report = self.inspect(file, "--buildBudget=0", "--target=cpu")
        self.assertEqual({each["tensor"]: each["why"] for each in report["lost_attentions"]}, LOST)
        for name, why in LOST.items():
            self.assertRegex(shown, rf"(?m)^{name} +{re.escape(why)}$")
        self.assertEqual([cell["text"].strip() for cell in page.find("td", "lost_attentions")],
                         [word for each in report["lost_attentions"] for word in (each["tensor"], each["why"])])
        text, page, report = self.inspect(self.folder / "chain.onnx", "--buildBudget=0", "--target=cpu")
        self.assertEqual(report["lost_attentions"], [])
        self.assertNotIn("lost_attentions", text)

    def test_masks_of_attentions(self):
        """A window, and masks of all queries and keys: of an input, and of a triangle of -65504 beside padding."""
        file = self.folder / "masks.onnx"
        write_masks(file)
        text, page, report = self.inspect(file, "--buildBudget=0", "--target=cpu")
        self.assertEqual({each["tensor"]: each["why"] for each in report["whole_masks"]}, WHOLE_MASKS)
        shown = lathe("inspect", file, "--buildBudget=0", "--target=cpu")
        for name, why in WHOLE_MASKS.items():
            self.assertRegex(shown, rf"(?m)^{name} +{re.escape(why)}$")
        self.assertIn("a query sees its own key and the 2 before it: no others are multiplied",
                      lathe("inspect", file, "--buildBudget=0", "--target=cpu", "--why=window_y"))

    def test_engine_and_profile(self):
        engine = self.folder / "digits.engine"
        lathe("build", DIGITS, "-o", engine, "--buildBudget=0", "--target=cpu", "--optShapes=image:3x1x8x8")
        np.save(self.folder / "image.npy", np.zeros((3, 1, 8, 8), np.float32))
        self.inspect(engine, "--profile", f"--loadInputs=image:{self.folder / 'image.npy'}")
        text, page, report = self.inspect(engine, "--profile")
        self.check(text, page, report)
        self.assertEqual(report["time_source"], "measured in a run")
        for layer in report["layers"]:
            self.assertGreater(layer["MeasuredMilliseconds"], 0)
            self.assertEqual(layer["TimeMilliseconds"], layer["MeasuredMilliseconds"])
        first = report["layers"][0]
        self.assertGreaterEqual(first["Operations"], 3 * 2 * 16 * 8 * 8 * 9)  # 3 images, 16 channels of 8 x 8, 3 x 3 taps
        self.assertEqual(report["tensors"][first["OutputTensors"][0]]["dims"], [3, 16, 8, 8])

    def test_one_step(self):
        path = self.folder / "one.onnx"
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
        text, page, report = self.inspect(path, "--buildBudget=0", "--target=cpu")
        self.assertEqual(len(report["layers"]), 1)
        self.check(text, page, report)

    def test_refusals(self):
        self.assertIn("--html", lathe("inspect", DIGITS, "--support", "--html", self.folder / "no.html", status=2))
        self.assertIn("--profile", lathe("inspect", DIGITS, "--loadInputs=image:no.npy", status=2))
        self.assertIn("cannot", lathe("inspect", DIGITS, "--html", self.folder / "no/such/folder.html", status=1))

    @unittest.skipUnless(CHROMIUM, "there is no Chromium")
    def test_chromium(self):
        """Rows are as high as lanes take them to be, and the search finds what it should."""
        text, page, report = self.inspect(self.folder / "long.onnx", "--buildBudget=0", "--target=cpu")
        self.assertGreater(len(report["layers"]), 450)
        self.check(text, page, report)
        probe = """<script>
          box.value = 'softmax'; box.oninput();
          const dots = document.querySelectorAll('.lanes circle');
          const middle = element => { const box = element.getBoundingClientRect(); return (box.top + box.bottom) / 2; };
          const worst = Math.max(...rows.map((row, i) => Math.abs(middle(row) - middle(dots[i]))));
          document.title = JSON.stringify({worst, found: found.length, wide: document.body.scrollWidth - innerWidth});
        </script>"""
        (self.folder / "probe.html").write_text(text.replace("</html>", probe + "</html>"))
        dom = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900", "--dump-dom",
                              f"file://{self.folder / 'probe.html'}"], capture_output=True, text=True, timeout=120).stdout
        told = json.loads(re.search(r"<title>(.*?)</title>", dom)[1])
        self.assertLess(told["worst"], 1.5)
        self.assertLessEqual(told["wide"], 0)
        self.assertEqual(told["found"], sum(layer["LayerType"] == "softmax" for layer in report["layers"]))


if __name__ == "__main__":
    unittest.main()
