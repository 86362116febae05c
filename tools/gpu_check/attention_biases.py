#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attentions whose scores have a bias by the distance of a key from a query, of open length, on a GPU, float16, 16,384
tokens of 2,048 channels each: Lathe beside PyTorch, in one run.

  python3 tools/gpu_check/attention_biases.py --build build [--before OTHER] [--lengths 2048 ...] [--sizes 64 128]

alibi: slope * (key - query), causal; near: slope * -|key - query|; t5: a number of each of 32 buckets of distances. Beside
each are flex_attention, compiled, whose score_mod computes the first two and reads the last from a row of all distances,
scaled_dot_product_attention with a mask of float16 that is there, and with --before another build of Lathe. The error is
||y - w|| / ||w||, of w that PyTorch computes in float32 and rounds.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from attentions import Lathe, dims_of, median_us

KINDS = ("alibi", "near", "t5")
BUCKETS, FARTHEST = 32, 128


def slopes_of(heads):
    return 2.0 ** (-8.0 * numpy.arange(1, heads + 1, dtype=numpy.float32) / heads)


def table_of(heads):
    return numpy.random.default_rng(1).standard_normal((BUCKETS, heads)).astype(numpy.float32)


def nodes_of(kind):
    """(operator, inputs, output, attributes) from `apart`, key - query, to `bias`."""
    if kind != "t5":
        distance = [("Abs", "apart", "far", {}), ("Neg", "far", "signed", {})] if kind == "near" else \
            [("Identity", "apart", "signed", {})]
        return distance + [("Cast", "signed", "number", {"to": 1}), ("Mul", "number slopes", "wide", {}),
                           ("Cast", "wide", "bias", {"to": 10})]
    return [("Greater", "apart zero", "later", {}), ("Cast", "later", "side", {"to": 7}), ("Mul", "side half", "base", {}),
            ("Abs", "apart", "far", {}), ("Less", "far exact", "near", {}), ("Cast", "far", "number", {"to": 1}),
            ("Div", "number exacts", "share", {}), ("Log", "share", "log", {}), ("Mul", "log steps", "place", {}),
            ("Cast", "place", "step", {"to": 7}), ("Add", "step exact", "large", {}), ("Min", "large last", "capped", {}),
            ("Where", "near far capped", "own", {}), ("Add", "own base", "bucket", {}), ("Gather", "table bucket", "of", {}),
            ("Transpose", "of", "wide", {"perm": [2, 0, 1]}), ("Cast", "wide", "bias", {"to": 10})]


def write(path, dims, kind):
    """An attention of open length with that bias; None = with none."""
    from onnx import TensorProto, helper, numpy_helper
    heads, exact = dims[1], BUCKETS // 4
    numbers = {"zero": numpy.int64(0), "one": numpy.int64(1), "two": numpy.int64(2), "column": numpy.array([-1, 1]),
               "slopes": slopes_of(heads).reshape(-1, 1, 1), "table": table_of(heads), "half": numpy.int64(BUCKETS // 2),
               "exact": numpy.int64(exact), "exacts": numpy.float32(exact), "last": numpy.int64(BUCKETS // 2 - 1),
               "steps": numpy.float32(exact / numpy.log(FARTHEST / exact))}
    places = [("Shape", "q", "dims", {}), ("Gather", "dims two", "length", {}), ("Range", "zero length one", "keys", {}),
              ("Reshape", "keys column", "queries", {}), ("Sub", "keys queries", "apart", {})]
    attention = ("Attention", "q k v bias" if kind else "q k v", "y", {"is_causal": int(kind == "alibi")})
    nodes = [helper.make_node(op, inputs.split(), [output], **attributes)
             for op, inputs, output, attributes in (places + nodes_of(kind) if kind else []) + [attention]]
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [*dims[:2], "length", dims[3]]) for name in "qkvy"]
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(nodes, "attention", tensors[:3], tensors[3:],
                              [numpy_helper.from_array(numpy.asarray(each), name) for name, each in numbers.items() if name in used])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    pathlib.Path(path).write_bytes(model.SerializeToString())


