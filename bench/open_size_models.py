#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the networks that bench/open_sizes.py measures, with open batch, length or image size and random weights.

Run with a Python that has PyTorch, timm and transformers (tools/exports/requirements.txt)."""
import argparse
import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools/exports"))
from plain_modules import Vae  # noqa: E402

BATCH = {0: "batch"}
TOKENS = {0: "batch", 1: "length"}
IMAGE = {0: "batch", 2: "height", 3: "width"}


class Output(torch.nn.Module):
    """One result of a model of transformers, from named inputs."""

    def __init__(self, model, names, field):
        super().__init__()
        self.model, self.names, self.field = model, names, field

    def forward(self, *tensors):
        return getattr(self.model(**dict(zip(self.names, tensors))), self.field)


def t5(encoder_only):
    import transformers
    config = transformers.T5Config(vocab_size=8192, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8,
                                   use_cache=False)
    if encoder_only:
        return Output(transformers.T5EncoderModel(config), ["input_ids", "attention_mask"], "last_hidden_state")
    names = ["input_ids", "attention_mask", "decoder_input_ids"]
    return Output(transformers.T5ForConditionalGeneration(config), names, "logits")


def roberta():
    import transformers
    config = transformers.RobertaConfig(vocab_size=8192, num_hidden_layers=6)
    return Output(transformers.RobertaModel(config, add_pooling_layer=False), ["input_ids", "attention_mask"],
                  "last_hidden_state")


def segformer():
    import transformers
    return Output(transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig(num_labels=19)),
                  ["pixel_values"], "logits")


def timm(name):
    import timm as library
    return library.create_model(name)


def tokens():
    return torch.randint(1, 1000, (2, 16))


def pixels(side):
    return torch.randn(2, 3, side, side)


# name: module, inputs {name: (example, open dimensions)}
MODELS = {
    "t5_encoder": (lambda: t5(True), {"ids": (tokens, TOKENS), "mask": (tokens, TOKENS)}),
    "t5": (lambda: t5(False), {"ids": (tokens, TOKENS), "mask": (tokens, TOKENS),
                               "targets": (tokens, {0: "batch", 1: "target"})}),
    "roberta": (roberta, {"ids": (tokens, TOKENS), "mask": (tokens, TOKENS)}),
    "vae": (lambda: Vae(64), {"x": (lambda: pixels(64), IMAGE)}),
    "deit_tiny": (lambda: timm("deit_tiny_patch16_224"), {"x": (lambda: pixels(224), BATCH)}),
    "convnext_tiny": (lambda: timm("convnext_tiny"), {"x": (lambda: pixels(224), IMAGE)}),
    "segformer": (segformer, {"x": (lambda: pixels(224), IMAGE)}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where NAME.onnx go")
    parser.add_argument("--networks", nargs="+", default=list(MODELS), choices=MODELS)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    for name in arguments.networks:
        make, inputs = MODELS[name]
        torch.manual_seed(0)
        with torch.no_grad():
            torch.onnx.export(make().eval(), tuple(example() for example, _ in inputs.values()),
                              str(arguments.folder / f"{name}.onnx"), input_names=list(inputs), output_names=["y"],
                              dynamic_axes={key: axes for key, (_, axes) in inputs.items()}, opset_version=17,
                              dynamo=False)
        print(name, flush=True)


if __name__ == "__main__":
    main()
