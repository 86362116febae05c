# SPDX-License-Identifier: Apache-2.0
"""Cases of exported models, whoever exports them: inputs at each set of sizes, and what is expected of them.

The folder of an export holds model.onnx, sets/I/NAME.npy for the inputs and sets/I/outJ.npy for what is expected, and
case.json, which says what a build must be told. Where ONNX Runtime is installed it runs the export as well: what an
exporter wrote down wrongly (a batch of 1 as a constant, say) is not held against a build."""
import importlib.util
import json
import re
import zlib

import numpy as np
import onnx

TYPES = {"f32": np.float32, "i64": np.int64, "i32": np.int32, "bool": np.bool_}
SAME = 1e-3  # ONNX Runtime's result is the framework's


def parse_inputs(text):
    """[(name, type, dimensions, rule)]"""
    return [(name, dtype, dims.split(",") if dims else [], rule)
            for name, dtype, dims, rule in re.findall(r"([\w.]+):(\w+)\[([^]]*)\](\S*)", text)]


def size_sets(model, sets):
    """[{open size: value}], for each set of sizes of this list."""
    names = dict.fromkeys(d for *_, dims, rule in parse_inputs(model.inputs)
                          for d in dims + re.findall(r"=from_(\w+)", rule) if not d.isdigit())
    return [dict(zip(names, map(int, values.split(",")), strict=True)) for values in sets.split()]


def make_input(dtype, shape, rule, random, sizes, before):
    if rule == "=mask":
        values = np.ones(shape)
        values[1:, -(shape[-1] // 3):] = 0
    elif rule == "=left":
        values = np.arange(shape[1]) >= np.arange(shape[0])[:, None]
    elif rule.startswith("=from_"):
        values = np.broadcast_to(np.arange(shape[-1]) + sizes[rule.removeprefix("=from_")], shape)
    elif rule.startswith("=out"):
        values = before[int(rule.removeprefix("=out"))] if before else np.zeros(shape)
    elif re.fullmatch(r"=\d+", rule):
        values = np.full(shape, int(rule[1:]))
    elif rule.startswith("<"):
        values = random.integers(0, int(rule[1:]), shape)
    else:
        values = np.ones(shape) if rule == "=ones" else random.standard_normal(shape)
    return values.astype(TYPES[dtype])


def make_inputs(model, sizes, seed, before=None):
    """`before`: what the model gave for the set before, where a decoder goes on from it."""
    random = np.random.default_rng([zlib.crc32(model.name.encode()), seed])
    return {name: make_input(dtype, [int(sizes.get(d, d)) for d in dims], rule, random, sizes, before)
            for name, dtype, dims, rule in parse_inputs(model.inputs)}


def open_axes(model):
    return {name: {axis: d for axis, d in enumerate(dims) if not d.isdigit()}
            for name, _, dims, _ in parse_inputs(model.inputs)}


def declared(path):
    """{input: its dimensions, None where open} and the outputs' names."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {initializer.name for initializer in graph.initializer}
    inputs = {i.name: [d.dim_value if d.HasField("dim_value") else None for d in i.type.tensor_type.shape.dim]
              for i in graph.input if i.name not in weights}
    return inputs, [output.name for output in graph.output]


def admits(inputs, arrays):
    return all(d in (None, size) for name, dims in inputs.items() for d, size in zip(dims, arrays[name].shape))


def difference(got, expected):
    """The largest error as a share of the largest value; for integers and truths the share that differs."""
    if got.shape != expected.shape:
        return float("inf")
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind != "f":
        return float(np.mean(got != expected))
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isfinite(got), np.isfinite(expected)):
        return float("inf")
    finite = np.isfinite(expected)
    largest = float(np.abs(expected[finite]).max(initial=0))
    return float(np.abs(got - expected)[finite].max(initial=0)) / max(largest, 1e-30)


class Referee:
    """ONNX Runtime's word on an export, where it is installed and takes the model."""

    def __init__(self, path):
        self.session, self.refusal = None, ""
        if importlib.util.find_spec("onnxruntime") is None:
            return
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            if "NOT_IMPLEMENTED" not in str(error):  # else it lacks an operator, which says nothing about the export
                self.refusal = str(error).splitlines()[0][:300]

    def judge(self, arrays, expected):
        """What is to be expected: the framework's results, the export's own where it differs, None where it cannot run."""
        if self.refusal:
            return None, f"the export is not valid: {self.refusal}"
        if self.session is None:
            return expected, "not asked"
        try:
            got = self.session.run(None, {i.name: arrays[i.name] for i in self.session.get_inputs()})
        except Exception as error:
            return None, f"the export does not run: {str(error).splitlines()[0][:300]}"
        error = max(map(difference, got, expected), default=0.0)
        return (expected, f"agrees, {error:.1e}") if error <= SAME else (got, f"the export differs from its model by {error:.1e}")


def write_case(model, variant, folder, sets, given, results, noise, narrow):
    """Writes the case of folder/model.onnx and returns what case.json says. `given`: {number of a set: its inputs}; beside
    them what the framework made of each, what its float32 loses, and its float16, where that is known."""
    path = folder / "model.onnx"
    inputs, outputs = declared(path)
    referee, cases = Referee(path), []
    for (index, arrays), expected, lost, half in zip(given.items(), results, noise, narrow):
        expected, word = referee.judge(arrays, expected)
        place = folder / "sets" / str(index)
        place.mkdir(parents=True)
        for name in inputs:
            np.save(place / f"{name}.npy", arrays[name])
        for number, value in enumerate(expected or []):
            np.save(place / f"out{number}.npy", value)
        cases.append({"set": index, "sizes": sets[index], "referee": word, "valid": expected is not None, "rounding": lost, "half": half,
                      "shapes": {name: list(arrays[name].shape) for name in inputs}})
    if not cases:
        raise ValueError(f"the export admits none of the sizes: {inputs}")
    case = {"model": model.name, "variant": variant, "inputs": inputs, "outputs": outputs, "sets": cases}
    (folder / "case.json").write_text(json.dumps(case, indent=1))
    return case
