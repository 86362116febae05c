#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a decoder-only transformer as ONNX: RMSNorm, rotary positions, grouped-query attention with key and value
caches, SwiGLU. One network both reads a prompt and makes the next token, which it also chooses:

  tokens [batch, length]    what to read; the tokens before them are in the caches
  place [batch]             how many those are
  noise [context]           numbers from 0 to 1, one for each position: what chance says
  temperature [1]           how far apart likely and unlikely tokens stay
  keys.N, values.N          [batch, heads, context, size] the caches of layer N

  next [batch, 1]           the token behind the last one, of the --choices most likely ones
  place_after [batch]       place + length
  logits [batch, vocabulary]
  keys_after.N, values_after.N   the caches with the tokens written into them

Weights are those of train.py, or random numbers, for speed. examples/llm/llm.cpp runs it."""
import argparse
import dataclasses
import pathlib
import sys
from typing import NamedTuple

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from onnx_writer import Writer  # noqa: E402

OPSET = 25


@dataclasses.dataclass
class Shape:
    """What a decoder of this kind needs to be told. The vocabulary of 256 is bytes."""
    layers: int = 4
    width: int = 256
    heads: int = 8
    key_heads: int = 4
    hidden: int = 704
    vocabulary: int = 256
    context: int = 256

    @property
    def size(self):
        return self.width // self.heads

    def weights(self):
        """Names and dims; matrices are [inputs, outputs]."""
        keys = self.key_heads * self.size
        yield "embedding", (self.vocabulary, self.width)
        for layer in range(self.layers):
            yield f"{layer}.attention_norm", (self.width,)
            yield f"{layer}.query", (self.width, self.width)
            yield f"{layer}.key", (self.width, keys)
            yield f"{layer}.value", (self.width, keys)
            yield f"{layer}.output", (self.width, self.width)
            yield f"{layer}.hidden_norm", (self.width,)
            yield f"{layer}.gate", (self.width, self.hidden)
            yield f"{layer}.up", (self.width, self.hidden)
            yield f"{layer}.down", (self.hidden, self.width)
        yield "norm", (self.width,)
        yield "head", (self.width, self.vocabulary)


def random_weights(shape, seed=0):
    random = np.random.default_rng(seed)
    return {name: np.ones(dims, np.float32) if len(dims) == 1 else
            random.standard_normal(dims, dtype=np.float32) / np.float32(np.sqrt(dims[0]))
            for name, dims in shape.weights()}


def rotations(shape):
    """Cosines and sines of each position, for pairs of elements half a head apart."""
    angles = np.outer(np.arange(shape.context), 10000.0 ** (-np.arange(0, shape.size, 2) / shape.size))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def write_layer(w, shape, layer, x, position, visible):
    """One layer; gives its result."""
    def weight(name):
        return f"{layer}.{name}"

    def heads(values, count):  # [batch, length, count * size] to [batch, count, length, size]
        split = w.add("Reshape", values, w.ints(0, 0, count, shape.size))
        return w.add("Transpose", split, perm=[0, 2, 1, 3])

    def rotated(values):
        return w.add("RotaryEmbedding", values, "cosines", "sines", position)

    def cached(name, values):
        return w.add("TensorScatter", f"{name}.{layer}", values, "place", to=f"{name}_after.{layer}", axis=2)

    normal = w.add("RMSNormalization", x, weight("attention_norm"), axis=-1, epsilon=1e-5)
    query = rotated(heads(w.add("MatMul", normal, weight("query")), shape.heads))
    keys = cached("keys", rotated(heads(w.add("MatMul", normal, weight("key")), shape.key_heads)))
    values = cached("values", heads(w.add("MatMul", normal, weight("value")), shape.key_heads))
    attention = w.add("Attention", query, keys, values, visible)
    merged = w.add("Reshape", w.add("Transpose", attention, perm=[0, 2, 1, 3]), w.ints(0, 0, shape.width))
    x = w.add("Add", x, w.add("MatMul", merged, weight("output")))
    normal = w.add("RMSNormalization", x, weight("hidden_norm"), axis=-1, epsilon=1e-5)
    gate = w.add("MatMul", normal, weight("gate"))
    swish = w.add("Mul", gate, w.add("Sigmoid", gate))
    hidden = w.add("Mul", swish, w.add("MatMul", normal, weight("up")))
    return w.add("Add", x, w.add("MatMul", hidden, weight("down")))


def write_choice(w, shape, logits, last, choices):
    """The token whose part of the sum of probabilities holds the position's noise."""
    best, tokens = f"best.{len(w.nodes)}", f"tokens.{len(w.nodes)}"
    w.nodes.append(helper.make_node("TopK", [w.add("Div", logits, "temperature"), w.ints(choices)], [best, tokens]))
    upto = w.add("CumSum", w.add("Softmax", best, axis=-1), w.constant("last_axis", np.array(-1, np.int64)))
    noise = w.add("Unsqueeze", w.add("Gather", "noise", last, axis=0), w.ints(1))
    below = w.add("ReduceSum", w.cast(w.add("Less", upto, noise), TensorProto.INT64), w.ints(-1))
    chosen = w.add("Min", below, w.ints(choices - 1))  # the sum may end a little below 1
    w.add("GatherElements", tokens, chosen, to="next", axis=1)


