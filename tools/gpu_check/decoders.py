#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast decoders of random weights make tokens on a GPU: Lathe by examples/llm, PyTorch with static caches beside it, its
step captured in a CUDA graph, both in float16. Lathe also with matrices of 4 and 8 bits, which it is compared with itself
for. Prompts fill three quarters of the caches, and what is made the last one. Prints a table; the floor is the time to read all
weights once, and of the caches what is in them.

  python3 tools/gpu_check/decoders.py --build build [--networks small llama_1b] [--batches 1 8 64] [--weights f16 int4 int8 nvfp4 mxfp4]
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/llm"))
import decoder  # noqa: E402

NETWORKS = {
    "small": decoder.Shape(layers=12, width=768, heads=12, key_heads=12, hidden=2048, vocabulary=50304, context=1024),
    "llama_1b": decoder.Shape(layers=16, width=2048, heads=32, key_heads=8, hidden=8192, vocabulary=128256, context=1024),
    # Few layers and words, so that models are small: the difference of the two is what two layers take.
    "llama_8b_of_4": decoder.Shape(layers=4, width=4096, heads=32, key_heads=8, hidden=14336, vocabulary=4096, context=1024),
    "llama_8b_of_2": decoder.Shape(layers=2, width=4096, heads=32, key_heads=8, hidden=14336, vocabulary=4096, context=1024),
    "llama_1b_of_4": decoder.Shape(layers=4, width=2048, heads=32, key_heads=8, hidden=8192, vocabulary=4096, context=1024),
}
TOKENS = 256
BYTES_PER_SECOND = {"H100": 3.35e12, "H200": 4.8e12}  # NVIDIA's data sheets


def cheap_random_weights(shape):
    """Of a few random numbers, many times: time does not depend on them. No two are equal, for those would be one
    tensor, of which a step reads less."""
    pool = np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32)
    return {name: np.ones(dims, np.float16) if len(dims) == 1 else
            np.resize(np.roll(pool, 1009 * place) / np.float32(np.sqrt(dims[0])), dims).astype(np.float16)
            for place, (name, dims) in enumerate(shape.weights())}


class Peer:
    """The same step in PyTorch: a token of each text, caches of the whole context under a mask."""

    def __init__(self, shape, weights, batch):
        self.shape, self.batch = shape, batch
        self.weights = {name: torch.from_numpy(array).cuda() for name, array in weights.items()}
        for layer in range(shape.layers):
            def joined(*names):
                return torch.cat([self.weights.pop(f"{layer}.{name}") for name in names], 1)
            self.weights[f"{layer}.qkv"] = joined("query", "key", "value")
            self.weights[f"{layer}.gate_up"] = joined("gate", "up")
        cache = (shape.layers, batch, shape.key_heads, shape.context, shape.size)
        self.keys, self.values = (torch.zeros(cache, dtype=torch.float16, device="cuda") for _ in range(2))
        self.tables = [torch.from_numpy(table).half().cuda() for table in decoder.rotations(shape)]
        self.token = torch.zeros(batch, 1, dtype=torch.int64, device="cuda")
        self.place = torch.zeros(1, dtype=torch.int64, device="cuda")  # whose mask, and not whose reads, depend on it

    def step(self):
        shape, w = self.shape, self.weights
        visible = (torch.arange(shape.context, device="cuda") <= self.place).view(1, 1, 1, -1)
        cosines, sines = (table[self.place] for table in self.tables)

        def rotate(x):
            low, high = x.chunk(2, -1)
            return torch.cat([low * cosines - high * sines, low * sines + high * cosines], -1)

        def heads(x):
            return x.view(self.batch, 1, -1, shape.size).transpose(1, 2)
        x = w["embedding"][self.token]
        keys = shape.key_heads * shape.size
        for layer in range(shape.layers):
            n = F.rms_norm(x, (shape.width,), w[f"{layer}.attention_norm"], 1e-5)
            query, key, value = (n @ w[f"{layer}.qkv"]).split([shape.width, keys, keys], -1)
            self.keys[layer].index_copy_(2, self.place, rotate(heads(key)))
            self.values[layer].index_copy_(2, self.place, heads(value))
            y = F.scaled_dot_product_attention(rotate(heads(query)), self.keys[layer], self.values[layer],
                                               attn_mask=visible, enable_gqa=shape.heads != shape.key_heads)
            x = x + y.transpose(1, 2).reshape(self.batch, 1, shape.width) @ w[f"{layer}.output"]
            n = F.rms_norm(x, (shape.width,), w[f"{layer}.hidden_norm"], 1e-5)
            gate, up = (n @ w[f"{layer}.gate_up"]).chunk(2, -1)
            x = x + (F.silu(gate) * up) @ w[f"{layer}.down"]
        logits = F.rms_norm(x, (shape.width,), w["norm"], 1e-5) @ w["head"]
        best, tokens = logits.float().topk(40)
        chosen = torch.multinomial(best[:, 0].softmax(-1), 1)
        self.token.copy_(tokens[:, 0].gather(1, chosen))
        self.place.add_(1)

    def milliseconds(self, step):
        with torch.no_grad():
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    step()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            graph.replay()
            begin.record()
            for _ in range(TOKENS):
                graph.replay()
            end.record()
            torch.cuda.synchronize()
            return begin.elapsed_time(end) / TOKENS

    def best(self):
        times = [self.milliseconds(self.step)]
        self.place.zero_()
        times.append(self.milliseconds(torch.compile(self.step)))
        return times


