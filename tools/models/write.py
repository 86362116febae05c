#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a well-known network as an ONNX file with seeded random weights, as one of two exporters would have written it.

  python tools/models/write.py resnet50 --dialect torchscript --batch 1 --out data/resnet50.onnx
"""
import argparse
import pathlib
import sys

import onnx

from dynamo import Dynamo
from networks import NETWORKS
from torchscript import TorchScript
from weights import fill

DIALECTS = {"torchscript": TorchScript, "dynamo": Dynamo}


def build(network, dialect="torchscript", batch=1, opset=None, seed=1, batch_norm=None, functions=False):
    """The weightless model: every trained tensor is a rule. weights.fill() gives it data."""
    kind = DIALECTS[dialect]
    low, high = kind.OPSETS
    opset = opset or (17 if dialect == "torchscript" else 18)
    if not low <= opset <= high:
        raise ValueError(f"the {dialect} dialect writes opsets {low} to {high}, not {opset}")
    keep = kind.KEEPS_BATCH_NORM if batch_norm is None else batch_norm == "keep"
    extra = {"functions": functions} if kind is Dynamo else {}
    graph = kind("main_graph", opset, batch, seed, keep, **extra)
    NETWORKS[network](graph)
    return graph.to_model()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default="torchscript")
    parser.add_argument("--batch", default="1", help="a number, or 'dynamic' for a symbolic first dimension")
    parser.add_argument("--opset", type=int, help="torchscript 13-17 (17), dynamo 18-27 (18)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bn", choices=("keep", "fold"), help="batch normalisation; each dialect has its own custom")
    parser.add_argument("--functions", action="store_true", help="dynamo only: activations as model-local functions")
    parser.add_argument("--weightless", action="store_true", help="write the rules only, no weight data")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    batch = "batch" if arguments.batch == "dynamic" else int(arguments.batch)
    try:
        model = build(arguments.network, arguments.dialect, batch, arguments.opset, arguments.seed, arguments.bn,
                      arguments.functions)
    except ValueError as error:
        sys.exit(f"write.py: {error}")
    if not arguments.weightless:
        fill(model)
        onnx.checker.check_model(model, full_check=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, arguments.out)
    print(f"{arguments.out}: {len(model.graph.node)} nodes, opset {model.opset_import[0].version}, "
          f"{arguments.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
