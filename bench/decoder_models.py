#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a llama of two layers with its past as inputs, as exporters write it: keys and values that grow, and caches of
fixed length; masks of -inf by the older exporter, of finite numbers by the newer one and by eager attention.

Run with a Python that has PyTorch and transformers (tools/exports/requirements.txt)."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools/exports"))
import export  # noqa: E402
import models  # noqa: E402

SIZES = dict(hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816,
             vocab_size=1000, max_position_embeddings=2048)


def past(length):
    return models.past(4, length).replace(",16]", ",64]")


def exports():
    """[(name, row of models.py, by the newer exporter)]"""
    for name, eager, dynamo in (("appended", False, False), ("appended_dynamo", False, True), ("appended_eager", True, False),
                                ("written", False, False), ("written_dynamo", False, True)):
        options = SIZES | (dict(attn_implementation="eager") if eager else {})
        llama = models.transformers("LlamaForCausalLM", "LlamaConfig", **options)
        if name.startswith("appended"):
            yield name, models.Model(name, models.with_past("Appending", llama), models.APPENDED + past("p"), "2,3,7,4"), dynamo
        else:
            yield name, models.Model(name, models.with_past("Writing", llama, 2048), models.WRITTEN + past("2048"), "2,3,4"), dynamo


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, model, dynamo in exports():
        inputs = export.make_inputs(model, export.size_sets(model, model.sizes)[0], 0)
        module = export.Exported(model.make().eval(), list(inputs)).eval()
        export.write_onnx(module, inputs, folder / f"{name}.onnx", dynamo, export.open_axes(model))
        print(folder / f"{name}.onnx", flush=True)


if __name__ == "__main__":
    main()
