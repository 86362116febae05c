#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on scikit-learn's handwritten digits (8x8 grey) and writes it as digits.onnx.

numpy only, fixed seed and split: the same machine gives the same file. Takes about half a minute. The test images are
never seen in training; held_out() gives them to whoever wants to check.
"""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from layers import BatchNorm, Conv, Linear, MaxPool, Relu, Residual

SEED, HELD_OUT, EPOCHS, BATCH, RATE = 2022, 360, 30, 64, 2e-3


def split():
    """Training and held-out images in 0..1, (n, 1, 8, 8) float32, and their labels."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    return train_test_split(images, digits.target, test_size=HELD_OUT, random_state=SEED, stratify=digits.target)


def held_out():
    _, images, _, labels = split()
    return images, labels


def network(rng):
    return [Conv(rng, 1, 16), BatchNorm(16), Relu(),
            Residual(Conv(rng, 16, 16), BatchNorm(16), Relu(), Conv(rng, 16, 16), BatchNorm(16)), Relu(), MaxPool(),
            Conv(rng, 16, 32), BatchNorm(32), Relu(), MaxPool(), Linear(rng, 128, 10)]


def every(layers):
    """The layers with parameters, inside residual blocks too, in order."""
    for layer in layers:
        if isinstance(layer, Residual):
            yield from every(layer.body)
        elif layer.parameters:
            yield layer


def forward(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, training)
    return x


def shifted(images, rng):
    """Each image moved by -1..1 pixels both ways, so that the network does not learn positions by heart."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    offsets = rng.integers(0, 3, (len(images), 2))
    return np.stack([padded[i, :, y:y + 8, x:x + 8] for i, (y, x) in enumerate(offsets)])


class Adam:
    def __init__(self):
        self.moments, self.step = {}, 0

    def update(self, layers, rate):
        self.step += 1
        for layer in every(layers):
            for name in layer.parameters:
                gradient = getattr(layer, "d_" + name)
                m, v = self.moments.get((id(layer), name), (0.0, 0.0))
                m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
                self.moments[id(layer), name] = m, v
                scale = rate * np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
                setattr(layer, name, (getattr(layer, name) - scale * m / (np.sqrt(v) + 1e-8)).astype(np.float32))


def train(layers, images, labels, rng):
    adam = Adam()
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order, loss = rng.permutation(len(images)), 0.0
        for start in range(0, len(order), BATCH):
            chosen = order[start:start + BATCH]
            logits = forward(layers, shifted(images[chosen], rng), training=True)
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            loss -= np.log(p[np.arange(len(chosen)), labels[chosen]]).sum()
            p[np.arange(len(chosen)), labels[chosen]] -= 1
            gradient = (p / len(chosen)).astype(np.float32)
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            adam.update(layers, rate)
        print(f"epoch {epoch + 1:2}/{EPOCHS}  loss {loss / len(images):.4f}", flush=True)


class Exporter:
    """Writes the layers as ONNX nodes, one for one."""

    def __init__(self):
        self.nodes, self.tensors, self.counts = [], [], {}

    def node(self, op, x, weights=(), **attributes):
        count = self.counts[op] = self.counts.get(op, 0) + 1
        name = f"{op.lower()}{count}"
        inputs = [x] if isinstance(x, str) else list(x)
        for leaf, array in weights:
            inputs.append(f"{name}.{leaf}")
            self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), inputs[-1]))
        self.nodes.append(helper.make_node(op, inputs, [name + "_out"], name=name, **attributes))
        return name + "_out"

    def layer(self, layer, x):
        if isinstance(layer, Conv):
            return self.node("Conv", x, [("weight", layer.weight)], kernel_shape=[3, 3], pads=[1] * 4)
        if isinstance(layer, BatchNorm):
            values = [("scale", layer.weight), ("bias", layer.bias), ("mean", layer.mean), ("variance", layer.variance)]
            return self.node("BatchNormalization", x, values, epsilon=layer.epsilon)
        if isinstance(layer, Relu):
            return self.node("Relu", x)
        if isinstance(layer, MaxPool):
            return self.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        if isinstance(layer, Residual):
            y = x
            for inner in layer.body:
                y = self.layer(inner, y)
            return self.node("Add", (x, y))
        flat = self.node("Flatten", x, axis=1)
        return self.node("Gemm", flat, [("weight", layer.weight), ("bias", layer.bias)], transB=1)

    def model(self, layers):
        x = "image"
        for layer in layers:
            x = self.layer(layer, x)
        self.nodes.append(helper.make_node("Softmax", [x], ["probabilities"], name="softmax", axis=-1))
        graph = helper.make_graph(
            self.nodes, "digits", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
            [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])], self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                 producer_name="examples/digits/train.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).with_name("digits.onnx"))
    arguments = parser.parse_args()
    rng = np.random.default_rng(SEED)
    images, test_images, labels, test_labels = split()
    layers = network(rng)
    train(layers, images, labels, rng)
    accuracy = (forward(layers, test_images).argmax(1) == test_labels).mean()
    print(f"held-out accuracy {accuracy:.2%} on {len(test_labels)} images")
    model = Exporter().model(layers)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, arguments.out)
    print(f"wrote {arguments.out} ({arguments.out.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
