# SPDX-License-Identifier: Apache-2.0
"""The dialect of exporters that trace with dynamo (2024 on): opset 18 and newer, values named after ATen operators,
constants as initializers val_N, shape arithmetic on sym_size scalars, optionally model-local functions."""
import numpy as np
from onnx import helper, numpy_helper

from graph import Dialect, Value

FUNCTION_DOMAIN = "pkg.onnxscript.torch_lib"


class Dynamo(Dialect):
    OPSETS = (18, 27)
    KEEPS_BATCH_NORM = True

    def __init__(self, *arguments, functions=False):
        super().__init__(*arguments)
        self.use_functions = functions
        self.counts, self.vals, self.constants, self.sizes = {}, 0, {}, {}

    def to_model(self):
        return super().model(ir_version=10, producer="2.6.0")

    def name_after(self, aten):
        count = self.counts.get(aten, 0)
        self.counts[aten] = count + 1
        return f"{aten}_{count}" if count else aten

    def val(self):
        self.vals += 1
        return f"val_{self.vals - 1}"

    def node(self, op, inputs, dims, aten=None, outputs=1, domain="", **attributes):
        names = [self.name_after(aten) if aten else self.val() for _ in range(outputs)]
        arguments = [x.name if isinstance(x, Value) else x for x in inputs]
        self.nodes.append(helper.make_node(op, arguments, names, name=f"node_{names[0]}", domain=domain, **attributes))
        values = [Value(name, dims) for name in names]
        return values[0] if outputs == 1 else values

    def constant(self, array):
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = self.val()
            self.initializers.append(numpy_helper.from_array(array, self.constants[key]))
        return Value(self.constants[key], array.shape)

    def call(self, function, inputs, dims, aten, nodes):
        """A call of a model-local function whose body is given, or its nodes in place."""
        if not self.use_functions:
            return None
        if function not in self.functions:
            parameters = [f"self_{i}" for i in range(len(inputs))]
            self.functions[function] = helper.make_function(FUNCTION_DOMAIN, function, parameters, ["return_val"],
                                                            nodes(parameters), [helper.make_opsetid("", self.opset)])
        return self.node(function, inputs, dims, aten, domain=FUNCTION_DOMAIN)

    def conv(self, x, out, kernel, stride, pad, groups, bias, gain):
        kernels, strides, pads, ones = self.window(x, kernel, stride, pad, 1)
        w = self.he_weight("weight", (out, x.channels // groups, *kernels), gain)
        inputs = [x, w] + ([self.weight("bias", (out,), -0.1, 0.1)] if bias else [])
        size = self.window_sizes(x, kernel, stride, pad)
        return self.node("Conv", inputs, (x.dims[0], out, *size), f"conv{len(size)}d", auto_pad="NOTSET",
                         dilations=ones, group=groups, pads=pads * 2, strides=strides)

    def fixed_conv(self, x, weight, leaf):
        with self.scope(leaf):
            w = ".".join(self.scopes + ["weight"])
            self.initializers.append(numpy_helper.from_array(weight, w))
            return self.node("Conv", [x, w], (x.dims[0], weight.shape[0], *x.dims[2:]), "conv2d", auto_pad="NOTSET",
                             dilations=[1, 1], group=1, pads=[0] * 4, strides=[1, 1])

    def batch_norm(self, x, scale):
        return self.node("BatchNormalization", [x] + self.norm_weights(x.channels, scale), x.dims, "batch_norm",
                         epsilon=1e-5, momentum=0.9, training_mode=0)

    def relu(self, x):
        return self.node("Relu", [x], x.dims, "relu")

    def relu6(self, x):
        return self.node("Clip", [x, self.constant(np.float32(0)), self.constant(np.float32(6))], x.dims, "hardtanh")

    def sigmoid(self, x):
        return self.node("Sigmoid", [x], x.dims, "sigmoid")

    def silu(self, x):
        def body(p):
            return [helper.make_node("Sigmoid", [p[0]], ["tmp"]), helper.make_node("Mul", [p[0], "tmp"], ["return_val"])]

        called = self.call("aten_silu", [x], x.dims, "silu", body)
        return called or self.node("Mul", [x, self.node("Sigmoid", [x], x.dims)], x.dims, "silu")

    def add(self, x, y):
        return self.node("Add", [x, y], x.dims, "add")

    def sub(self, x, y):
        return self.node("Sub", [x, y], y.dims if x.dims[0] == 1 else x.dims, "sub")

    def mul(self, x, y):
        return self.node("Mul", [x, y], x.dims, "mul")

    def halve(self, x):
        return self.node("Div", [x, self.constant(np.float32(2))], x.dims, "div")

    def max_pool(self, x, kernel, stride, pad):
        kernels, strides, pads, ones = self.window(x, kernel, stride, pad, 1)
        size = self.window_sizes(x, kernel, stride, pad)
        return self.node("MaxPool", [x], (*x.dims[:2], *size), f"max_pool{len(size)}d", auto_pad="NOTSET", ceil_mode=0,
                         dilations=ones, kernel_shape=kernels, pads=pads * 2, storage_order=0, strides=strides)

    def average_pool(self, x):
        ones = self.window(x, 1)[0]
        axes = self.constant(-np.arange(1, len(ones) + 1, dtype=np.int64))
        return self.node("ReduceMean", [x, axes], (*x.dims[:2], *ones), "mean", keepdims=1, noop_with_empty_axes=0)

    def flatten(self, x):
        return self.reshape(x, x.channels)

    def dropout(self, x):
        return x

    def linear(self, x, out):
        w = self.he_weight("weight", (out, x.channels), 1.0)
        b = self.weight("bias", (out,), -0.1, 0.1)
        return self.node("Gemm", [x, w, b], (x.dims[0], out), "linear", alpha=1.0, beta=1.0, transA=0, transB=1)

    def concat(self, values, axis):
        dims = list(values[0].dims)
        dims[axis] = sum(v.dims[axis] for v in values)
        return self.node("Concat", values, tuple(dims), "cat", axis=axis)

    def split(self, x, sizes, axis):
        if len(set(sizes)) == 1:
            parts = self.node("Split", [x], x.dims, "getitem", len(sizes), axis=axis, num_outputs=len(sizes))
        else:
            parts = self.node("Split", [x, self.constant(np.array(sizes, np.int64))], x.dims, "getitem", len(sizes),
                              axis=axis)
        return [Value(p.name, (*x.dims[:axis], n, *x.dims[axis + 1:])) for p, n in zip(parts, sizes)]

    def upsample(self, x):
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        return self.node("Resize", [x, "", scales], (*x.dims[:2], x.dims[2] * 2, x.dims[3] * 2), "upsample_nearest2d",
                         coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor")

    def batch_size(self):
        """The symbolic batch as a scalar, read once from the input, as the exporter does."""
        source = self.inputs[0]
        if source.name not in self.sizes:
            shape = self.node("Shape", [source], (1,), start=0, end=1)
            self.sizes[source.name] = self.node("Squeeze", [shape], (), "sym_size_int")
        return self.sizes[source.name]

    def reshape(self, x, *rest):
        dims = (self.batch, *rest)
        if not self.dynamic:
            return self.node("Reshape", [x, self.constant(np.array(dims, np.int64))], dims, "view", allowzero=1)
        batch = self.node("Reshape", [self.batch_size(), self.constant(np.array([-1], np.int64))], (1,), allowzero=0)
        parts = [batch] + [self.constant(np.array([n], np.int64)) for n in rest]
        shape = self.node("Concat", parts, (len(parts),), axis=0)
        return self.node("Reshape", [x, shape], dims, "view", allowzero=1)

    def transpose(self, x, *order):
        return self.node("Transpose", [x], tuple(x.dims[i] for i in order), "permute", perm=list(order))

    def softmax(self, x, axis):
        return self.node("Softmax", [x], x.dims, "softmax", axis=axis)

    def finish(self, x, name):
        """Outputs keep the traced name; what the user called it is unknown to the exporter."""
        self.outputs.append(x)
