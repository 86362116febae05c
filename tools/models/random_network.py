# SPDX-License-Identifier: Apache-2.0
"""Small random networks of what real ones are made of: pointwise ops among movements, windows, products and reductions,
as chains with branches, so that passes, fusions, placements and views meet in every order."""
import math
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUT_SHAPES = ([8, 6, 10], [16, 8, 8], [24, 5, 7], [12, 16], [7, 24])  # behind the batch
MOST_ELEMENTS = 60000


class RandomNetwork:
    """self.model, and self.shapes: those of its inputs. The batch is open in every second one."""

    def __init__(self, seed):
        self.choice = random.Random(seed)
        self.values = np.random.default_rng(seed)
        self.constants, self.nodes, self.known = [], [], {}
        batch = self.choice.choice([1, 2, 3])
        self.open_batch = self.choice.random() < 0.5
        inputs = [f"x{i}" for i in range(self.choice.choice([1, 1, 2]))]
        for name in inputs:
            self.known[name] = [batch, *self.choice.choice(INPUT_SHAPES)]
        steps = [getattr(self, name) for name in sorted(vars(RandomNetwork)) if name.startswith("add_")]
        wanted = self.choice.randrange(3, 11)
        while len(self.nodes) < wanted:
            x = self.choice.choice(list(self.known)[-4:])
            self.choice.choice(steps)(x, self.known[x])
        self.model = self.assemble(inputs)

    def assemble(self, inputs):
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        outputs = [name for name in made if name not in read]
        if self.choice.random() < 0.3:  # a value that others read leaves, too
            outputs = list(dict.fromkeys([*outputs, self.choice.choice(made)]))
        inputs = [name for name in inputs if name in read]
        self.shapes = {name: self.known[name] for name in inputs}
        batch = "n" if self.open_batch else self.known["x0"][0]
        described = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, *self.known[name][1:]])
                      for name in names] for names in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "random", *described, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

    def node(self, op, inputs, *shapes, **attributes):
        names = [f"v{len(self.known) + i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{names[0]}_{op}", **attributes))
        self.known.update(zip(names, (list(shape) for shape in shapes)))
        return names[0]

    def constant(self, values, dtype=np.int64):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def weights(self, *dims):
        return self.constant(self.values.standard_normal(dims) * 0.5, np.float32)

    # What is added to the network: each reads x, where it can.

    def add_unary(self, x, shape):
        self.node(self.choice.choice(["Relu", "Sigmoid", "Abs", "Tanh", "Neg"]), [x], shape)

    def add_swish(self, x, shape):
        self.node("Mul", [x, self.node("Sigmoid", [x], shape)], shape)

    def add_binary(self, x, shape):
        other = self.choice.choice([name for name, its in self.known.items() if its == shape])
        self.node(self.choice.choice(["Add", "Mul", "Sub"]), [x, other], shape)

    def add_broadcast(self, x, shape):
        dims = [extent if self.choice.random() < 0.6 else 1 for extent in shape]
        dims[0] = 1 if self.open_batch else dims[0]
        self.node(self.choice.choice(["Add", "Mul"]), [x, self.weights(*dims[self.choice.randrange(len(dims)):])], shape)

    def add_rows_of_itself(self, x, shape):
        first = self.node("Slice", [x, *(self.constant([i]) for i in (0, 1, 0))], [1, *shape[1:]])
        self.node("Add", [x, first], shape)

    def add_transpose(self, x, shape):
        order = list(range(1, len(shape)))
        self.choice.shuffle(order)
        self.node("Transpose", [x], [shape[i] for i in (0, *order)], perm=[0, *order])

    def add_pad(self, x, shape):
        if math.prod(shape) > MOST_ELEMENTS:
            return
        begin = [0, *(self.choice.choice([0, 0, 1, 2, 4]) for _ in shape[1:])]
        end = [0, *(self.choice.choice([0, 0, 1, 3]) for _ in shape[1:])]
        mode = self.choice.choice(["constant", "constant", "constant", "edge", "reflect"])
        if mode == "reflect" and any(max(pads) >= extent for *pads, extent in zip(begin, end, shape)):
            mode = "edge"
        value = [self.constant(self.choice.choice([1.5, -2, 0]), np.float32)] if self.choice.random() < 0.5 else []
        self.node("Pad", [x, self.constant(begin + end), *(value if mode == "constant" else [])],
                  [sum(each) for each in zip(shape, begin, end)], mode=mode)

    def add_slice(self, x, shape):
        axis = self.choice.randrange(1, len(shape))
        step = self.choice.choice([1, 1, 2, 3, -1])
        first, last = self.choice.randrange(0, shape[axis] // 2 + 1), shape[axis] - self.choice.randrange(0, 2)
        if step < 0:
            first, last = last - 1, first - 1
        taken = len(range(first, last, step))
        if taken == 0:
            return
        ends = [first, last if last >= 0 else -(1 << 40)]
        self.node("Slice", [x, *(self.constant([i]) for i in (*ends, axis, step))],
                  [taken if d == axis else extent for d, extent in enumerate(shape)])

    def add_split(self, x, shape):
        axis = self.choice.randrange(1, len(shape))
        if shape[axis] % 2:
            return
        half = [extent // 2 if d == axis else extent for d, extent in enumerate(shape)]
        self.node("Split", [x], half, half, axis=axis, num_outputs=2)

    def add_concat(self, x, shape):
        axis = self.choice.randrange(1, len(shape))
        fits = [name for name, its in self.known.items()
                if len(its) == len(shape) and its[:axis] + its[axis + 1:] == shape[:axis] + shape[axis + 1:]]
        parts = [x, *self.choice.choices(fits, k=self.choice.choice([1, 2]))]
        if math.prod(shape) <= MOST_ELEMENTS:
            self.node("Concat", parts, [sum(self.known[part][d] for part in parts) if d == axis else extent
                                        for d, extent in enumerate(shape)], axis=axis)

    def add_reshape(self, x, shape):
        dims = list(shape[1:])
        at = self.choice.randrange(len(dims))
        factors = [factor for factor in (2, 3, 4, 8) if dims[at] % factor == 0]
        if at + 1 < len(dims) and self.choice.random() < 0.4:
            dims[at:at + 2] = [dims[at] * dims[at + 1]]
        elif factors and len(dims) < 5:
            factor = self.choice.choice(factors)
            dims[at:at + 1] = self.choice.choice([[factor, dims[at] // factor], [dims[at] // factor, factor]])
        else:
            return
        self.node("Reshape", [x, self.constant([0, *dims])], [shape[0], *dims])

    def add_softmax(self, x, shape):
        self.node("Softmax", [x], shape, axis=self.choice.choice([-1, -1, 1]))

    def add_normalization(self, x, shape):
        if shape[-1] > 3:  # of fewer the variance may be next to nothing
            self.node("LayerNormalization", [x, self.weights(shape[-1]), self.weights(shape[-1])], shape, axis=-1)

    def add_reduction(self, x, shape):
        axis = self.choice.randrange(1, len(shape))
        self.node(self.choice.choice(["ReduceMean", "ReduceMax", "ReduceSum"]), [x, self.constant([axis])],
                  [1 if d == axis else extent for d, extent in enumerate(shape)], keepdims=1)

    def add_product(self, x, shape):
        columns = self.choice.choice([8, 16, 24])
        self.node("MatMul", [x, self.weights(shape[-1], columns)], [*shape[:-1], columns])

    # As in ConvNeXt: a product along another dimension, whose result is added to what it read, in either order.
    def add_residual(self, x, shape):
        order = [0, *self.choice.sample(range(1, len(shape)), len(shape) - 1)]
        turned = [shape[i] for i in order]
        product = self.node("MatMul", [self.node("Transpose", [x], turned, perm=order), self.weights(turned[-1], turned[-1])],
                            turned)
        back = self.node("Transpose", [product], shape, perm=[order.index(d) for d in range(len(shape))])
        total = self.node("Add", [back, x], shape)
        if self.choice.random() < 0.5:
            self.node("Transpose", [total], turned, perm=order)

    def add_product_of_two(self, x, shape):
        if len(shape) < 3:
            return
        fits = [name for name, its in self.known.items() if its[:-2] == shape[:-2] and its[-2:-1] == shape[-1:]]
        last = len(shape) - 1
        other = self.choice.choice(fits) if fits else self.node(
            "Transpose", [x], [*shape[:-2], shape[-1], shape[-2]], perm=[*range(last - 1), last, last - 1])
        self.node("MatMul", [x, other], [*shape[:-1], self.known[other][-1]])

    def add_convolution(self, x, shape):
        if len(shape) != 4:
            return
        channels, kernel, stride = (self.choice.choice(each) for each in ((8, 16, 12), (1, 3), (1, 1, 2)))
        pixels = [(extent - 1) // stride + 1 for extent in shape[2:]]
        self.node("Conv", [x, self.weights(channels, shape[1], kernel, kernel), self.weights(channels)],
                  [shape[0], channels, *pixels], pads=[kernel // 2] * 4, strides=[stride] * 2)

    def add_depthwise(self, x, shape):
        if len(shape) == 4:
            self.node("Conv", [x, self.weights(shape[1], 1, 3, 3), self.weights(shape[1])], shape, pads=[1] * 4,
                      group=shape[1])

    def add_pooling(self, x, shape):
        if len(shape) == 4:
            self.node(self.choice.choice(["MaxPool", "AveragePool"]), [x], shape, kernel_shape=[3, 3], pads=[1] * 4)

    def add_global_pooling(self, x, shape):
        if len(shape) == 4:
            self.node("GlobalAveragePool", [x], [*shape[:2], 1, 1])

    def add_depth_to_space(self, x, shape):
        if len(shape) == 4 and shape[1] % 4 == 0:
            self.node("DepthToSpace", [x], [shape[0], shape[1] // 4, shape[2] * 2, shape[3] * 2], blocksize=2,
                      mode=self.choice.choice(["DCR", "CRD"]))

    def add_space_to_depth(self, x, shape):
        if len(shape) == 4 and shape[2] % 2 == shape[3] % 2 == 0:
            self.node("SpaceToDepth", [x], [shape[0], shape[1] * 4, shape[2] // 2, shape[3] // 2], blocksize=2)

    def add_upsampling(self, x, shape):
        if len(shape) == 4 and math.prod(shape) <= MOST_ELEMENTS:
            self.node("Resize", [x, "", self.constant([1, 1, 2, 2], np.float32)],
                      [*shape[:2], shape[2] * 2, shape[3] * 2], mode="nearest")


def save(seed, path):
    """Writes the network of that seed; gives the sizes of its open inputs as the command line takes them."""
    network = RandomNetwork(seed)
    onnx.checker.check_model(network.model)
    onnx.save(network.model, path)
    return ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in network.shapes.items())
