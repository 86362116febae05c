#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast decoders of random weights make tokens on a GPU: Lathe by examples/llm, PyTorch with static caches beside it, its
step captured in a CUDA graph, both in float16. Prints a table; the floor is the time to read all weights once.

  python3 tools/gpu_check/decoders.py --build build [--networks small llama_1b] [--batches 1 8]
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
}
TOKENS = 256
BYTES_PER_SECOND = {"H100": 3.35e12, "H200": 4.8e12}  # NVIDIA's data sheets


def cheap_random_weights(shape):
    """Of a few random numbers, many times: time does not depend on them."""
    pool = np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32)
    return {name: np.ones(dims, np.float16) if len(dims) == 1 else
            np.resize(pool / np.float32(np.sqrt(dims[0])), dims).astype(np.float16) for name, dims in shape.weights()}


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
        self.place = torch.zeros(1, dtype=torch.int64, device="cuda")

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


def lathe_ms(options, model, batch):
    words = [options.build / "bin/example_llm", model, "--prompt=In the beginning", f"--tokens={TOKENS}", "--quiet",
             f"--batch={batch}", "--target=cuda"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=options.seconds)
    found = re.search(r"then ([\d.]+) tokens/s", result.stderr)
    if not found:
        raise RuntimeError(f"example_llm: {result.stderr[-2000:]}")
    return batch * 1000 / float(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--batches", nargs="+", type=int, default=(1, 8))
    parser.add_argument("--seconds", type=float, default=200, help="limit of each build and run")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    device = torch.cuda.get_device_name()
    bandwidth = next((speed for name, speed in BYTES_PER_SECOND.items() if name in device), None)
    rows = []
    print(f"{device}, float16, {TOKENS} tokens, milliseconds for each\n\n"
          "| network | batch | floor | Lathe | PyTorch, graph | compiled | speed | of the floor |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.networks:
        shape = NETWORKS[name]
        weights = cheap_random_weights(shape)
        read = sum(array.nbytes for key, array in weights.items() if key != "embedding")
        with tempfile.TemporaryDirectory() as folder:
            model = f"{folder}/{name}.onnx"
            decoder.write(shape, weights, model, np.float16)
            for batch in options.batches:
                caches = 2 * 2 * batch * shape.layers * shape.key_heads * shape.context * shape.size
                floor = (read + caches) / bandwidth * 1e3 if bandwidth else float("nan")
                lathe = lathe_ms(options, model, batch)
                graph, compiled = Peer(shape, weights, batch).best()
                rows.append({"network": name, "batch": batch, "floor_ms": floor, "lathe_ms": lathe, "torch_graph_ms": graph,
                             "torch_compiled_ms": compiled})
                print(f"| {name} | {batch} | {floor:.3f} | {lathe:.3f} | {graph:.3f} | {compiled:.3f} | "
                      f"{min(graph, compiled) / lathe:.2f}x | {floor / lathe:.0%} |", flush=True)
                torch.cuda.empty_cache()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
