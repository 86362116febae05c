# SPDX-License-Identifier: Apache-2.0
"""Decoders whose keys and values of earlier tokens are inputs and outputs: tensors in, tensors out, as exporters want them."""
import importlib

import torch


def logits_of(result):
    return result.logits if hasattr(result, "logits") else result.last_hidden_state


def states_of(cache):
    """Keys and values of each layer in turn."""
    return [state for layer in cache.layers for state in (layer.keys, layer.values)]


def pairs(states):
    return list(zip(states[::2], states[1::2]))


class Appending(torch.nn.Module):
    """Past keys and values, which new ones are appended to: what Optimum writes."""

    def __init__(self, model):
        super().__init__()
        self.model, self.cache = model, importlib.import_module("transformers").DynamicCache

    def forward(self, input_ids, attention_mask, position_ids, *past):
        cache = self.cache(pairs(past))
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                            past_key_values=cache, use_cache=True)
        return logits_of(result), *states_of(cache)


LOWEST = torch.finfo(torch.float32).min


class Summed(Appending):
    """Masks as transformers made them before 4.36: a triangle behind zeros for the past, to which that of padding is added."""

    def forward(self, input_ids, attention_mask, position_ids, *past):
        count = input_ids.shape[1]
        places = torch.arange(count)
        triangle = torch.full((count, count), LOWEST).masked_fill(places < (places + 1).view(count, 1), 0)
        triangle = torch.cat([torch.zeros(count, past[0].shape[2]), triangle], dim=-1)
        hidden = 1 - attention_mask[:, None, None, :].to(torch.float32)
        mask = hidden.masked_fill(hidden.to(torch.bool), LOWEST) + triangle[None, None]
        return super().forward(input_ids, mask, position_ids, *past)


class Filled(Appending):
    """Masks as transformers made them from 4.38 on: a triangle times what comes later, filled where there is padding."""

    def forward(self, input_ids, attention_mask, position_ids, *past):
        count, total = input_ids.shape[1], past[0].shape[2] + input_ids.shape[1]
        mask = torch.triu(torch.full((count, total), LOWEST), diagonal=1)
        mask = mask * (torch.arange(total) > (torch.arange(count) + past[0].shape[2]).reshape(-1, 1))
        mask = mask[None, None].expand(input_ids.shape[0], 1, -1, -1).clone()
        padding = mask[..., :total] + attention_mask[:, None, None, :] == 0
        mask[..., :total] = mask[..., :total].masked_fill(padding, LOWEST)
        return super().forward(input_ids, mask, position_ids, *past)


class Writing(torch.nn.Module):
    """Caches of fixed length, into which new keys and values are written from a position on."""

    def __init__(self, model, length):
        super().__init__()
        transformers = importlib.import_module("transformers")
        self.model, self.length, self.cache = model, length, transformers.StaticCache
        self.layer = transformers.cache_utils.StaticLayer

    def forward(self, input_ids, cache_position, *past):
        cache = self.cache(self.model.config, max_cache_len=self.length)
        # Layers of windows decide by numbers that a trace would keep: transformers' own exports replace them, too.
        cache.layers = [self.layer(self.length) for _ in cache.layers]
        for layer, (keys, values) in zip(cache.layers, pairs(past)):
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys.clone(), values.clone()
            layer.cumulative_length = cache_position[0].clone()
        result = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        return logits_of(result), *states_of(cache)


class AppendingDecoder(torch.nn.Module):
    """The decoder beside an encoder: its own past grows, keys and values of what the encoder has read stay."""

    def __init__(self, model, masked):
        super().__init__()
        transformers = importlib.import_module("transformers")
        self.model, self.masked = model, masked
        self.cache, self.both = transformers.DynamicCache, transformers.EncoderDecoderCache

    def forward(self, decoder_input_ids, encoder_hidden_states, *more):
        mask, past = ({"attention_mask": more[0]}, more[1:]) if self.masked else ({}, more)
        count = len(past) // 2
        own = self.cache(pairs(past[:count]))
        cache = self.both(own, self.cache(pairs(past[count:])))
        result = self.model(decoder_input_ids=decoder_input_ids, encoder_outputs=(encoder_hidden_states,),
                            past_key_values=cache, use_cache=True, **mask)
        return logits_of(result), *states_of(own)
