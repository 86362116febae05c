#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the plans of this version that every later one runs: tests/compat/archive/<version>/<network>.<device>.plan, with inputs
and what they give in <network>.npz, by ONNX's reference evaluation. Networks are small, and have every kind of kernel between
them. Run once for each release, before it: `LATHE_BUILD_DIR=build .venv/bin/python tests/compat/make_archive.py`. What is there is
never made again.

  make_archive.py --runtime BUILD    adds two plans with the runtime of a release, of which BUILD has a build (releases.py)

All plans of a release hold the same runtime, which is what such a plan mostly is, so the archive has it once, and the plans as
far as it: <network>.<device>.held and lean_runtime, one behind the other, are a plan. It is that of the oldest release whose
plans run alone, and goes when that is raised. So that it runs on any CPU, BUILD is configured with
-DLATHE_CPU_KERNELS=native -DLATHE_CPU_HAS_avx2=OFF -DLATHE_CPU_HAS_avx512=OFF."""
import argparse
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "tests/compat/archive"
RUNTIME = "lean_runtime"  # the section's name, too
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Network:
    """Nodes in order; weights and inputs are named as they are asked for."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.opset = 17
        self.nodes, self.weights, self.inputs, self.given, self.outputs = [], [], [], {}, []

    def input(self, name, shape, dims=None, values=None):
        self.given[name] = self.random.standard_normal(shape).astype(np.float32) if values is None else values
        self.inputs.append(helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(self.given[name].dtype), shape if dims is None else dims))
        return name

    def weight(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def numbers(self, *shape):
        return self.weight((self.random.standard_normal(shape) * 0.5).astype(np.float32))

    def ints(self, *values):
        return self.weight(np.array(values, np.int64))

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, tensor, kind=FLOAT):
        self.outputs.append(helper.make_tensor_value_info(tensor, kind, None))

    def model(self):
        graph = helper.make_graph(self.nodes, "network", self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def convolutions(n):
    x = n.input("x", [2, 4, 9, 9], ["n", 4, 9, 9])
    x = n.op("Relu", n.op("Conv", x, n.numbers(8, 4, 3, 3), n.numbers(8), pads=[1, 1, 1, 1]))
    x = n.op("Add", x, n.op("Conv", x, n.numbers(8, 1, 3, 3), group=8, pads=[1, 1, 1, 1]))
    x = n.op("Concat", n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]),
             n.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    x = n.op("ConvTranspose", x, n.numbers(16, 3, 2, 2), strides=[2, 2])
    n.output(n.op("Sigmoid", x))
    n.output(n.op("GlobalAveragePool", x))


def products(n):
    x = n.input("x", [3, 5, 16], ["n", 5, 16])
    x = n.op("Add", n.op("MatMul", x, n.numbers(16, 16)), n.numbers(16))
    x = n.op("LayerNormalization", x, n.numbers(16), n.numbers(16), axis=-1)
    scores = n.op("MatMul", x, n.op("Transpose", x, perm=[0, 2, 1]))
    x = n.op("MatMul", n.op("Softmax", n.op("Mul", scores, n.weight(np.float32(0.25))), axis=-1), x)
    n.output(x)
    n.output(n.op("ReduceMean", n.op("Gemm", n.op("Reshape", x, n.ints(-1, 16)), n.numbers(16, 7), n.numbers(7)), axes=[1]))


def movements(n):
    x = n.input("x", [2, 4, 6, 6], ["n", 4, 6, 6])
    y = n.op("Pad", n.op("Slice", x, n.ints(1), n.ints(6), n.ints(3), n.ints(2)), n.ints(0, 0, 1, 0, 0, 0, 0, 2))
    y = n.op("Transpose", y, perm=[0, 2, 3, 1])
    n.output(n.op("Tanh", y))
    n.output(n.op("Resize", x, "", n.weight(np.array([1, 1, 2, 2], np.float32)), mode="linear"))
    n.output(n.op("DepthToSpace", x, blocksize=2))
    n.output(n.op("Tile", n.op("ReduceMax", x, axes=[2, 3], keepdims=0), n.ints(1, 3)))


def indices(n):
    x = n.input("x", [5, 8], ["n", 8])
    i = n.input("i", [4], values=np.array([3, 0, 2, -1], np.int64))
    n.output(n.op("Gather", x, i, axis=1))
    values, places = n.op("TopK", x, n.ints(3), outputs=2)
    n.output(values)
    n.output(n.op("CumSum", x, n.weight(np.int64(1))))
    n.output(n.op("GatherElements", x, places, axis=1))
    n.output(n.op("ArgMax", x, axis=1), INT64)
    n.output(n.op("Where", n.op("Greater", x, n.weight(np.float32(0))), x, n.op("Exp", x)))
    n.output(n.op("NonZero", n.op("Relu", x)), INT64)


def recurrences(n):
    x = n.input("x", [6, 2, 4])
    y = n.op("LSTM", x, n.numbers(1, 20, 4), n.numbers(1, 20, 5), n.numbers(1, 40), outputs=3, hidden_size=5)
    n.output(y[0])
    n.output(n.op("GRU", x, n.numbers(1, 9, 4), n.numbers(1, 9, 3), n.numbers(1, 18), outputs=2, hidden_size=3)[1])


