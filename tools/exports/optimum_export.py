# SPDX-License-Identifier: Apache-2.0
"""Exports one architecture of transformers with Optimum, with PyTorch's results at each set of sizes beside it."""
import contextlib
import re
import shutil
import zlib

import torch
import transformers
from optimum.exporters.onnx import onnx_export_from_model

from cases import admits, declared, make_inputs, size_sets, write_case
from export import randomise
from past_modules import pairs

LIBRARIES = ("optimum.exporters.onnx", "onnxruntime")
PACKAGES = ("optimum", "optimum-onnx", "transformers", "torch", "onnx", "onnxruntime")
# The level of Optimum's optimiser, which is ONNX Runtime's: O2 writes the operators of its own domain.
VARIANTS = {"optimum": None, "optimum-O2": "O2"}


class Tensors:
    """What an exported file computes, by the model itself: arrays by name in, the named results out."""

    def __init__(self, model, outputs):
        self.model, self.outputs = model, outputs

    def __call__(self, arrays):
        given = {name: torch.from_numpy(array) for name, array in arrays.items()}
        past = {name: given.pop(name) for name in list(given) if name.startswith("past_key_values.")}
        if not given.pop("use_cache_branch", True):
            past = {}  # of a merged decoder that is called for the first time
        call = self.model
        if "encoder_hidden_states" in given or any(".encoder." in name for name in past):
            given = self.beside_an_encoder(given, past)
        elif past:
            given["past_key_values"] = cache_of(past, "")
        elif self.outputs == ["last_hidden_state"] and self.model.config.is_encoder_decoder:
            call = self.model.get_encoder()
            call.config.use_cache = False  # T5 hands its own on, which its encoder refuses
        with torch.no_grad():
            result = call(**given)
        return [self.pick(result, name).numpy() for name in self.outputs]

    def beside_an_encoder(self, given, past):
        length = next((tensor.shape[2] for name, tensor in past.items() if ".encoder." in name), None)
        hidden = given.get("encoder_hidden_states")
        if hidden is None:  # what the encoder made is in the past; only how long it is counts
            hidden = torch.zeros(given["input_ids"].shape[0], length, self.model.config.d_model)
        names = {"input_ids": "decoder_input_ids", "encoder_attention_mask": "attention_mask"}
        call = {names.get(name, name): tensor for name, tensor in given.items() if name != "encoder_hidden_states"}
        cache = transformers.EncoderDecoderCache(cache_of(past, "decoder."), cache_of(past, "encoder."))
        return call | {"encoder_outputs": (hidden,), "past_key_values": cache, "use_cache": True}

    @staticmethod
    def pick(result, name):
        found = re.fullmatch(r"present\.(\d+)\.((?:en|de)coder\.)?(key|value)", name)
        if not found:
            return result[name]
        layer, owner, what = found.groups()
        cache = result["past_key_values"]
        if owner:
            cache = cache.cross_attention_cache if owner == "encoder." else cache.self_attention_cache
        return getattr(cache.layers[int(layer)], what + "s")


def cache_of(past, owner):
    cache = transformers.DynamicCache()
    states = [tensor for name, tensor in past.items() if owner in name]
    for layer, (keys, values) in enumerate(pairs(states)):
        cache.update(keys, values, layer)
    return cache


def write_onnx(model, checkpoint, level, folder):
    with contextlib.redirect_stderr(None):  # bars and warnings
        onnx_export_from_model(model, folder / "optimum", task=checkpoint.task, optimize=level, do_validation=False)
    shutil.move(folder / "optimum" / checkpoint.file, folder / "model.onnx")
    shutil.rmtree(folder / "optimum")


def export(model, variant, folder):
    """Exports into the folder and returns what case.json says."""
    torch.manual_seed(zlib.crc32(model.name.encode()))
    torch.set_num_threads(1)
    checkpoint, sets = model.make(), size_sets(model, model.sizes)
    module = checkpoint.module().eval()
    randomise(module, [torch.from_numpy(array) for array in make_inputs(model, sets[-1], 0).values()])
    write_onnx(module, checkpoint, VARIANTS[variant], folder)
    inputs, outputs = declared(folder / "model.onnx")
    function, given, results, before = Tensors(module, outputs), {}, [], None
    for index, sizes in enumerate(sets):
        arrays = make_inputs(model, sizes, index, before)
        arrays = {name: arrays[name] for name in inputs}
        if admits(inputs, arrays):
            before = function(arrays)
            given[index] = arrays
            results.append(before)
    unknown = [None] * len(given)
    return write_case(model, variant, folder, sets, given, results, [0.0] * len(given), unknown)
