# SPDX-License-Identifier: Apache-2.0
"""The networks, as published, in the vocabulary of graph.Dialect."""
import numpy as np

from graph import LINEAR_GAIN, RELU_GAIN, SILU_GAIN


def resnet50(g):
    x = g.input("input", 3, 224, 224)
    x = g.relu(g.conv_norm(x, 64, 7, 2, names=("conv1", "bn1")))
    x = g.max_pool(x, 3, 2, 1)
    for layer, (planes, blocks) in enumerate(zip((64, 128, 256, 512), (3, 4, 6, 3)), 1):
        for block in range(blocks):
            with g.scope(f"layer{layer}", block):
                x = bottleneck(g, x, planes, 2 if layer > 1 and block == 0 else 1)
    x = g.flatten(g.average_pool(x))
    with g.scope("fc"):
        g.finish(g.linear(x, 1000), "output")


def bottleneck(g, x, planes, stride):
    y = g.relu(g.conv_norm(x, planes, 1, names=("conv1", "bn1")))
    y = g.relu(g.conv_norm(y, planes, 3, stride, names=("conv2", "bn2")))
    y = g.conv_norm(y, planes * 4, 1, names=("conv3", "bn3"), gain=LINEAR_GAIN, norm_scale=0.5)
    if stride != 1 or x.channels != planes * 4:
        with g.scope("downsample"):
            x = g.conv_norm(x, planes * 4, 1, stride, gain=LINEAR_GAIN)
    return g.relu(g.add(y, x))


def mobilenet_v2(g):
    x = g.input("input", 3, 224, 224)
    with g.scope("features", 0):
        x = g.relu6(g.conv_norm(x, 32, 3, 2))
    index = 1
    for expand, out, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                        (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            with g.scope("features", index):
                x = inverted_residual(g, x, out, stride if block == 0 else 1, expand)
            index += 1
    with g.scope("features", index):
        x = g.relu6(g.conv_norm(x, 1280, 1))
    x = g.flatten(g.average_pool(x))
    with g.scope("classifier", 0):
        x = g.dropout(x)
    with g.scope("classifier", 1):
        g.finish(g.linear(x, 1000), "output")


def inverted_residual(g, x, out, stride, expand):
    with g.scope("conv"):
        y, index = x, 0
        if expand != 1:
            with g.scope(0):
                y = g.relu6(g.conv_norm(y, x.channels * expand, 1))
            index = 1
        with g.scope(index):
            y = g.relu6(g.conv_norm(y, y.channels, 3, stride, groups=y.channels))
        y = g.conv_norm(y, out, 1, names=(str(index + 1), str(index + 2)), gain=LINEAR_GAIN)
    return g.add(x, y) if stride == 1 and x.channels == out else y


def efficientnet_b0(g):
    x = g.input("input", 3, 224, 224)
    with g.scope("features", 0):
        x = g.silu(g.conv_norm(x, 32, 3, 2, gain=SILU_GAIN))
    stages = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
              (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))
    for stage, (expand, kernel, stride, out, blocks) in enumerate(stages, 1):
        for block in range(blocks):
            with g.scope("features", stage, block):
                x = mobile_block(g, x, out, kernel, stride if block == 0 else 1, expand)
    with g.scope("features", 8):
        x = g.silu(g.conv_norm(x, 1280, 1, gain=SILU_GAIN))
    x = g.flatten(g.average_pool(x))
    with g.scope("classifier", 0):
        x = g.dropout(x)
    with g.scope("classifier", 1):
        g.finish(g.linear(x, 1000), "output")