def quantised(n):
    n.opset = 19
    x = n.input("x", [2, 3, 8, 8], ["n", 3, 8, 8])
    scale, zero = n.weight(np.float32(0.03)), n.weight(np.int8(0))
    x = n.op("DequantizeLinear", n.op("QuantizeLinear", x, scale, zero), scale, zero)
    weights = n.weight(n.random.integers(-90, 90, (4, 3, 3, 3)).astype(np.int8))
    w = n.op("DequantizeLinear", weights, n.weight(np.float32(0.01)), zero)
    n.output(n.op("Relu", n.op("Conv", x, w, n.numbers(4))))


def control(n):
    x = n.input("x", [3, 4])
    trips = n.input("trips", [], values=np.array(3, np.int64))
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["v", "v"], ["twice"]),
         helper.make_node("ReduceSum", ["twice"], ["sum"], keepdims=0)], "body",
        [helper.make_tensor_value_info("round", INT64, []), helper.make_tensor_value_info("go", BOOL, []),
         helper.make_tensor_value_info("v", FLOAT, [3, 4])],
        [helper.make_tensor_value_info("on", BOOL, []), helper.make_tensor_value_info("twice", FLOAT, [3, 4]),
         helper.make_tensor_value_info("sum", FLOAT, [])])
    for tensor in n.op("Loop", trips, n.weight(np.array(True)), x, outputs=2, body=body):
        n.output(tensor)


NETWORKS = [convolutions, products, movements, indices, recurrences, quantised, control]
# Code for the stand-in of a GPU is as large as a program: two networks of it are enough.
DEVICES = {"cpu": ("cpu-x86_64", NETWORKS), "cuda": ("cuda-sm_90", [convolutions, products])}


def shapes_of(given):
    return ",".join(f"{name}:{'x'.join(map(str, values.shape))}" for name, values in given.items() if values.ndim)


def shape_options(n):
    if not any(d.dim_param for i in n.inputs for d in i.type.tensor_type.shape.dim):
        return []
    return [f"--{which}Shapes={shapes_of(n.given)}" for which in ("min", "opt", "max")]


def networks():
    """Name, network and what the reference evaluation gives of each, always the same."""
    for seed, network in enumerate(NETWORKS):
        n = Network(seed)
        network(n)
        yield network, n, ReferenceEvaluator(n.model()).run(None, n.given)


def stand_in_for_gpu(build):
    """Variables of processes that are to use it."""
    return {"LATHE_CUDA_DRIVER": str(build / "fake_cuda/libfake_cuda_driver.so"), "LATHE_NVRTC": str(build / "fake_cuda/libnvrtc.so")}


def build_plan(build, model, n, device, plan, *options, stands_in=True):
    """Has the programs of the folder `build` make a version-compatible plan for a device of DEVICES; without a GPU, where one stands in."""
    with tempfile.TemporaryDirectory() as cache:
        subprocess.run([build / "bin/lathe", "build", model, "-o", plan, "--buildBudget=0", f"--target={DEVICES[device][0]}", "--noTF32",
                        *shape_options(n), *options], check=True, stdout=subprocess.DEVNULL,
                       env=os.environ | {"LATHE_CACHE_DIR": cache, **(stand_in_for_gpu(build) if stands_in and device == "cuda" else {})})


def make(build, folder):
    for network, n, results in networks():
        with tempfile.TemporaryDirectory() as there:
            onnx.save(n.model(), f"{there}/model.onnx")
            for device, (_, chosen) in DEVICES.items():
                if network in chosen:
                    build_plan(build, f"{there}/model.onnx", n, device, folder / f"{network.__name__}.{device}.plan",
                               "--versionCompatible", "--excludeLeanRuntime")
        np.savez_compressed(folder / f"{network.__name__}.npz", **{f"in:{name}": values for name, values in n.given.items()},
                            **{f"out:{info.name}": np.asarray(values) for info, values in zip(n.outputs, results)})


def split_at_runtime(plan):
    """What a plan has before the runtime, which is its last section, and that."""
    entry = plan.index(RUNTIME.encode() + bytes(1))  # in the table of sections
    offset, size = struct.unpack_from("<2Q", plan, entry + 40)
    assert offset + size == len(plan)
    return plan[:offset], plan[offset:]


def add_runtime(build, folder):
    for device in DEVICES:
        n = Network(NETWORKS.index(products))
        products(n)
        with tempfile.TemporaryDirectory() as there:
            onnx.save(n.model(), f"{there}/model.onnx")
            build_plan(build, f"{there}/model.onnx", n, device, f"{there}/plan", "--versionCompatible")
            head, runtime = split_at_runtime(pathlib.Path(f"{there}/plan").read_bytes())
        (folder / f"products.{device}.held").write_bytes(head)
        (folder / RUNTIME).write_bytes(runtime)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", type=pathlib.Path, metavar="BUILD")
    runtime = parser.parse_args().runtime
    build = (runtime or pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build"))).resolve()
    version = subprocess.run([build / "bin/lathe", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    folder = ARCHIVE / version
    if (folder / RUNTIME if runtime else folder).exists():
        sys.exit(f"{folder} is there, and stays as it is")
    folder.mkdir(parents=True, exist_ok=True)
    (add_runtime if runtime else make)(build, folder)


if __name__ == "__main__":
    main()
