#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single attentions on a GPU, float16, 16,384 tokens of 2,048 channels each: Lathe beside PyTorch's backends, in one run.

  python3 tools/gpu_check/attentions.py --build build [--lengths 128 512 ...] [--sizes 64 128] [--all-configurations FILE]
  python3 tools/gpu_check/attentions.py --build build --windows 512 1024 --lengths 4096 8192 --sizes 128

Lathe's time is that of the whole engine, a CUDA graph replayed back to back (`lathe trtexec`); PyTorch's that of a graph
of scaled_dot_product_attention with that backend alone. The error is ||y - w|| / ||w||, of w that PyTorch computes in
float32 and rounds. Peak: 989 TFLOP/s, of the data sheet; a causal mask halves the operations. With --windows a query sees
so many keys, of a network of open length that says so by comparisons of indices; beside it are flex_attention, compiled,
with a block mask, and scaled_dot_product_attention with a mask of booleans.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENS, WIDTH, PEAK = 16384, 2048, 989e12
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def dims_of(length, size):
    return max(TOKENS // length, 1), WIDTH // size, length, size


def write(path, dims, causal):
    from onnx import TensorProto, helper
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, dims) for name in "qkvy"]
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], name="attention", is_causal=int(causal))
    graph = helper.make_graph([node], "attention", tensors[:3], tensors[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    pathlib.Path(path).write_bytes(model.SerializeToString())


def write_window(path, dims, window):
    """A causal attention of that window, of open length."""
    from onnx import TensorProto, helper, numpy_helper
    import numpy
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [*dims[:2], "length", dims[3]]) for name in "qkvy"]
    numbers = {"zero": numpy.int64(0), "one": numpy.int64(1), "two": numpy.int64(2), "window": numpy.int64(window),
               "column": numpy.array([-1, 1])}
    nodes = [helper.make_node(kind, inputs.split(), [output]) for kind, inputs, output in (
        ("Shape", "q", "dims"), ("Gather", "dims two", "length"), ("Range", "zero length one", "keys"),
        ("Reshape", "keys column", "queries"), ("LessOrEqual", "keys queries", "earlier"),
        ("Sub", "queries window", "before"), ("Greater", "keys before", "near"), ("And", "earlier near", "seen"),
        ("Attention", "q k v seen", "y"))]
    graph = helper.make_graph(nodes, "attention", tensors[:3], tensors[3:],
                              [numpy_helper.from_array(numpy.array(each), name) for name, each in numbers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    pathlib.Path(path).write_bytes(model.SerializeToString())


def median_us(run, rounds=9, seconds=0.03):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(4):
            run()

    def time(replays):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(replays):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e3 / replays / 4
    replays = max(1, int(seconds * 1e6 / 4 / time(3)))
    return sorted(time(replays) for _ in range(rounds))[rounds // 2]


def torch_us(qkv, causal):
    times = {}
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel(backend):
                times[name] = median_us(lambda: F.scaled_dot_product_attention(*qkv, is_causal=causal))
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
    return times


def window_mask(length, window):
    queries, keys = (torch.arange(length, device="cuda").view(shape) for shape in ((-1, 1), (1, -1)))
    return (keys <= queries) & (keys > queries - window)


def torch_window_us(qkv, window):
    length = qkv[0].shape[2]
    blocks = create_block_mask(lambda b, h, q, k: (k <= q) & (k > q - window), None, None, length, length, device="cuda")
    flex, mask = torch.compile(flex_attention, dynamic=False), window_mask(length, window)
    return {"flex": median_us(lambda: flex(*qkv, block_mask=blocks)),
            "mask": median_us(lambda: F.scaled_dot_product_attention(*qkv, attn_mask=mask))}


class Lathe:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)

    def run(self, *words):
        result = subprocess.run([self.options.build / "bin/lathe", "trtexec", *map(str, words)], capture_output=True,
                                text=True, timeout=self.options.seconds)
        if result.returncode != 0:
            raise RuntimeError((result.stdout + result.stderr)[-2000:])
        return result.stdout + result.stderr

    def measure(self, write_model, dims, qkv, want, least=None):
        """Microseconds, the norm of the error, and microseconds, tactic, text and prediction of each configuration of the
        model that write_model(path) writes; `least`: dimensions from which on sizes are open."""
        model, engine = (self.folder / name for name in ("model.onnx", "engine"))

        def option(name, dims):
            return f"--{name}={','.join(f'{tensor}:' + 'x'.join(map(str, dims)) for tensor in 'qkv')}"
        shapes = [option("shapes", dims)] if least else []
        profile = [option("minShapes", least), option("optShapes", dims), option("maxShapes", dims)] if least else []
        write_model(model)
        every = ["--maxTactics=64"] if self.options.all_configurations else []
        text = self.run(f"--onnx={model}", f"--saveEngine={engine}", "--skipInference", "--verbose", *profile, *every)
        found = re.findall(r"(attention\w*) (.*?): ([\d.]+) us, predicted ([\d.]+)", text)
        for name, tensor in zip("qkvy", (*qkv, want)):
            tensor.cpu().numpy().tofile(self.folder / f"{name}.bin")
        files = [f"{name}:{self.folder / name}.bin" for name in "qkvy"]
        text = self.run(f"--loadEngine={engine}", "--useCudaGraph", "--noDataTransfers", "--duration=0.3", "--warmUp=50",
                        f"--loadInputs={','.join(files[:3])}", f"--loadRefOutputs={files[3]}", "--accuracyAlgorithm=l2",
                        "--accuracyThreshold=1e9", *shapes)
        us = 1e3 * float(re.search(r"GPU Compute Time:.*?median = ([\d.]+) ms", text)[1])
        norm = re.search(r"l2 = (\S+),", text)
        return us, float(norm[1]), sorted((float(us), tactic, config, float(guess)) for tactic, config, us, guess in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--lengths", type=int, nargs="+", default=(128, 256, 512, 1024, 2048, 4096, 8192))
    parser.add_argument("--sizes", type=int, nargs="+", default=(64, 128), help="of a head")
    parser.add_argument("--all-configurations", type=pathlib.Path, help="file for the time of each, which is measured")
    parser.add_argument("--windows", type=int, nargs="+", help="attentions that see so many keys, instead of all")
    parser.add_argument("--seconds", type=float, default=120, help="limit of each build and run")
    options = parser.parse_args()
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name()}, float16, {TOKENS} tokens of {WIDTH} channels, microseconds\n\n"
          f"| tokens | head | {'window | flex | mask' if options.windows else 'causal | cuDNN | FlashAttention'} | Lathe | speed | TFLOP/s | of peak | error | kernel |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in options.sizes:
        for length in options.lengths:
            for causal, window in [(True, each) for each in options.windows or ()] or [(False, 0), (True, 0)]:
                row(options, dims_of(length, size), causal, window)


def row(options, dims, causal, window):
    qkv = [torch.randn(dims, device="cuda", dtype=torch.float16) for _ in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            shown = {"attn_mask": window_mask(dims[2], window)} if window else {"is_causal": causal}
            with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
                want = F.scaled_dot_product_attention(*(tensor.float() for tensor in qkv), **shown).half()
            def write_model(path):
                return write_window(path, dims, window) if window else write(path, dims, causal)
            us, norm, configurations = Lathe(options, folder).measure(write_model, dims, qkv, want, dims if window else None)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{dims} {causal}: {error}", file=sys.stderr)
            return
    peers = torch_window_us(qkv, window) if window else torch_us(qkv, causal)
    seen = sum(min(i + 1, window) for i in range(dims[2])) if window else dims[2] ** 2 * (0.5 if causal else 1)
    operations = 4 * dims[0] * dims[1] * seen * dims[3]
    rate = operations / (us * 1e-6)
    kernel = " ".join(configurations[0][1:3]) if configurations else ""
    print(f"| {dims[2]} | {dims[3]} | {window or ('yes' if causal else 'no')} | " +
          " | ".join(f"{peers[name]:.1f}" if name in peers else "-" for name in (("flex", "mask") if window else BACKENDS)) +
          f" | {us:.1f} | {min(peers.values(), default=float('nan')) / us:.2f}x | {rate / 1e12:.0f} | {rate / PEAK:.2f} | "
          f"{norm / float(want.float().norm()):.1e} | {kernel} |", flush=True)
    if options.all_configurations:
        with options.all_configurations.open("a") as file:
            for us, tactic, config, guess in configurations:
                file.write(f"{dims[2]} {dims[3]} {int(causal)}: {us:.1f} us, predicted {guess:.1f}: {tactic} {config}\n")


if __name__ == "__main__":
    main()
