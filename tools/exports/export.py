# SPDX-License-Identifier: Apache-2.0
"""Exports one architecture with PyTorch in one way, with its results at each set of sizes beside it."""
import copy
import re
import warnings
import zlib

import numpy as np
import torch

from cases import admits, declared, difference, make_inputs, open_axes, parse_inputs, size_sets, write_case  # noqa: F401

LIBRARIES = ("torchvision", "timm", "transformers", "onnxscript", "torch.onnx")
PACKAGES = ("torch", "torchvision", "timm", "transformers", "onnx", "onnxscript", "onnxruntime")

VARIANTS = {  # exporter and whether sizes are open, most telling first
    "torchscript-open": (False, True),
    "dynamo-open": (True, True),
    "torchscript-fixed": (False, False),
    "dynamo-fixed": (True, False),
}


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
    admitted = [index for index, given in enumerate(arrays) if admits(declared(path)[0], given)]
    chosen = [arrays[index] for index in admitted]
    results = [run(module, given) for given in chosen]
    narrow, noise = half_rounding(module, chosen, results), rounding(module, chosen, results)
    return write_case(model, variant, folder, sets, dict(zip(admitted, chosen)), results, noise, narrow)
