# SPDX-License-Identifier: Apache-2.0
"""Weights by rule: a weightless initializer says how to make its data, so that no model has to be stored.

The rule stands in the initializer's doc_string: `uniform seed=S low=A high=B`. Element i is
A + (B - A) * (splitmix64(S + (i + 1) * 0x9E3779B97F4A7C15) >> 40) / 2^24, computed in double and rounded to the element
type: the same bits in every language, with no library's random numbers in between.
"""
import hashlib
import re

import numpy as np
from onnx import TensorProto, helper, numpy_helper

RULE = re.compile(r"uniform seed=(\d+) low=(\S+) high=(\S+)$")
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(state):
    z = state.copy()
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def uniform(seed, low, high, shape, dtype=np.float32):
    count = int(np.prod(shape))
    state = np.arange(1, count + 1, dtype=np.uint64) * GOLDEN + np.uint64(seed)
    unit = (splitmix64(state) >> np.uint64(40)).astype(np.float64) * 2.0**-24
    return (low + (high - low) * unit).astype(dtype).reshape(shape)


def weightless(name, shape, low, high, seed, data_type=TensorProto.FLOAT):
    """An initializer without data; its own seed comes from the model's seed and its name."""
    own_seed = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:7], "little")
    tensor = TensorProto(name=name, data_type=data_type, dims=shape)
    tensor.doc_string = f"uniform seed={own_seed} low={float(low)!r} high={float(high)!r}"
    return tensor


def fill(model):
    """Gives every weightless initializer of the model its data."""
    for tensor in model.graph.initializer:
        rule = RULE.match(tensor.doc_string)
        if rule and not tensor.raw_data:
            seed, low, high = int(rule[1]), float(rule[2]), float(rule[3])
            dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
            name, doc = tensor.name, tensor.doc_string
            tensor.CopyFrom(numpy_helper.from_array(uniform(seed, low, high, tuple(tensor.dims), dtype), name))
            tensor.doc_string = doc
    return model
