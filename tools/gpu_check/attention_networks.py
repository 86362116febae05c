#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transformers with random weights: as ONNX models that PyTorch's exporter writes, and as PyTorch runs them.

  python3 tools/gpu_check/attention_networks.py write NAME OUT.onnx   NAME as in `list`; the batch is open
  python3 tools/gpu_check/attention_networks.py torch NAME BATCH      {"graph_ms", "compiled_ms"} as JSON
  python3 tools/gpu_check/attention_networks.py list
  python3 tools/gpu_check/attention_networks.py compare --build BUILD NAME:BATCH ...   a table, all of one run

PyTorch computes in float16 with scaled_dot_product_attention, whose kernels it chooses itself: eagerly in a CUDA graph,
and by torch.compile. The parts are those of ViT (An Image is Worth 16x16 Words), BERT, GPT-2 and Llama 3; further networks
are in library_networks.py.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import library_networks
from peaks import PEAK_TBPS, PEAK_TFLOPS
from torch_peer import median_ms


# Of many processes at once: each with as many threads as there are processors would have them wait for each other.
ENVIRONMENT = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "2", "OMP_NUM_THREADS": "2"}


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
    """The network, and what goes in, on the GPU where there is one, which draws a billion weights at once."""
    torch.manual_seed(1)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        if name in library_networks.NETWORKS:
            model, inputs = library_networks.NETWORKS[name](batch)
            return model.eval(), inputs
        sizes = NETWORKS[name]
        shape = (batch, sizes.length) if sizes.vocabulary else (batch, 3, 224, 224)
        x = torch.randint(sizes.vocabulary, shape) if sizes.vocabulary else torch.randn(shape)
        return Transformer(sizes).eval(), (x,)


class HalfResults(nn.Module):
    """Results are float16, as PyTorch's are that is measured beside it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        results = self.model(*inputs)
        return tuple(y.half() for y in results) if isinstance(results, tuple) else results.half()


def write(name, path):
    export(*make(name, 2), path)


def export(model, inputs, path):
    model = HalfResults(model)
    names = [f"x{i}" for i in range(len(inputs))]
    torch.onnx.export(model, tuple(inputs), path, dynamo=False, opset_version=17, input_names=names,
                      dynamic_axes={name: {0: "batch"} for name in names})


def captured(model, inputs):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        model(*inputs)
    return graph.replay


def needless_share(module, rows):
    """Of what PyTorch computes in a module, and of its weights, that no result depends on."""
    if isinstance(module, library_networks.Experts):
        used = module.chosen / module.w1.shape[0]
        return 1 - used, 1 - min(1, used * rows)
    if isinstance(module, nn.Embedding):  # of which a few rows are read
        return 0, 1
    return 0.5 if isinstance(module, Attention) and module.sizes.causal else 0, 0


def floor_ms(model, inputs):
    """The longer of what the network's products take at the peak of arithmetic, and of what reading its weights once takes."""
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(*inputs)
    counts, root = counter.get_flop_counts(), type(model).__name__
    flop = sum(counts["Global"].values())
    weights = sum(p.nbytes for p in model.parameters())
    rows = inputs[0].numel() // (inputs[0].shape[-1] if inputs[0].is_floating_point() else 1)  # tokens
    for name, module in model.named_modules(prefix=root):
        flop_share, weight_share = needless_share(module, rows)
        counted = counts.get(name, {})
        if isinstance(module, Attention):  # its own products of queries and keys, not those of the layers in it
            counted = {op: n for op, n in counted.items() if "attention" in str(op)}
        flop -= flop_share * sum(counted.values())
        weights -= weight_share * sum(p.nbytes for p in module.parameters())
    return max(flop / (PEAK_TFLOPS * 1e9), weights / (PEAK_TBPS * 1e9))


def time_with_torch(name, batch, compiles):
    model, inputs = make(name, batch)
    model = model.half()
    inputs = [x.half() if x.is_floating_point() else x for x in inputs]
    floor = floor_ms(model, inputs)
    with torch.inference_mode():
        compiled = None
        if compiles:
            compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
            for _ in range(4):
                compiled(*inputs)
        print("compiled", flush=True)
        sys.stdin.readline()
        result = {"floor_ms": floor, "graph_ms": stream_ms(captured(model, inputs))}
        if compiled is not None:
            result["compiled_ms"] = stream_ms(lambda: compiled(*inputs))
    return result