class Narrow(NamedTuple):
    """Weights of few bits: inputs that share a scale, or 0 for all of them; the largest level; and their type."""
    block: int
    largest: float
    levels: type


NARROW = {
    "int4": Narrow(32, 7, ml_dtypes.int4),
    "int8": Narrow(0, 127, np.int8),
    "nvfp4": Narrow(16, 6, ml_dtypes.float4_e2m1fn),  # scales are 8-bit floats, with one of the matrix
    "mxfp4": Narrow(32, 6, ml_dtypes.float4_e2m1fn),  # scales are powers of two
}


def scales_of(blocks, kind):
    """What the levels of [blocks, inputs of one, outputs] are multiplied by, as it is stored, and as a number."""
    scales = np.maximum(np.abs(blocks).max(1), 1e-6) / NARROW[kind].largest
    if kind == "mxfp4":
        stored = np.exp2(np.ceil(np.log2(scales))).astype(ml_dtypes.float8_e8m0fnu)
        return stored, None, stored.astype(np.float32)
    if kind == "nvfp4":
        whole = np.float32(scales.max() / 448)
        stored = (scales / whole).astype(ml_dtypes.float8_e4m3fn)
        return stored, whole, np.maximum(stored.astype(np.float32) * whole, 1e-12)
    return scales, None, scales