def words_of(options, shape, model, batch, tokens):
    prompt = ("In the beginning was the word. " * shape.context)[:shape.context - TOKENS]
    budget = [] if options.budget is None else [f"--buildBudget={options.budget}"]
    return [options.build / "bin/example_llm", model, f"--prompt={prompt}", f"--tokens={tokens}", "--quiet",
            f"--batch={batch}", "--target=cuda", f"--plan={model}.{batch}.engine", *budget]


def build_at_once(options, shape, models):
    """All engines, none of which measures anything."""
    builders = [subprocess.Popen(words_of(options, shape, model, batch, 2), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for model in models for batch in options.batches]
    try:
        for builder in builders:
            if builder.wait(options.seconds) != 0:
                raise RuntimeError(f"{' '.join(map(str, builder.args))} ended with {builder.returncode}")
    finally:
        for builder in builders:
            builder.kill()


def lathe_ms(options, shape, model, batch):
    result = subprocess.run(words_of(options, shape, model, batch, TOKENS), capture_output=True, text=True,
                            timeout=options.seconds)
    found = re.search(r"then ([\d.]+) tokens/s", result.stderr)
    if not found:
        raise RuntimeError(f"example_llm: {result.stderr[-2000:]}")
    return batch * 1000 / float(found[1])


def bytes_of(weights, kind):
    """Of what a step reads of them: matrices but for the embedding, whose scales are of 16 bits, and vectors."""
    def one(name, array):
        if array.ndim == 1 or kind == "f16":
            return 2 * array.size
        block = decoder.NARROW[kind].block
        blocks = -(-array.shape[0] // block) if block else 1
        return array.size * (0.5 if block else 1) + 2 * blocks * array.shape[1]
    return sum(one(name, array) for name, array in weights.items() if name != "embedding")


class Comparison:
    """Of one network, row by row."""

    def __init__(self, options, name, folder, bandwidth):
        self.options, self.name, self.shape, self.bandwidth = options, name, NETWORKS[name], bandwidth
        self.weights, self.folder = cheap_random_weights(self.shape), folder
        self.rows = []

    def caches(self, batch):
        shape = self.shape
        return 2 * 2 * batch * shape.layers * shape.key_heads * (shape.context - TOKENS // 2) * shape.size

    def model(self, kind):
        return f"{self.folder}/{self.name}.{kind}.onnx"

    def write(self):
        for kind in self.options.weights:
            decoder.write(self.shape, self.weights, self.model(kind), np.float16, quantize=None if kind == "f16" else kind)
        if self.options.budget == 0:
            build_at_once(self.options, self.shape, [self.model(kind) for kind in self.options.weights])

    def run(self, kind):
        for batch in self.options.batches:
            floor = (bytes_of(self.weights, kind) + self.caches(batch)) / self.bandwidth * 1e3 if self.bandwidth else float("nan")
            row = {"network": self.name, "weights": kind, "batch": batch, "floor_ms": floor,
                   "lathe_ms": lathe_ms(self.options, self.shape, self.model(kind), batch)}
            if kind == "f16" and self.options.peers:
                row["torch_graph_ms"], row["torch_compiled_ms"] = Peer(self.shape, self.weights, batch).best()
                torch.cuda.empty_cache()
            self.rows.append(row)
            self.show(row)

    def show(self, row):
        peers = [row[key] for key in ("torch_graph_ms", "torch_compiled_ms") if key in row]
        halves = [other["lathe_ms"] for other in self.rows if other["weights"] == "f16" and other["batch"] == row["batch"]]
        numbers = " | ".join(f"{peer:.3f}" for peer in peers) if peers else "|"
        against = f"{min(peers) / row['lathe_ms']:.2f}x" if peers else ""
        own = f"{halves[0] / row['lathe_ms']:.2f}x" if halves else ""
        print(f"| {self.name} | {row['weights']} | {row['batch']} | {row['floor_ms']:.3f} | {row['lathe_ms']:.3f} | {numbers} | "
              f"{against} | {own} | {row['floor_ms'] / row['lathe_ms']:.0%} |",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--networks", nargs="+", default=("small", "llama_1b"), choices=NETWORKS)
    parser.add_argument("--batches", nargs="+", type=int, default=(1, 8, 64))
    parser.add_argument("--weights", nargs="+", default=("f16",), choices=("f16", *decoder.NARROW))
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="Lathe alone")
    parser.add_argument("--budget", type=float, help="seconds of measuring for each engine; 0: all are built at once")
    parser.add_argument("--wait", action="store_true", help="when models are written, measure after a line has come in")
    parser.add_argument("--seconds", type=float, default=200, help="limit of each build and run")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    device = torch.cuda.get_device_name()
    bandwidth = next((speed for name, speed in BYTES_PER_SECOND.items() if name in device), None)
    rows = []
    print(f"{device}, float16, {TOKENS} tokens, milliseconds for each\n\n"
          "| network | weights | batch | floor | Lathe | PyTorch, graph | compiled | speed | against f16 | of the floor |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.networks:
        with tempfile.TemporaryDirectory() as folder:
            comparison = Comparison(options, name, folder, bandwidth)
            comparison.write()
            if options.wait:
                sys.stdin.readline()
            for kind in options.weights:
                comparison.run(kind)
            rows += comparison.rows
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