def stream_ms(run):
    """As bench_networks measures: rounds of 50 ms, after half a second in which a GPU that draws all its power has slowed down."""
    first = median_ms(run, 3, 3)
    repeats = max(1, round(50 / first))
    median_ms(run, repeats, 10)
    return median_ms(run, repeats)


class Peer:
    """PyTorch in a process of its own, which compiles at once and is measured when its turn has come."""

    def __init__(self, name, batch):
        words = [sys.executable, __file__, "torch", name, str(batch)]
        # A file takes what the compiler says however much it is; a full pipe that nobody reads would stop it.
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=ENVIRONMENT)

    def wait_until_compiled(self):
        self.process.stdout.readline()

    def times(self):
        out, _ = self.process.communicate("go\n", timeout=120)
        if self.process.returncode == 0:
            return json.loads(out.splitlines()[-1])
        self.errors.seek(0)
        print(*self.errors.read().strip().splitlines()[-1:], file=sys.stderr)
        return {}


def time_with_lathe(options, model, batch):
    report = model.with_suffix(f".{batch}.json")
    words = [options.build / "bin/bench_networks", model, "--target=cuda", "--precision=f16", f"--batch={batch}",
             f"--budget={options.budget}", "--seconds=0.5", "--steps", "--json", report]
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=options.budget + 120)
    if options.steps:
        with options.steps.open("a") as file:
            file.write(f"==== {model.stem}, batch {batch}\n{result.stdout}\n{result.stderr}\n")
    return json.loads(report.read_text()) if result.returncode == 0 else None


def compare(options):
    pairs = [(name, int(batch)) for name, batch in (pair.split(":") for pair in options.pairs)]
    peers = {pair: Peer(*pair) for pair in pairs}
    print(f"{torch.cuda.get_device_name()}, milliseconds\n\n"
          "| network | batch | PyTorch, graph | compiled | Lathe | speed | floor | of the floor | steps | build s |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        models = {name: pathlib.Path(folder) / f"{name}.onnx" for name, _ in pairs}
        writers = [subprocess.Popen([sys.executable, __file__, "write", name, path], stderr=subprocess.DEVNULL, env=ENVIRONMENT)
                   for name, path in models.items()]
        for writer in writers:
            writer.wait()
        for peer in peers.values():
            peer.wait_until_compiled()
        for name, batch in pairs:
            ours, times = time_with_lathe(options, models[name], batch), peers[name, batch].times()
            cells = [f"{times[key]:.3f}" if key in times else "-" for key in ("graph_ms", "compiled_ms")]
            if ours:
                floor = times.pop("floor_ms", float("nan"))
                best = min(times.values(), default=float("nan"))
                cells += [f"{ours['stream_ms']:.3f}", f"{best / ours['stream_ms']:.2f}x", f"{floor:.3f}",
                          f"{floor / ours['stream_ms']:.0%}", ours["steps"],
                          f"{ours['build_ms'] / 1e3:.1f}"]
            print(f"| {name} | {batch} | " + " | ".join(map(str, cells)) + " |", flush=True)


def main():
    names = [*NETWORKS, *library_networks.NETWORKS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    writer = commands.add_parser("write")
    writer.add_argument("name", choices=names)
    writer.add_argument("path")
    timer = commands.add_parser("torch", help="prints a line, and measures when one comes in")
    timer.add_argument("name", choices=names)
    timer.add_argument("batch", type=int)
    timer.add_argument("--no-compile", action="store_true")
    comparison = commands.add_parser("compare", help="the tables of bench/results")
    comparison.add_argument("pairs", nargs="+", metavar="NAME:BATCH")
    comparison.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build")
    comparison.add_argument("--budget", type=float, default=20, help="seconds of tuning")
    comparison.add_argument("--steps", type=pathlib.Path, help="file for the time of each step")
    arguments = parser.parse_args()
    if arguments.command == "list":
        print("\n".join(names))
    elif arguments.command == "compare":
        compare(arguments)
    elif arguments.command == "write":
        write(arguments.name, arguments.path)
    else:
        print(json.dumps(time_with_torch(arguments.name, arguments.batch, not arguments.no_compile)))


if __name__ == "__main__":
    main()