def write_matrix(w, name, array, kind, floats):
    """A matrix [inputs, outputs] that is dequantised where it is multiplied."""
    narrow, (rows, columns) = NARROW[kind], array.shape
    block = narrow.block or rows
    blocks = np.zeros((-(-rows // block), block, columns), np.float32)
    blocks.reshape(-1, columns)[:rows] = array
    stored, whole, scales = scales_of(blocks, kind)
    levels = (blocks / scales[:, None]).reshape(-1, columns)[:rows]
    are_floats = narrow.levels is ml_dtypes.float4_e2m1fn
    w.constant(f"{name}.levels", (levels if are_floats else np.rint(levels)).astype(narrow.levels))
    scale = w.constant(f"{name}.scales", (stored if are_floats else stored.astype(floats))[... if narrow.block else 0])
    if whole is not None:
        scale = w.add("DequantizeLinear", scale, w.constant(f"{name}.scale", np.array(whole, floats)))
    attributes = {"axis": 0, "block_size": narrow.block} if narrow.block else {"axis": 1}
    if kind == "mxfp4":
        attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(floats))
    w.add("DequantizeLinear", f"{name}.levels", scale, to=name, **attributes)


def write(shape, weights, path, floats=np.float32, choices=40, quantize=None):
    w = Writer()
    for name, array in weights.items():
        if quantize and array.ndim == 2 and name != "embedding":
            write_matrix(w, name, array, quantize, floats)
        else:
            w.constant(name, array.astype(floats))
    for name, table in zip(("cosines", "sines"), rotations(shape)):
        w.constant(name, table.astype(floats))
    length = w.add("Shape", "tokens", start=1)
    zero, one = (w.constant(name, np.array(value, np.int64)) for name, value in (("zero", 0), ("one", 1)))
    steps = w.add("Range", zero, w.add("Squeeze", length), one)
    position = w.add("Add", w.add("Unsqueeze", "place", w.ints(1)), steps)  # [batch, length]
    rows = w.constant("rows", np.arange(shape.context))
    visible = w.add("LessOrEqual", rows, w.add("Unsqueeze", position, w.ints(1, 3)))
    x = w.add("Gather", "embedding", "tokens", axis=0)
    for layer in range(shape.layers):
        x = write_layer(w, shape, layer, x, position, visible)
    x = w.add("Gather", x, w.constant("end", np.array(-1, np.int64)), axis=1)
    x = w.add("RMSNormalization", x, "norm", axis=-1, epsilon=1e-5)
    logits = w.add("Identity", w.cast(w.add("MatMul", x, "head"), TensorProto.FLOAT), to="logits")
    w.add("Add", "place", length, to="place_after")
    write_choice(w, shape, logits, w.add("Sub", "place_after", w.ints(1)), min(choices, shape.vocabulary))

    element = helper.np_dtype_to_tensor_dtype(np.dtype(floats))
    cache = ["batch", shape.key_heads, shape.context, shape.size]
    caches = [f"{kind}.{layer}" for layer in range(shape.layers) for kind in ("keys", "values")]

    def value(name, dims, kind=element):
        return helper.make_tensor_value_info(name, kind, dims)
    inputs = [value("tokens", ["batch", "length"], TensorProto.INT64), value("place", ["batch"], TensorProto.INT64),
              value("noise", [shape.context], TensorProto.FLOAT), value("temperature", [1], TensorProto.FLOAT)]
    inputs += [value(name, cache) for name in caches]
    outputs = [value("next", ["batch", 1], TensorProto.INT64), value("place_after", ["batch"], TensorProto.INT64),
               value("logits", ["batch", shape.vocabulary], TensorProto.FLOAT)]
    outputs += [value(name.replace(".", "_after."), cache) for name in caches]
    graph = helper.make_graph(w.nodes, "decoder", inputs, outputs, list(w.constants.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=12)
    large = sum(array.nbytes for array in weights.values()) > 1 << 30
    onnx.save(model, path, save_as_external_data=large, location=f"{path.split('/')[-1]}.data")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="the ONNX file to write")
    parser.add_argument("--weights", help="an .npz file that train.py has written; random ones unless given")
    for field in dataclasses.fields(Shape):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=int, default=field.default,
                            help=f"of random weights ({field.default})")
    parser.add_argument("--f16", action="store_true", help="weights and caches of 16 bits")
    parser.add_argument("--quantize", choices=tuple(NARROW), help="matrices of so many bits, dequantised where they are "
                        "multiplied; the embedding stays as it is")
    parser.add_argument("--choices", type=int, default=40, help="how many tokens chance may choose from (40)")
    options = parser.parse_args()
    if options.weights:
        stored = dict(np.load(options.weights))
        shape = Shape(*(int(number) for number in stored.pop("shape")))
        weights = stored
    else:
        shape = Shape(*(getattr(options, field.name) for field in dataclasses.fields(Shape)))
        weights = random_weights(shape)
    write(shape, weights, options.file, np.float16 if options.f16 else np.float32, options.choices,
          options.quantize)


if __name__ == "__main__":
    main()
