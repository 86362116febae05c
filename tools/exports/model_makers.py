# SPDX-License-Identifier: Apache-2.0
"""Rows of models.py, and how their modules are made. A row says how that is done (weights are random), what the module's
inputs are and which sizes it runs with.

Inputs: "name:type[dimensions]rule ..."; a dimension is a number or the name of an open size. A rule is <K (integers below
K), =ones or =mask (ones, then zeros where a row of the batch is padded), =left (row i is padded by i zeros on the left),
=from_P (counts up from the size P) or =outK (what output K was at the set before; zeros at the first); without one, values
are normal.
Sizes: three or more sets of values for the open sizes, in the order of their first mention. A model is traced with the
first set, as batch 1 is what users trace with; the dynamo exporter, which takes 1 for a constant, with the second; both
with `traced` where that is given, and of fixed sizes with the last set then.
"""
import importlib
from typing import Callable, NamedTuple


class Model(NamedTuple):
    name: str
    make: Callable
    inputs: str
    sizes: str
    emulated: bool = False  # small enough for the GPU that is emulated
    tolerance: float = 1e-4  # of the largest value, in float32
    attentions: str = ""  # that become the op: "2", or "2 dynamo-open=1" where an export has another number
    shared: int = 0  # heads of keys and values in each of them, where they serve several of the queries
    causal: str = ""  # those of them whose later keys are left to the kernel
    windows: str = ""  # those whose keys that are far away are left to the kernel, too: none where a fixed length is within
    distances: str = ""  # those that add numbers by the distance of a key from a query, of which they have a row
    rotations: str = ""  # values that are turned by their positions, in pairs
    norms: str = ""  # layer, RMS, group and instance normalisations that become ops
    experts: str = ""  # products of rows by their experts' matrices
    caches: str = ""  # past keys and values that are updated in place, or copied once to be appended to
    traced: str = ""  # a set of values that the open sizes are traced with


def torchvision(family, name, **options):
    """A function of torchvision.models or of a module of it; the backbone's weights too are not fetched."""
    def make():
        module = importlib.import_module(f"torchvision.models{'.' + family if family else ''}")
        if family in ("detection", "segmentation"):
            options.setdefault("weights_backbone", None)
        return getattr(module, name)(weights=None, **options)
    return make


def timm(name, **options):
    return lambda: importlib.import_module("timm").create_model(name, pretrained=False, **options)


def transformers(model, config, **options):
    """A model of the class `model` from the class `config` with these settings."""
    def make():
        module = importlib.import_module("transformers")
        settings = getattr(module, config)(**options)
        settings.use_cache = False
        return getattr(module, model)(settings)
    return make


def detector(model, config, backbone, settings, **options):
    """The same with a small ResNet, of these settings, that finds features."""
    def make():
        module = importlib.import_module("transformers")
        features = getattr(module, backbone)(embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
                                             layer_type="basic", **settings)
        return transformers(model, config, backbone_config=features, **options)()
    return make


def plain(name, *arguments):
    """A class or function of plain_modules; names of torch.nn stand for themselves."""
    def make():
        nn = importlib.import_module("torch.nn")
        return getattr(importlib.import_module("plain_modules"), name)(*(getattr(nn, each) for each in arguments))
    return make


def with_past(name, make, *arguments):
    """A class of past_modules around a model."""
    return lambda: getattr(importlib.import_module("past_modules"), name)(make(), *arguments)


def past(heads, length, owner="", first=1):
    """Keys and values of two layers with heads of 16, as Optimum calls them; outputs from `first` on are the next ones."""
    return " ".join(f"past_key_values.{i // 2}.{owner}{('key', 'value')[i % 2]}:f32[n,{heads},{length},16]"
                    + (f"=out{first + i}" if first else "") for i in range(4))