def mobile_block(g, x, out, kernel, stride, expand):
    with g.scope("block"):
        y, index = x, 0
        if expand != 1:
            with g.scope(0):
                y = g.silu(g.conv_norm(y, x.channels * expand, 1, gain=SILU_GAIN))
            index = 1
        with g.scope(index):
            y = g.silu(g.conv_norm(y, y.channels, kernel, stride, groups=y.channels, gain=SILU_GAIN))
        with g.scope(index + 1):
            y = squeeze_excite(g, y, max(1, x.channels // 4))
        with g.scope(index + 2):
            y = g.conv_norm(y, out, 1, gain=1.55 * LINEAR_GAIN)  # the gate in front of it dims the signal
    return g.add(y, x) if stride == 1 and x.channels == out else y


def squeeze_excite(g, x, squeezed):
    s = g.average_pool(x)
    with g.scope("fc1"):
        s = g.silu(g.conv(s, squeezed, 1, 1, 0, 1, bias=True, gain=SILU_GAIN))
    with g.scope("fc2"):
        s = g.sigmoid(g.conv(s, x.channels, 1, 1, 0, 1, bias=True, gain=SILU_GAIN))
    return g.mul(x, s)


# A detector like YOLOv8n: CSP backbone with C2f blocks, SPPF, path aggregation, decoupled head whose boxes are decoded
# from distributions inside the graph. 80 classes, strides 8, 16 and 32, output (batch, 4 + 80, 8400).
CLASSES, REG_MAX, IMAGE = 80, 16, 640


def yolov8n(g):
    x = g.input("images", 3, IMAGE, IMAGE)
    with g.scope("model"):
        x = conv_silu(g, x, 16, 3, 2, 0)
        x = c2f(g, conv_silu(g, x, 32, 3, 2, 1), 32, 1, True, 2)
        p3 = c2f(g, conv_silu(g, x, 64, 3, 2, 3), 64, 2, True, 4)
        p4 = c2f(g, conv_silu(g, p3, 128, 3, 2, 5), 128, 2, True, 6)
        x = c2f(g, conv_silu(g, p4, 256, 3, 2, 7), 256, 1, True, 8)
        p5 = sppf(g, x, 256, 9)
        t4 = c2f(g, joined(g, 11, upsampled(g, p5, 10), p4), 128, 1, False, 12)
        n3 = c2f(g, joined(g, 14, upsampled(g, t4, 13), p3), 64, 1, False, 15)
        n4 = c2f(g, joined(g, 17, conv_silu(g, n3, 64, 3, 2, 16), t4), 128, 1, False, 18)
        n5 = c2f(g, joined(g, 20, conv_silu(g, n4, 128, 3, 2, 19), p5), 256, 1, False, 21)
        with g.scope(22):
            g.finish(detect(g, (n3, n4, n5)), "output0")


def conv_silu(g, x, out, kernel, stride, *scope):
    with g.scope(*scope):
        return g.silu(g.conv_norm(x, out, kernel, stride, gain=SILU_GAIN, names=("conv", "bn")))


def upsampled(g, x, *scope):
    with g.scope(*scope):
        return g.upsample(x)


def joined(g, scope, *values):
    with g.scope(scope):
        return g.concat(values, 1)


def c2f(g, x, out, repeats, shortcut, *scope):
    with g.scope(*scope):
        parts = g.split(conv_silu(g, x, out, 1, 1, "cv1"), [out // 2] * 2, 1)
        for i in range(repeats):
            y = conv_silu(g, parts[-1], out // 2, 3, 1, "m", i, "cv1")
            y = conv_silu(g, y, out // 2, 3, 1, "m", i, "cv2")
            with g.scope("m", i):
                parts.append(g.add(parts[-1], y) if shortcut else y)
        return conv_silu(g, g.concat(parts, 1), out, 1, 1, "cv2")


def sppf(g, x, out, *scope):
    with g.scope(*scope):
        pooled = [conv_silu(g, x, out // 2, 1, 1, "cv1")]
        for _ in range(3):
            with g.scope("m"):
                pooled.append(g.max_pool(pooled[-1], 5, 1, 2))
        return conv_silu(g, g.concat(pooled, 1), out, 1, 1, "cv2")


def branch(g, x, hidden, out, *scope):
    with g.scope(*scope):
        y = conv_silu(g, conv_silu(g, x, hidden, 3, 1, 0), hidden, 3, 1, 1)
        with g.scope(2):
            return g.conv(y, out, 1, 1, 0, 1, bias=True, gain=LINEAR_GAIN)


def detect(g, levels):
    box_hidden, class_hidden = max(16, levels[0].channels // 4, REG_MAX * 4), max(levels[0].channels, CLASSES)
    flat = []
    for i, level in enumerate(levels):
        boxes = branch(g, level, box_hidden, 4 * REG_MAX, "cv2", i)
        classes = branch(g, level, class_hidden, CLASSES, "cv3", i)
        flat.append(g.reshape(g.concat([boxes, classes], 1), 4 * REG_MAX + CLASSES, boxes.dims[2] * boxes.dims[3]))
    boxes, classes = g.split(g.concat(flat, 2), [4 * REG_MAX, CLASSES], 1)
    anchors, strides = anchor_points([level.dims[2] for level in levels])
    boxes = decode_boxes(g, expected_distance(g, boxes), g.constant(anchors))
    return g.concat([g.mul(boxes, g.constant(strides)), g.sigmoid(classes)], 1)


def anchor_points(sizes):
    """Cell centres (1, 2, cells) and strides (1, cells) of all levels."""
    centres, strides = [], []
    for size in sizes:
        y, x = np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5, indexing="ij")
        centres.append(np.stack([x.ravel(), y.ravel()]))
        strides.append(np.full(size * size, IMAGE // size))
    return np.concatenate(centres, 1)[None].astype(np.float32), np.concatenate(strides)[None].astype(np.float32)


def expected_distance(g, x):
    """Softmax over the bins of each side, then its expectation, written as a 1x1 convolution with weights 0..15."""
    cells = x.dims[2]
    with g.scope("dfl"):
        x = g.transpose(g.reshape(x, 4, REG_MAX, cells), 0, 2, 1, 3)
        x = g.softmax(x, 1)
        x = g.fixed_conv(x, np.arange(REG_MAX, dtype=np.float32).reshape(1, REG_MAX, 1, 1), "conv")
        return g.reshape(x, 4, cells)


def decode_boxes(g, distances, anchors):
    """Left-top and right-bottom distances from the anchors, to centre and size."""
    left_top, right_bottom = g.split(distances, [2, 2], 1)
    low, high = g.sub(anchors, left_top), g.add(right_bottom, anchors)
    return g.concat([g.halve(g.add(low, high)), g.sub(high, low)], 1)


def s3d(g):
    """A classifier of videos: Inception blocks of convolutions that are apart in space and in time."""
    x = g.input("video", 3, 16, 224, 224)
    with g.scope("features"):
        x = separable(g, x, 64, 7, 2, 0)
        x = space_pool(g, x, 1)
        x = separable(g, conv_relu(g, x, 64, 1, 1, 2), 192, 3, 1, 3)
        x = space_pool(g, x, 4)
        x = inception(g, x, (64, 96, 128, 16, 32, 32), 5)
        x = inception(g, x, (128, 128, 192, 32, 96, 64), 6)
        with g.scope(7):
            x = g.max_pool(x, 3, 2, 1)
        for index, widths in enumerate(((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
                                        (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
                                        (256, 160, 320, 32, 128, 128)), 8):
            x = inception(g, x, widths, index)
        with g.scope(13):
            x = g.max_pool(x, 2, 2, 0)
        x = inception(g, x, (256, 160, 320, 32, 128, 128), 14)
        x = inception(g, x, (384, 192, 384, 48, 128, 128), 15)
    x = g.average_pool(x)
    with g.scope("classifier", 1):
        x = g.conv(x, 400, 1, 1, 0, 1, bias=True, gain=LINEAR_GAIN)
    g.finish(g.flatten(x), "output")


def conv_relu(g, x, out, kernel, stride, *scope):
    with g.scope(*scope):
        return g.relu(g.conv_norm(x, out, kernel, stride))


def separable(g, x, out, kernel, stride, *scope):
    """In space, then in time."""
    y = conv_relu(g, x, out, (1, kernel, kernel), (1, stride, stride), *scope, 0)
    return conv_relu(g, y, out, (kernel, 1, 1), (stride, 1, 1), *scope, 1)


def space_pool(g, x, *scope):
    with g.scope(*scope):
        return g.max_pool(x, (1, 3, 3), (1, 2, 2), (0, 1, 1))


def inception(g, x, widths, *scope):
    with g.scope(*scope):
        parts = [conv_relu(g, x, widths[0], 1, 1, "branch0")]
        for branch_name, (squeezed, out) in zip(("branch1", "branch2"), (widths[1:3], widths[3:5])):
            y = conv_relu(g, x, squeezed, 1, 1, branch_name, 0)
            parts.append(separable(g, y, out, 3, 1, branch_name, 1))
        with g.scope("branch3"):
            y = g.max_pool(x, 3, 1, 1)
        parts.append(conv_relu(g, y, widths[5], 1, 1, "branch3", 1))
        return g.concat(parts, 1)


def lstm_2x256(g):
    x = g.transpose(g.input("input", 64, 256), 1, 0, 2)
    for layer in range(2):
        x = g.recurrent("LSTM", x, 256, layer)
    g.finish(g.transpose(x, 1, 0, 2), "output")


def gru_512_bidirectional(g):
    x = g.recurrent("GRU", g.transpose(g.input("input", 64, 512), 1, 0, 2), 512, 0, bidirectional=True)
    g.finish(g.transpose(x, 1, 0, 2), "output")


NETWORKS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "efficientnet_b0": efficientnet_b0, "yolov8n": yolov8n,
            "s3d": s3d, "lstm_2x256": lstm_2x256, "gru_512_bidirectional": gru_512_bidirectional}
