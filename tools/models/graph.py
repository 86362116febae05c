# SPDX-License-Identifier: Apache-2.0
"""What the two exporter dialects share: a graph under construction and the network vocabulary.

A network is a function of a Dialect: it calls conv(), batch_norm(), relu()... and the dialect decides which ONNX nodes,
attributes, constants and names come out. Values carry their channel count and size, so that networks need no shapes.
"""
import contextlib
import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

import weights

RELU_GAIN = math.sqrt(2.0)
SILU_GAIN = 1.5  # between the gains for small (1.68) and large (1.41) signals
LINEAR_GAIN = 1.0


@dataclass(frozen=True)
class Value:
    """A tensor of the graph. dims[0] is the batch: a number, or the name of a symbolic dimension."""
    name: str
    dims: tuple

    @property
    def channels(self):
        return self.dims[1]


class Dialect:
    """Base of both dialects: scopes, weights, nodes, inputs and outputs. Subclasses add the vocabulary."""

    def __init__(self, name, opset, batch, seed, keep_batch_norm):
        self.name, self.opset, self.batch, self.seed = name, opset, batch, seed
        self.keep_batch_norm = keep_batch_norm
        self.nodes, self.initializers, self.inputs, self.outputs, self.functions = [], [], [], [], {}
        self.scopes = []

    @contextlib.contextmanager
    def scope(self, *parts):
        self.scopes += map(str, parts)
        yield
        del self.scopes[len(self.scopes) - len(parts):]

    @property
    def dynamic(self):
        return isinstance(self.batch, str)

    def weight(self, leaf, shape, low, high):
        name = ".".join(self.scopes + [leaf])
        self.initializers.append(weights.weightless(name, shape, low, high, self.seed))
        return name

    def he_weight(self, leaf, shape, gain):
        """Scaled by the number of inputs that one output sums, so that signals keep their size through the layers."""
        bound = gain * math.sqrt(3.0 / math.prod(shape[1:]))
        return self.weight(leaf, shape, -bound, bound)

    def input(self, name, *dims):
        value = Value(name, (self.batch, *dims))
        self.inputs.append(value)
        return value

    def window(self, x, *extents):
        """Each extent (kernel, stride, pad...) for every spatial axis of x; one number stands for all axes."""
        return [list(e) if isinstance(e, tuple) else [e] * (len(x.dims) - 2) for e in extents]

    def window_sizes(self, x, kernel, stride, pad):
        return [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(x.dims[2:], *self.window(x, kernel, stride, pad))]

    def conv_norm(self, x, out, kernel, stride=1, groups=1, gain=RELU_GAIN, names=("0", "1"), norm_scale=1.0):
        """Convolution and batch normalisation, or one convolution with a bias where the exporter folds them."""
        pad = tuple(k // 2 for k in self.window(x, kernel)[0])
        if not self.keep_batch_norm:
            with self.scope(names[0]):
                return self.conv(x, out, kernel, stride, pad, groups, bias=True, gain=1.06 * gain * norm_scale)
        with self.scope(names[0]):
            y = self.conv(x, out, kernel, stride, pad, groups, bias=False, gain=gain)
        with self.scope(names[1]):
            return self.batch_norm(y, norm_scale)

    def norm_weights(self, channels, scale):
        return [self.weight("weight", (channels,), 0.7 * scale, 1.3 * scale),
                self.weight("bias", (channels,), -0.2 * scale, 0.2 * scale),
                self.weight("running_mean", (channels,), -0.2, 0.2),
                self.weight("running_var", (channels,), 0.6, 1.4)]

    def recurrent(self, op, x, hidden, layer, bidirectional=False):
        """A layer over x (steps, batch, width), which gives (steps, batch, hidden), or 2 * hidden in both directions."""
        directions, rows, bound = 1 + bidirectional, {"LSTM": 4, "GRU": 3}[op] * hidden, hidden**-0.5
        weights = [self.weight(f"{leaf}_l{layer}", shape, -bound, bound) for leaf, shape in (
            ("weight_ih", (directions, rows, x.dims[2])), ("weight_hh", (directions, rows, hidden)),
            ("bias", (directions, 2 * rows)))]
        extra = {"linear_before_reset": 1} if op == "GRU" else {}
        results = self.node(op, [x, *weights], (*x.dims[:1], directions, x.dims[1], hidden), outputs=2,
                            direction="bidirectional" if bidirectional else "forward", hidden_size=hidden, **extra)
        y = self.transpose(results[0], 0, 2, 1, 3)
        shape = self.constant(np.array([0, 0, directions * hidden]))
        return self.node("Reshape", [y, shape], (*x.dims[:2], directions * hidden))

    def model(self, ir_version, producer):
        def info(value):
            return helper.make_tensor_value_info(value.name, TensorProto.FLOAT, value.dims)

        graph = helper.make_graph(self.nodes, self.name, list(map(info, self.inputs)), list(map(info, self.outputs)),
                                  self.initializers)
        imports = [helper.make_opsetid("", self.opset)]
        imports += [helper.make_opsetid(domain, 1) for domain in sorted({f.domain for f in self.functions.values()})]
        return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, producer_name="pytorch",
                                 producer_version=producer, functions=list(self.functions.values()))
