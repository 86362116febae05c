#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small decoder, byte by byte, on the King James Bible, which the Python package pybible holds, and writes its
weights. Needs PyTorch; takes some minutes on two cores."""
import argparse
import dataclasses
import math
import time

import numpy as np
import torch
import torch.nn.functional as F

import decoder

SHAPE = decoder.Shape(layers=4, width=128, heads=4, key_heads=2, hidden=352, context=512)
BATCH, WARM_UP = 4, 50
LENGTH = SHAPE.context  # letters behind what it has been trained on would be nonsense


def text():
    """Each verse on a line, without its number."""
    from pybible.Bible import Bible
    return "\n".join(verse.split(" ", 1)[1] for verse in Bible).encode("ascii", "ignore")


def initial_weights(shape):
    random = decoder.random_weights(shape, seed=1)
    scale = {"embedding": 0.02 * math.sqrt(shape.vocabulary)}
    return {name: torch.tensor(array * scale.get(name, 1), requires_grad=True) for name, array in random.items()}


def rotate(x, cosines, sines):
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cosines - high * sines, low * sines + high * cosines], dim=-1)


def logits(weights, shape, tokens):
    """What the network of decoder.py gives for each position, its caches empty."""
    batch, length = tokens.shape
    cosines, sines = (torch.from_numpy(table[:length]) for table in decoder.rotations(shape))

    def normal(x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weights[name]

    def heads(x, count):
        return x.view(batch, length, count, shape.size).transpose(1, 2)
    x = weights["embedding"][tokens]
    for layer in range(shape.layers):
        def weight(name):
            return weights[f"{layer}.{name}"]
        n = normal(x, f"{layer}.attention_norm")
        query = rotate(heads(n @ weight("query"), shape.heads), cosines, sines)
        key = rotate(heads(n @ weight("key"), shape.key_heads), cosines, sines)
        value = heads(n @ weight("value"), shape.key_heads)
        attention = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        x = x + attention.transpose(1, 2).reshape(batch, length, shape.width) @ weight("output")
        n = normal(x, f"{layer}.hidden_norm")
        x = x + (F.silu(n @ weight("gate")) * (n @ weight("up"))) @ weight("down")
    return normal(x, "norm") @ weights["head"]


def train(shape, data, minutes, rate=3e-3):
    weights = initial_weights(shape)
    optimizer = torch.optim.AdamW(weights.values(), lr=rate, betas=(0.9, 0.98), weight_decay=0.05)
    random = np.random.default_rng(0)
    start = told = time.monotonic()
    steps, mean = 0, None
    while (passed := (time.monotonic() - start) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate * min((steps + 1) / WARM_UP, 0.05 + 0.95 * math.cos(passed * math.pi / 2) ** 2)
        places = random.integers(0, len(data) - LENGTH - 1, BATCH)
        window = torch.from_numpy(data[places[:, None] + np.arange(LENGTH + 1)].astype(np.int64))
        loss = F.cross_entropy(logits(weights, shape, window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimizer.step()
        steps += 1
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        if time.monotonic() - told > 10:
            told = time.monotonic()
            left = (1 - passed) * minutes
            print(f"step {steps}: {mean / math.log(2):.2f} bits a letter, {left:.1f} minutes left", flush=True)
    return weights


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="the .npz file to write")
    parser.add_argument("--minutes", type=float, default=8, help="how long to train (8)")
    options = parser.parse_args()
    data = np.frombuffer(text(), np.uint8)
    weights = train(SHAPE, data, options.minutes)
    arrays = {name: tensor.detach().numpy() for name, tensor in weights.items()}
    np.savez(options.file, shape=np.array(dataclasses.astuple(SHAPE)), **arrays)


if __name__ == "__main__":
    main()
