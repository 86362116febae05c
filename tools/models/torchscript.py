# SPDX-License-Identifier: Apache-2.0
"""The dialect of TorchScript-based exporters (2022): opsets 13 to 17, path-like names, Constant nodes, Shape-Gather-
Unsqueeze-Concat chains in front of a Reshape, Identity where a module did nothing."""
import numpy as np
from onnx import helper, numpy_helper

from graph import Dialect, Value


class TorchScript(Dialect):
    OPSETS = (13, 17)
    KEEPS_BATCH_NORM = False  # the exporter's evaluation mode folds it into the convolution

    def to_model(self):
        return super().model(ir_version=7 if self.opset < 15 else 8, producer="1.13.1")

    def path(self):
        """/layer1/layer1.0/conv1: a numbered child carries its parent's name."""
        parts = []
        for i, part in enumerate(self.scopes):
            parts.append(f"{self.scopes[i - 1]}.{part}" if part.isdigit() and i and not self.scopes[i - 1].isdigit() else part)
        return "/" + "/".join(parts) + "/" if parts else "/"

    def node(self, op, inputs, dims, outputs=1, **attributes):
        base = self.path() + op
        used = sum(1 for node in self.nodes if node.name == base or node.name.startswith(base + "_") and
                   node.name[len(base) + 1:].isdigit())
        name = f"{base}_{used}" if used else base
        values = [Value(f"{name}_output_{i}", dims) for i in range(outputs)]
        names = [x.name if isinstance(x, Value) else x for x in inputs]
        self.nodes.append(helper.make_node(op, names, [v.name for v in values], name=name, **attributes))
        return values[0] if outputs == 1 else values

    def constant(self, array):
        return self.node("Constant", [], np.shape(array), value=numpy_helper.from_array(np.asarray(array)))

    def conv(self, x, out, kernel, stride, pad, groups, bias, gain):
        kernels, strides, pads, ones = self.window(x, kernel, stride, pad, 1)
        w = self.he_weight("weight", (out, x.channels // groups, *kernels), gain)
        inputs = [x, w] + ([self.weight("bias", (out,), -0.1, 0.1)] if bias else [])
        size = self.window_sizes(x, kernel, stride, pad)
        return self.node("Conv", inputs, (x.dims[0], out, *size), dilations=ones, group=groups, kernel_shape=kernels,
                         pads=pads * 2, strides=strides)

    def fixed_conv(self, x, weight, leaf):
        """A 1x1 convolution whose weights are part of the method, not trained."""
        with self.scope(leaf):
            w = ".".join(self.scopes + ["weight"])
            self.initializers.append(numpy_helper.from_array(weight, w))
            return self.node("Conv", [x, w], (x.dims[0], weight.shape[0], *x.dims[2:]), dilations=[1, 1], group=1,
                             kernel_shape=[1, 1], pads=[0] * 4, strides=[1, 1])

    def batch_norm(self, x, scale):
        extra = {"training_mode": 0} if self.opset >= 14 else {}
        return self.node("BatchNormalization", [x] + self.norm_weights(x.channels, scale), x.dims, epsilon=1e-5,
                         momentum=0.9, **extra)

    def relu(self, x):
        return self.node("Relu", [x], x.dims)

    def relu6(self, x):
        return self.node("Clip", [x, self.constant(np.float32(0)), self.constant(np.float32(6))], x.dims)

    def sigmoid(self, x):
        return self.node("Sigmoid", [x], x.dims)

    def silu(self, x):
        return self.mul(x, self.sigmoid(x))

    def add(self, x, y):
        return self.node("Add", [x, y], x.dims)

    def sub(self, x, y):
        return self.node("Sub", [x, y], y.dims if x.dims[0] == 1 else x.dims)

    def mul(self, x, y):
        return self.node("Mul", [x, y], x.dims)

    def halve(self, x):
        return self.node("Div", [x, self.constant(np.float32(2))], x.dims)

    def max_pool(self, x, kernel, stride, pad):
        kernels, strides, pads = self.window(x, kernel, stride, pad)
        size = self.window_sizes(x, kernel, stride, pad)
        return self.node("MaxPool", [x], (*x.dims[:2], *size), ceil_mode=0, kernel_shape=kernels, pads=pads * 2,
                         strides=strides)

    def average_pool(self, x):
        return self.node("GlobalAveragePool", [x], (*x.dims[:2], *self.window(x, 1)[0]))

    def flatten(self, x):
        return self.node("Flatten", [x], (x.dims[0], x.channels), axis=1)

    def dropout(self, x):
        return self.node("Identity", [x], x.dims)

    def linear(self, x, out):
        w = self.he_weight("weight", (out, x.channels), 1.0)
        b = self.weight("bias", (out,), -0.1, 0.1)
        return self.node("Gemm", [x, w, b], (x.dims[0], out), alpha=1.0, beta=1.0, transB=1)

    def concat(self, values, axis):
        dims = list(values[0].dims)
        dims[axis] = sum(v.dims[axis] for v in values)
        return self.node("Concat", values, tuple(dims), axis=axis)

    def split(self, x, sizes, axis):
        parts = self.node("Split", [x, self.constant(np.array(sizes, np.int64))], x.dims, len(sizes), axis=axis)
        return [Value(p.name, (*x.dims[:axis], n, *x.dims[axis + 1:])) for p, n in zip(parts, sizes)]

    def upsample(self, x):
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        return self.node("Resize", [x, "", scales], (*x.dims[:2], x.dims[2] * 2, x.dims[3] * 2),
                         coordinate_transformation_mode="asymmetric", cubic_coeff_a=-0.75, mode="nearest",
                         nearest_mode="floor")

    def reshape(self, x, *rest):
        """To (batch, *rest); a symbolic batch is taken from the tensor's own shape."""
        if not self.dynamic:
            return self.node("Reshape", [x, self.constant(np.array([self.batch, *rest], np.int64))], (self.batch, *rest))
        shape = self.node("Shape", [x], (len(x.dims),))
        batch = self.node("Gather", [shape, self.constant(np.int64(0))], (), axis=0)
        parts = [self.node("Unsqueeze", [batch, self.constant(np.array([0], np.int64))], (1,))]
        parts += [self.constant(np.array([n], np.int64)) for n in rest]
        return self.node("Reshape", [x, self.node("Concat", parts, (len(parts),), axis=0)], (self.batch, *rest))

    def transpose(self, x, *order):
        return self.node("Transpose", [x], tuple(x.dims[i] for i in order), perm=list(order))

    def softmax(self, x, axis):
        return self.node("Softmax", [x], x.dims, axis=axis)

    def finish(self, x, name):
        """The last node writes the graph's output under the name that the user gave."""
        self.nodes[-1].output[0] = name
        self.outputs.append(Value(name, x.dims))
