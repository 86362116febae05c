# SPDX-License-Identifier: Apache-2.0
"""Exports one architecture in one way, with PyTorch's results at each set of sizes beside it.

The folder of an export holds model.onnx, sets/I/NAME.npy for the inputs and sets/I/outJ.npy for what is expected, and
case.json, which says what a build must be told. Where ONNX Runtime is installed it runs the export as well: what an
exporter wrote down wrongly (a batch of 1 as a constant, say) is not held against a build."""
import copy
import importlib.util
import json
import re
import warnings
import zlib

import numpy as np
import onnx
import torch

VARIANTS = {  # exporter and whether sizes are open, most telling first
    "torchscript-open": (False, True),
    "dynamo-open": (True, True),
    "torchscript-fixed": (False, False),
    "dynamo-fixed": (True, False),
}
TYPES = {"f32": np.float32, "i64": np.int64, "bool": np.bool_}
SAME = 1e-3  # ONNX Runtime's result is PyTorch's


def parse_inputs(text):
    """[(name, type, dimensions, rule)]"""
    return [(name, dtype, dims.split(","), rule)
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


def flatten(result):
    """The tensors of whatever a model returns."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        return [tensor for value in result.values() for tensor in flatten(value)]
    return [tensor for value in result for tensor in flatten(value)] if isinstance(result, (list, tuple)) else []


class Exported(torch.nn.Module):
    """Tensors in, tensors out, around a model that wants keywords or a list of images."""

    def __init__(self, module, names):
        super().__init__()
        self.module, self.names = module, names
        origin = type(module).__module__
        self.keywords, self.images = origin.startswith("transformers."), origin.startswith("torchvision.models.detection")

    def forward(self, *tensors):
        if self.images:
            return tuple(flatten(self.module(list(tensors))))
        return tuple(flatten(self.module(**dict(zip(self.names, tensors))) if self.keywords else self.module(*tensors)))


@torch.no_grad()
def randomise(module, inputs):
    """Parameters that start as constants, and the statistics of batch norms, become such that an error would show; scores of
    detectors spread, for which boxes come first is no question of rounding."""
    for name, parameter in module.named_parameters():
        if re.search(r"classification_head.module_list|cls_score|rpn.head.cls", name):
            parameter *= 3
        if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
            small = parameter.flatten()[0].abs() < 0.05
            parameter.copy_(torch.randn_like(parameter) * 0.1 if small else parameter * (1 + 0.1 * torch.randn_like(parameter)))
    hooks = [m.register_forward_pre_hook(calibrate) for m in module.modules() if getattr(m, "running_mean", None) is not None]
    if hooks:
        module(*inputs)
    for hook in hooks:
        hook.remove()


def calibrate(norm, inputs):
    """Statistics as training on this input would leave them, and a little beside; none so small that it makes noise loud."""
    x = inputs[0]
    axes = [axis for axis in range(x.dim()) if axis != 1]
    variance = (x.var(axes, unbiased=False) + x.var(unbiased=False)) / 2 + 1e-5
    norm.running_mean.copy_(x.mean(axes) + 0.1 * variance.sqrt() * torch.randn_like(variance))
    norm.running_var.copy_(variance * (0.8 + 0.4 * torch.rand_like(variance)))


def write_onnx(module, inputs, path, dynamo, axes):
    arguments = tuple(map(torch.from_numpy, inputs.values()))
    options = {"input_names": list(inputs), "dynamo": dynamo}
    if dynamo:
        auto = torch.export.Dim.AUTO
        options["dynamic_shapes"] = (tuple({axis: auto for axis in axes[name]} for name in inputs),)
        options["verbose"] = False
    else:
        options |= {"dynamic_axes": axes, "opset_version": 17, "do_constant_folding": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, arguments, str(path), **options)


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
        """What is to be expected: PyTorch's results, the export's own where it differs, None where it cannot run."""
        if self.refusal:
            return None, f"the export is not valid: {self.refusal}"
        if self.session is None:
            return expected, "not asked"
        try:
            got = self.session.run(None, {i.name: arrays[i.name] for i in self.session.get_inputs()})
        except Exception as error:
            return None, f"the export does not run: {str(error).splitlines()[0][:300]}"
        error = max(map(difference, got, expected), default=0.0)
        return (expected, f"agrees, {error:.1e}") if error <= SAME else (got, f"the export differs from PyTorch by {error:.1e}")


@torch.no_grad()
def run(module, arrays):
    place = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    return [t.cpu().numpy() for t in module(*(torch.from_numpy(array).to(place) for array in arrays.values()))]


def chain(model, module, sets):
    """The inputs of each set; those of a decoder with a past are what the set before has given."""
    arrays, before = [], None
    for index, sizes in enumerate(sets):
        arrays.append(make_inputs(model, sizes, index, before))
        before = run(module, arrays[-1]) if "=out" in model.inputs else None
    return arrays


def rounding(module, given, results):
    """What PyTorch's own float32 loses against float64 in each case: random networks may be badly conditioned."""
    wide = [{name: a.astype(np.float64) if a.dtype == np.float32 else a for name, a in arrays.items()} for arrays in given]
    try:
        module = module.double()
        return [max(map(difference, result, run(module, arrays)), default=0.0) for arrays, result in zip(wide, results)]
    except (RuntimeError, ValueError):  # a module that insists on float32
        return [0.0 for _ in given]


def half_rounding(module, given, results):
    """What PyTorch loses when it runs the module in float16 on the GPU, in each case; None where it cannot."""
    if not torch.cuda.is_available():
        return [None for _ in given]
    half = [{name: a.astype(np.float16) if a.dtype == np.float32 else a for name, a in arrays.items()} for arrays in given]
    try:
        with torch.device("cuda"):  # what the module makes as it goes
            narrow = copy.deepcopy(module).half().cuda()
            return [max(map(difference, run(narrow, arrays), result), default=0.0) for arrays, result in zip(half, results)]
    except Exception:  # a module that insists on float32, or on the CPU
        return [None for _ in given]


def export(model, variant, folder):
    """Exports into the folder and returns what case.json says."""
    dynamo, opened = VARIANTS[variant]
    torch.manual_seed(zlib.crc32(model.name.encode()))
    torch.set_num_threads(1)
    sets = size_sets(model, model.sizes)
    largest = make_inputs(model, sets[-1], len(sets) - 1)
    module = Exported(model.make().eval(), list(largest)).eval()
    randomise(module, [torch.from_numpy(array) for array in largest.values()])
    arrays = chain(model, module, sets)
    path = folder / "model.onnx"
    traced = arrays[-1] if model.traced else arrays[1] if dynamo and opened else arrays[0]
    if opened and model.traced:
        traced = make_inputs(model, size_sets(model, model.traced)[0], len(sets))
    write_onnx(module, traced, path, dynamo, open_axes(model) if opened else {name: {} for name in traced})
    inputs, outputs = declared(path)
    admitted = [index for index, given in enumerate(arrays) if admits(inputs, given)]
    results = [run(module, arrays[index]) for index in admitted]
    chosen = [arrays[index] for index in admitted]
    narrow, noise = half_rounding(module, chosen, results), rounding(module, chosen, results)
    referee, cases = Referee(path), []
    for index, expected, lost, half in zip(admitted, results, noise, narrow):
        expected, word = referee.judge(arrays[index], expected)
        place = folder / "sets" / str(index)
        place.mkdir(parents=True)
        for name in inputs:
            np.save(place / f"{name}.npy", arrays[index][name])
        for number, value in enumerate(expected or []):
            np.save(place / f"out{number}.npy", value)
        cases.append({"set": index, "sizes": sets[index], "referee": word, "valid": expected is not None, "rounding": lost, "half": half,
                      "shapes": {name: list(arrays[index][name].shape) for name in inputs}})
    if not cases:
        raise ValueError(f"the export admits none of the sizes: {inputs}")
    case = {"model": model.name, "variant": variant, "inputs": inputs, "outputs": outputs, "sets": cases}
    (folder / "case.json").write_text(json.dumps(case, indent=1))
    return case