def row_of(kind, heads, length):
    """[heads, distances] as float32, from key - query = 1 - length on."""
    apart = torch.arange(1 - length, length, device="cuda")
    if kind != "t5":
        return torch.from_numpy(slopes_of(heads)).cuda()[:, None] * (apart if kind == "alibi" else -apart.abs())
    exact, far = BUCKETS // 4, apart.abs()
    place = torch.log(far.float() / exact) * float(numpy.float32(exact / numpy.log(FARTHEST / exact)))
    large = (torch.where(far > 0, place, 0).long() + exact).clamp(max=BUCKETS // 2 - 1)
    bucket = torch.where(far < exact, far, large) + (apart > 0) * (BUCKETS // 2)
    return torch.from_numpy(table_of(heads)).cuda()[bucket].T.contiguous()


def mask_of(row, length, kind):
    places = torch.arange(length, device="cuda")
    apart = places[None, :] - places[:, None]
    mask = row.half().float()[:, apart + length - 1]
    return mask.masked_fill_(apart > 0, float("-inf")) if kind == "alibi" else mask


def torch_us(qkv, kind, row, mask, with_flex):
    length, slopes, narrow = qkv[0].shape[2], torch.from_numpy(slopes_of(qkv[0].shape[1])).cuda(), row.half()
    changes = {"alibi": lambda score, b, h, q, k: score + slopes[h] * (k - q),
               "near": lambda score, b, h, q, k: score - slopes[h] * (k - q).abs(),
               "t5": lambda score, b, h, q, k: score + narrow[h, k - q + length - 1]}
    blocks = create_block_mask(lambda b, h, q, k: k <= q, None, None, length, length, device="cuda") if kind == "alibi" else None
    flex, half = torch.compile(flex_attention, dynamic=False), mask.half()
    runs = {"flex": lambda: flex(*qkv, score_mod=changes[kind], block_mask=blocks)} if with_flex else {}
    runs["mask"] = lambda: F.scaled_dot_product_attention(*qkv, attn_mask=half)
    times = {}
    for name, run in runs.items():
        try:
            times[name] = median_us(run, rounds=5, seconds=0.02)
        except Exception as error:  # flex_attention needs a compiler that works here
            print(f"{name}: {str(error)[-300:]}", file=sys.stderr)
    return times


def measure(options, build, dims, kind, qkv, want):
    with tempfile.TemporaryDirectory() as folder:
        options.build = build
        try:
            us, norm, found = Lathe(options, folder).measure(lambda path: write(path, dims, kind), dims, qkv, want,
                                                            (*dims[:2], 16, dims[3]))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{build} {dims} {kind}: {error}", file=sys.stderr)
            return float("nan"), float("nan"), ""
        return us, norm / float(want.float().norm()), " ".join(found[0][1:3]) if found else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--before", type=pathlib.Path, help="another build, beside it")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--lengths", type=int, nargs="+", default=(2048, 4096, 8192))
    parser.add_argument("--sizes", type=int, nargs="+", default=(64, 128), help="of a head")
    parser.add_argument("--without-flex", action="store_true", help="flex_attention takes a minute to compile, for each row")
    parser.add_argument("--seconds", type=float, default=120, help="limit of each build and run")
    options = parser.parse_args()
    options.all_configurations = None
    torch.manual_seed(1)
    builds = [options.build] + ([options.before] if options.before else [])
    print(f"{torch.cuda.get_device_name()}, float16, microseconds\n\n| bias | tokens | head | flex | mask | before | Lathe | error | kernel |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in options.sizes:
        for length in options.lengths:
            dims = dims_of(length, size)
            qkv = [torch.randn(dims, device="cuda", dtype=torch.float16) for _ in range(3)]
            for kind in options.kinds:
                row = row_of(kind, dims[1], length)
                mask = mask_of(row, length, kind)
                with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
                    want = F.scaled_dot_product_attention(*(x.float() for x in qkv), attn_mask=mask).half()
                found = [measure(options, build, dims, kind, qkv, want) for build in builds]
                peers = torch_us(qkv, kind, row, mask, not options.without_flex)
                us = [peers.get("flex", float("nan")), peers.get("mask", float("nan")), found[1][0] if len(found) > 1 else float("nan"), found[0][0]]
                print(f"| {kind} | {length} | {size} | " + " | ".join(f"{each:.1f}" for each in us) +
                      f" | {found[0][1]:.1e} | {found[0][2]} |", flush=True)
                del mask, want


if __name__ == "__main__":
    main()
