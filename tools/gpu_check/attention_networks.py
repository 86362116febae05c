#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transformers with random weights: as ONNX models that PyTorch's exporter writes, and as PyTorch runs them.

  python3 tools/gpu_check/attention_networks.py write NAME OUT.onnx   NAME as in `list`; the batch is open
  python3 tools/gpu_check/attention_networks.py torch NAME BATCH      {"graph_ms", "compiled_ms"} as JSON
  python3 tools/gpu_check/attention_networks.py list

PyTorch computes in float16 with scaled_dot_product_attention, whose kernels it chooses itself: eagerly in a CUDA graph,
and by torch.compile. The parts are those of ViT (An Image is Worth 16x16 Words), BERT, GPT-2 and Llama 3.
"""
import argparse
import json
import sys
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from torch_peer import median_ms


class Sizes(NamedTuple):
    layers: int
    width: int
    heads: int
    hidden: int          # of the perceptron
    length: int          # tokens
    vocabulary: int = 0  # 0: images of 224 x 224 in patches of 16 x 16
    norm_first: bool = True
    causal: bool = False
    shared_heads: int = 0  # heads of keys and values; 0 = as many as of queries. Others: rotary positions, SwiGLU
    scores: bool = False   # of the vocabulary, for each token


NETWORKS = {
    "vit_b_16": Sizes(12, 768, 12, 3072, 197),
    "deit_s": Sizes(12, 384, 6, 1536, 197),
    "bert_base": Sizes(12, 768, 12, 3072, 128, 30522, norm_first=False),
    "bert_large": Sizes(24, 1024, 16, 4096, 384, 30522, norm_first=False),
    "gpt2": Sizes(12, 768, 12, 3072, 512, 50257, causal=True, scores=True),
    "llama_1b": Sizes(16, 2048, 32, 8192, 512, 128256, causal=True, shared_heads=8, scores=True),
}


def rotated(x, cos, sin):
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes, self.size = sizes, sizes.width // sizes.heads
        self.kv_heads = sizes.shared_heads or sizes.heads
        self.q, self.k, self.v = (nn.Linear(sizes.width, heads * self.size, bias=not sizes.shared_heads)
                                  for heads in (sizes.heads, self.kv_heads, self.kv_heads))
        self.out = nn.Linear(sizes.width, sizes.width, bias=not sizes.shared_heads)
        if sizes.shared_heads:
            angles = torch.outer(torch.arange(sizes.length), 500000.0 ** -(torch.arange(0, self.size, 2) / self.size))
            self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
            self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (layer(x).view(batch, length, -1, self.size).transpose(1, 2) for layer in (self.q, self.k, self.v))
        if self.sizes.shared_heads:
            q, k = rotated(q, self.cos, self.sin), rotated(k, self.cos, self.sin)
            k, v = (self.repeated(heads) for heads in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.sizes.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))

    def repeated(self, x):
        batch, heads, length, size = x.shape
        copies = self.sizes.heads // heads
        return x[:, :, None].expand(batch, heads, copies, length, size).reshape(batch, heads * copies, length, size)


class Perceptron(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.gated, self.tanh = bool(sizes.shared_heads), sizes.causal
        self.up = nn.Linear(sizes.width, sizes.hidden, bias=not self.gated)
        self.gate = nn.Linear(sizes.width, sizes.hidden, bias=False) if self.gated else None
        self.down = nn.Linear(sizes.hidden, sizes.width, bias=not self.gated)

    def forward(self, x):
        if self.gated:
            return self.down(F.silu(self.gate(x)) * self.up(x))
        return self.down(F.gelu(self.up(x), approximate="tanh" if self.tanh else "none"))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        norm = RmsNorm if sizes.shared_heads else nn.LayerNorm
        self.norm_first = sizes.norm_first
        self.attention, self.perceptron = Attention(sizes), Perceptron(sizes)
        self.norm1, self.norm2 = norm(sizes.width), norm(sizes.width)

    def forward(self, x):
        if self.norm_first:
            x = x + self.attention(self.norm1(x))
            return x + self.perceptron(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.perceptron(x))


class Transformer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        if sizes.vocabulary:
            self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        else:
            self.patches = nn.Conv2d(3, sizes.width, 16, 16)
            self.token = nn.Parameter(torch.randn(1, 1, sizes.width))
        if not sizes.shared_heads:
            self.positions = nn.Parameter(torch.randn(1, sizes.length, sizes.width) * 0.02)
        self.blocks = nn.Sequential(*(Block(sizes) for _ in range(sizes.layers)))
        self.norm = (RmsNorm if sizes.shared_heads else nn.LayerNorm)(sizes.width)
        self.head = nn.Linear(sizes.width, sizes.vocabulary if sizes.scores else 1000, bias=False)

    def forward(self, x):
        if self.sizes.vocabulary:
            x = self.embedding(x)
        else:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1)
        if not self.sizes.shared_heads:
            x = x + self.positions
        x = self.norm(self.blocks(x))
        return self.head(x if self.sizes.scores else x[:, 0])


def make(name, batch):
    torch.manual_seed(1)
    sizes = NETWORKS[name]
    shape = (batch, sizes.length) if sizes.vocabulary else (batch, 3, 224, 224)
    x = torch.randint(sizes.vocabulary, shape) if sizes.vocabulary else torch.randn(shape)
    return Transformer(sizes).eval(), x


def write(name, path):
    model, x = make(name, 2)
    torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "batch"}})


def captured(model, x):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        model(x)
    return graph.replay


def time_with_torch(name, batch, compiles):
    model, x = make(name, batch)
    model = model.half().cuda()
    x = x.cuda() if NETWORKS[name].vocabulary else x.half().cuda()
    with torch.inference_mode():
        compiled = None
        if compiles:
            compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
            for _ in range(4):
                compiled(x)
        print("compiled", flush=True)
        sys.stdin.readline()
        result = {"graph_ms": median_ms(captured(model, x), 20)}
        if compiled is not None:
            result["compiled_ms"] = median_ms(lambda: compiled(x), 20)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    writer = commands.add_parser("write")
    writer.add_argument("name", choices=NETWORKS)
    writer.add_argument("path")
    timer = commands.add_parser("torch", help="prints a line, and measures when one comes in")
    timer.add_argument("name", choices=NETWORKS)
    timer.add_argument("batch", type=int)
    timer.add_argument("--no-compile", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "list":
        print("\n".join(NETWORKS))
    elif arguments.command == "write":
        write(arguments.name, arguments.path)
    else:
        print(json.dumps(time_with_torch(arguments.name, arguments.batch, not arguments.no_compile)))


if __name__ == "__main__":
    main()
