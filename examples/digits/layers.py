# SPDX-License-Identifier: Apache-2.0
"""The few layers that the digits network needs, forward and backward, in numpy. Images are (batch, channels, h, w)."""
import numpy as np


class Conv:
    """3x3 convolution with padding 1, as one matrix product over unfolded patches."""

    def __init__(self, rng, inputs, outputs):
        self.weight = rng.standard_normal((outputs, inputs, 3, 3)).astype(np.float32) * np.sqrt(2.0 / (inputs * 9))
        self.weight = self.weight.astype(np.float32)
        self.parameters = ["weight"]

    def forward(self, x, training):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        self.patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        self.shape = x.shape
        y = self.patches @ self.weight.reshape(len(self.weight), -1).T
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, dy):
        n, c, h, w = self.shape
        rows = dy.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.d_weight = (rows.T @ self.patches).reshape(self.weight.shape)
        patches = (rows @ self.weight.reshape(len(self.weight), -1)).reshape(n, h, w, c, 3, 3)
        dx = np.zeros((n, c, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                dx[:, :, i:i + h, j:j + w] += patches[..., i, j].transpose(0, 3, 1, 2)
        return dx[:, :, 1:-1, 1:-1]


class BatchNorm:
    def __init__(self, channels, momentum=0.9, epsilon=1e-5):
        self.weight, self.bias = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        self.mean, self.variance = np.zeros(channels, np.float32), np.ones(channels, np.float32)
        self.momentum, self.epsilon = momentum, epsilon
        self.parameters = ["weight", "bias"]

    def forward(self, x, training):
        mean, variance = self.mean, self.variance
        if training:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean = self.momentum * self.mean + (1 - self.momentum) * mean
            self.variance = self.momentum * self.variance + (1 - self.momentum) * variance
        self.inverse = 1.0 / np.sqrt(variance + self.epsilon)
        self.normal = (x - mean[:, None, None]) * self.inverse[:, None, None]
        return self.normal * self.weight[:, None, None] + self.bias[:, None, None]

    def backward(self, dy):
        self.d_weight, self.d_bias = (dy * self.normal).sum((0, 2, 3)), dy.sum((0, 2, 3))
        count = dy.size / dy.shape[1]
        centred = dy - (self.d_bias / count)[:, None, None] - self.normal * (self.d_weight / count)[:, None, None]
        return centred * (self.weight * self.inverse)[:, None, None]


class Relu:
    parameters = []

    def forward(self, x, training):
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask


class MaxPool:
    """2x2 windows, stride 2."""
    parameters = []

    def forward(self, x, training):
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = blocks.max((3, 5), keepdims=True)
        first = blocks == y
        self.mask = first / first.sum((3, 5), keepdims=True)
        return y[:, :, :, 0, :, 0]

    def backward(self, dy):
        n, c, h, w = dy.shape
        return (self.mask * dy[:, :, :, None, :, None]).reshape(n, c, h * 2, w * 2).astype(np.float32)


class Linear:
    def __init__(self, rng, inputs, outputs):
        self.weight = (rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)
        self.parameters = ["weight", "bias"]

    def forward(self, x, training):
        self.shape, self.rows = x.shape, x.reshape(len(x), -1)
        return self.rows @ self.weight.T + self.bias

    def backward(self, dy):
        self.d_weight, self.d_bias = dy.T @ self.rows, dy.sum(0)
        return (dy @ self.weight).reshape(self.shape)


class Residual:
    """x + body(x)."""
    parameters = []

    def __init__(self, *body):
        self.body = body

    def forward(self, x, training):
        y = x
        for layer in self.body:
            y = layer.forward(y, training)
        return x + y

    def backward(self, dy):
        dx = dy
        for layer in reversed(self.body):
            dx = layer.backward(dx)
        return dx + dy
