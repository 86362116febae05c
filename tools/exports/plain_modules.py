# SPDX-License-Identifier: Apache-2.0
"""Architectures that no library of models brings: written as people write them for themselves."""
import torch
from torch import nn
from torch.nn import functional
from torchvision.models import optical_flow


class Convolution(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=3, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs),
                         nn.SiLU())


class Bottlenecks(nn.Module):
    """The split block of YOLO (C2f): halves, of which one goes through bottlenecks, joined with each one's result."""

    def __init__(self, inputs, outputs, count=1):
        super().__init__()
        self.half = outputs // 2
        self.enter, self.leave = Convolution(inputs, outputs, 1), Convolution((2 + count) * self.half, outputs, 1)
        self.blocks = nn.ModuleList(nn.Sequential(Convolution(self.half, self.half), Convolution(self.half, self.half))
                                    for _ in range(count))

    def forward(self, x):
        parts = list(self.enter(x).split(self.half, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class Yolo(nn.Module):
    """A detector without anchors: a pyramid up and down, distances from a softmax over bins, boxes in pixels."""

    def __init__(self, width=16, classes=20, bins=16):
        super().__init__()
        w = width
        self.bins = bins
        self.stem = nn.Sequential(Convolution(3, w, 3, 2), Convolution(w, 2 * w, 3, 2), Bottlenecks(2 * w, 2 * w))
        self.p3 = nn.Sequential(Convolution(2 * w, 4 * w, 3, 2), Bottlenecks(4 * w, 4 * w, 2))
        self.p4 = nn.Sequential(Convolution(4 * w, 8 * w, 3, 2), Bottlenecks(8 * w, 8 * w, 2))
        self.p5 = nn.Sequential(Convolution(8 * w, 8 * w, 3, 2), Bottlenecks(8 * w, 8 * w))
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.pooled = Convolution(32 * w, 8 * w, 1)
        self.up4, self.up3 = Bottlenecks(16 * w, 4 * w), Bottlenecks(8 * w, 4 * w)
        self.down4, self.out4 = Convolution(4 * w, 4 * w, 3, 2), Bottlenecks(8 * w, 8 * w)
        self.heads = nn.ModuleList(nn.Conv2d(c, 4 * bins + classes, 1) for c in (4 * w, 8 * w, 8 * w))

    def forward(self, image):
        p3 = self.p3(self.stem(image))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        pools = [p5]
        for _ in range(3):
            pools.append(self.pool(pools[-1]))
        p5 = self.pooled(torch.cat(pools, 1))
        up4 = self.up4(torch.cat([functional.interpolate(p5, scale_factor=2.0, mode="nearest"), p4], 1))
        up3 = self.up3(torch.cat([functional.interpolate(up4, scale_factor=2.0, mode="nearest"), p3], 1))
        out4 = self.out4(torch.cat([self.down4(up3), up4], 1))
        boxes, scores = [], []
        for level, (head, features) in enumerate(zip(self.heads, (up3, out4, p5))):
            result, stride = head(features), 8 << level
            rows, columns = features.shape[-2:]
            y, x = torch.meshgrid(torch.arange(rows) + 0.5, torch.arange(columns) + 0.5, indexing="ij")
            centre = torch.stack([x, y]).reshape(1, 2, -1)
            distances = result[:, :4 * self.bins].reshape(result.shape[0], 4, self.bins, -1).softmax(2)
            distances = (distances * torch.arange(self.bins, dtype=torch.float32).reshape(1, 1, -1, 1)).sum(2)
            boxes.append(torch.cat([centre - distances[:, :2], centre + distances[:, 2:]], 1) * stride)
            scores.append(result[:, 4 * self.bins:].flatten(2).sigmoid())
        return torch.cat([torch.cat(boxes, 2), torch.cat(scores, 2)], 1)


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x):
        y = self.conv1(functional.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(functional.silu(self.norm2(y)))


class PixelAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(8, channels, eps=1e-6)
        self.to_qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.to_qkv(self.norm(x).reshape(n, c, h * w).transpose(1, 2)).unsqueeze(1).chunk(3, -1)
        y = self.out(functional.scaled_dot_product_attention(q, k, v).squeeze(1))
        return x + y.transpose(1, 2).reshape(n, c, h, w)


class Vae(nn.Module):
    """A variational auto-encoder with group norms, as diffusion models use it; returns the mean and its picture."""

    def __init__(self, width=32, latent=4):
        super().__init__()
        w = width
        self.encoder = nn.Sequential(
            nn.Conv2d(3, w, 3, padding=1), Residual(w, w), nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(w, 2 * w, 3, 2),
            Residual(2 * w, 2 * w), nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(2 * w, 2 * w, 3, 2), PixelAttention(2 * w),
            nn.GroupNorm(8, 2 * w), nn.SiLU(), nn.Conv2d(2 * w, 2 * latent, 3, padding=1))
        self.decoder = nn.Sequential(
            nn.Conv2d(latent, 2 * w, 3, padding=1), PixelAttention(2 * w), Residual(2 * w, 2 * w), nn.Upsample(scale_factor=2),
            nn.Conv2d(2 * w, w, 3, padding=1), Residual(w, w), nn.Upsample(scale_factor=2), nn.Conv2d(w, w, 3, padding=1),
            nn.GroupNorm(8, w), nn.SiLU(), nn.Conv2d(w, 3, 3, padding=1))

    def forward(self, image):
        mean, variance = self.encoder(image).chunk(2, 1)
        return self.decoder(mean), mean, variance.clamp(-30, 20).exp()


class Unet(nn.Module):
    """The U-Net of segmentation: sizes that need not divide by the strides are padded where paths meet."""

    def __init__(self, width=16, classes=5):
        super().__init__()
        widths = [width << level for level in range(4)]
        self.down = nn.ModuleList(nn.Sequential(Convolution(a, b), Convolution(b, b)) for a, b in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.join = nn.ModuleList(Convolution(2 * a, a) for a in widths[:-1])
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        levels = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else functional.max_pool2d(x, 2))
            levels.append(x)
        for level in reversed(range(3)):
            x, skip = self.up[level](x), levels[level]
            x = functional.pad(x, [0, skip.shape[3] - x.shape[3], 0, skip.shape[2] - x.shape[2]])
            x = self.join[level](torch.cat([skip, x], 1))
        return self.out(x)


class DiffusionUnet(nn.Module):
    """A step of a diffusion model: noise from a noisy picture, a time and a text's states."""

    def __init__(self, width=32, text=24):
        super().__init__()
        w = width
        self.width = w
        self.time = nn.Sequential(nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, 2 * w))
        self.enter, self.down = nn.Conv2d(4, w, 3, padding=1), nn.Conv2d(w, 2 * w, 3, 2, 1)
        self.blocks = nn.ModuleList([Residual(2 * w, 2 * w), Residual(2 * w, 2 * w)])
        self.norm, self.attention = nn.LayerNorm(2 * w), nn.MultiheadAttention(2 * w, 4, kdim=text, vdim=text, batch_first=True)
        self.gated, self.narrow = nn.Linear(2 * w, 8 * w), nn.Linear(4 * w, 2 * w)
        self.up, self.leave = nn.Conv2d(2 * w, w, 3, padding=1), nn.Conv2d(2 * w, 4, 3, padding=1)

    def forward(self, latent, time, states):
        frequencies = torch.exp(torch.arange(self.width // 2) * (-9.21 / (self.width // 2)))
        angles = time[:, None].float() * frequencies[None]
        embedding = self.time(torch.cat([angles.cos(), angles.sin()], -1))
        first = self.enter(latent)
        x = self.blocks[0](self.down(first) + embedding[:, :, None, None])
        n, c, h, w = x.shape
        tokens = x.flatten(2).transpose(1, 2)
        tokens = tokens + self.attention(self.norm(tokens), states, states, need_weights=False)[0]
        value, gate = self.gated(tokens).chunk(2, -1)
        tokens = tokens + self.narrow(value * functional.gelu(gate))
        x = self.blocks[1](tokens.transpose(1, 2).reshape(n, c, h, w))
        x = self.up(functional.interpolate(x, size=latent.shape[2:], mode="nearest"))
        return self.leave(torch.cat([x, first], 1))


class JointAttention(nn.Module):
    """A block of a diffusion transformer, as Flux has it: a text and a picture with weights each meet in one attention, whose
    queries and keys are normalised by heads and turned by positions in neighbours; a vector shifts, scales and gates both."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=False) for _ in range(4))
        self.shift = nn.ModuleList(nn.Linear(width, 6 * width) for _ in range(2))
        self.qkv, self.out = (nn.ModuleList(nn.Linear(width, wide) for _ in range(2)) for wide in (3 * width, width))
        self.wide = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.GELU("tanh"), nn.Linear(2 * width, width))
                                  for _ in range(2))
        self.scales = nn.ParameterList(torch.ones(self.size) for _ in range(4))

    def normalised(self, x, scale):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * scale

    def turned(self, x):
        angles = torch.arange(x.shape[2])[:, None] * 100.0 ** (-torch.arange(0, self.size, 2) / self.size)
        cosines, sines = (f(angles).repeat_interleave(2, 1) for f in (torch.cos, torch.sin))
        real, imaginary = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        return x * cosines + torch.stack([-imaginary, real], -1).flatten(3) * sines

    def forward(self, text, picture, vector):
        streams, changes, parts = [text, picture], [], []
        for i, x in enumerate(streams):
            changes.append(self.shift[i](functional.silu(vector))[:, None].chunk(6, -1))
            shifted = self.norms[i](x) * (1 + changes[i][0]) + changes[i][1]
            q, k, v = self.qkv[i](shifted).unflatten(-1, (3, self.heads, self.size)).permute(2, 0, 3, 1, 4).unbind(0)
            parts.append((self.normalised(q, self.scales[2 * i]), self.normalised(k, self.scales[2 * i + 1]), v))
        q, k, v = (torch.cat(each, 2) for each in zip(*parts))
        y = functional.scaled_dot_product_attention(self.turned(q), self.turned(k), v).transpose(1, 2).flatten(2)
        for i, part in enumerate([y[:, :text.shape[1]], y[:, text.shape[1]:]]):
            streams[i] = streams[i] + changes[i][2] * self.out[i](part)
            shifted = self.norms[2 + i](streams[i]) * (1 + changes[i][3]) + changes[i][4]
            streams[i] = streams[i] + changes[i][5] * self.wide[i](shifted)
        return tuple(streams)


class Recurrent(nn.Module):
    """A recurrent network between an embedding and a classifier of each token."""

    def __init__(self, kind, layers=2, both=True):
        super().__init__()
        self.embedding = nn.Embedding(100, 24)
        self.cell = kind(24, 32, layers, batch_first=True, bidirectional=both)
        self.out = nn.Linear(64 if both else 32, 10)

    def forward(self, tokens):
        states, last = self.cell(self.embedding(tokens))
        return self.out(states), last[0] if isinstance(last, tuple) else last


class WaveNet(nn.Module):
    """Dilated causal convolutions over time, with gates and skips."""

    def __init__(self, width=16):
        super().__init__()
        self.enter = nn.Conv1d(1, width, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=1 << i) for i in range(5))
        self.mixes = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(5))
        self.out = nn.Conv1d(width, 8, 1)

    def forward(self, wave):
        x, total = self.enter(wave), 0
        for index, (gate, mix) in enumerate(zip(self.gates, self.mixes)):
            a, b = gate(functional.pad(x, [1 << index, 0])).chunk(2, 1)
            y = mix(a.tanh() * b.sigmoid())
            x, total = x + y, total + y
        return self.out(total.relu())


class SuperResolution(nn.Module):
    """Dense blocks and a pixel shuffle, beside a picture enlarged bicubically."""

    def __init__(self, width=24):
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.dense = nn.ModuleList(nn.Conv2d(width + 8 * i, 8, 3, padding=1) for i in range(4))
        self.out = nn.Sequential(nn.Conv2d(width + 32, 12, 3, padding=1), nn.PixelShuffle(2), nn.PReLU(3))

    def forward(self, image):
        x = self.enter(image)
        for layer in self.dense:
            x = torch.cat([x, functional.leaky_relu(layer(x), 0.2)], 1)
        return self.out(x) + functional.interpolate(image, scale_factor=2.0, mode="bicubic", align_corners=False)


class Translator(nn.Module):
    """PyTorch's own transformer with an encoder and a causal decoder."""

    def __init__(self, width=32):
        super().__init__()
        self.source, self.target = nn.Embedding(100, width), nn.Embedding(100, width)
        self.transformer = nn.Transformer(width, 4, 2, 2, 64, batch_first=True, activation="gelu")
        self.out = nn.Linear(width, 100)

    def forward(self, source, target):
        length = target.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        return self.out(self.transformer(self.source(source), self.target(target), tgt_mask=causal))


class LoopedExperts(nn.Module):
    """Two of four gated experts for each token, one expert after the other, as transformers 4 had them."""

    def __init__(self, width=32, hidden=48, experts=4, chosen=2):
        super().__init__()
        self.experts, self.chosen, self.router = experts, chosen, nn.Linear(width, experts, bias=False)
        self.gate, self.up = (nn.ModuleList(nn.Linear(width, hidden) for _ in range(experts)) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(hidden, width) for _ in range(experts))

    def forward(self, tokens):
        rows = tokens.view(-1, tokens.shape[-1])
        weights, chosen = torch.topk(torch.softmax(self.router(rows), 1), self.chosen, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        result = torch.zeros_like(rows)
        mask = functional.one_hot(chosen, num_classes=self.experts).permute(2, 1, 0)
        for expert in range(self.experts):
            choice, token = torch.where(mask[expert])
            hits = rows[None, token].reshape(-1, rows.shape[-1])
            made = self.down[expert](functional.silu(self.gate[expert](hits)) * self.up[expert](hits))
            result.index_add_(0, token, made * weights[token, choice, None])
        return result.view(tokens.shape)


def generator(width=16):
    """The generator of a DCGAN: transposed convolutions from a vector to a picture."""
    layers, channels = [], [32, 8 * width, 4 * width, 2 * width, width]
    for index, (a, b) in enumerate(zip(channels, channels[1:])):
        layers += [nn.ConvTranspose2d(a, b, 4, 1 if index == 0 else 2, 0 if index == 0 else 1, bias=False),
                   nn.BatchNorm2d(b), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())


def perceptron():
    return nn.Sequential(nn.Linear(20, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.Softplus(), nn.Linear(64, 7),
                         nn.LogSoftmax(-1))


def volume_network(width=8):
    """A 3-D classifier with instance norms."""
    return nn.Sequential(nn.Conv3d(1, width, 3, padding=1), nn.InstanceNorm3d(width, affine=True), nn.LeakyReLU(),
                         nn.MaxPool3d(2), nn.Conv3d(width, 2 * width, 3, 2, 1), nn.BatchNorm3d(2 * width), nn.ELU(),
                         nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(2 * width, 5))


class Flow(nn.Module):
    """torchvision's RAFT with two steps, for each further one is the same again."""

    def __init__(self):
        super().__init__()
        self.raft = optical_flow.raft_small(weights=None)

    def forward(self, first, second):
        return self.raft(first, second, num_flow_updates=2)
