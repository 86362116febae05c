# SPDX-License-Identifier: Apache-2.0
"""Networks with attention whose parts libraries have: transformers' and torchvision's own classes with random weights, and
a block of Stable Diffusion 1.5's UNet and a layer of Mixtral's kind as plain modules. Each function gives a module and a
batch of inputs."""
import torch
import torch.nn.functional as F
from torch import nn


class First(nn.Module):
    """What a model of transformers calls its result, alone."""

    def __init__(self, model, *results):
        super().__init__()
        self.model, self.results = model, results

    def forward(self, *inputs):
        found = self.model(*inputs, return_dict=True)
        return tuple(getattr(found, name) for name in self.results) if len(self.results) > 1 else found[self.results[0]]


def t5_small_encoder(batch, length=512):
    from transformers import T5Config, T5EncoderModel
    config = T5Config(vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8)
    return First(T5EncoderModel(config), "last_hidden_state"), (torch.randint(1, 32128, (batch, length)),)


def whisper_tiny_encoder(batch):
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, num_mel_bins=80)
    return First(WhisperEncoder(config), "last_hidden_state"), (torch.randn(batch, 80, 3000),)


class Clip(nn.Module):
    """Both towers of ViT-B/32."""

    def __init__(self):
        super().__init__()
        from transformers import CLIPConfig, CLIPModel
        self.model = CLIPModel(CLIPConfig())

    def forward(self, text, image):
        found = self.model(input_ids=text, pixel_values=image, return_dict=True)
        return found.text_embeds, found.image_embeds


def clip_vit_b_32(batch, length=77):
    text = torch.randint(1, 49000, (batch, length))
    text[:, -1] = 49407  # the end, whose row is the text's
    return Clip(), (text, torch.randn(batch, 3, 224, 224))


class Attention(nn.Module):
    def __init__(self, width, context, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(size, width, bias=False) for size in (width, context, context))
        self.out = nn.Linear(width, width)

    def forward(self, x, context):
        batch, length, width = x.shape
        q, k, v = (y.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)
                   for y in (self.q(x), self.k(context), self.v(context)))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class UnetBlock(nn.Module):
    """A residual block and a spatial transformer: attention of 64 x 64 places to each other, and to 77 words."""

    def __init__(self, width=320, context=768, heads=8, time=1280):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, width), nn.Conv2d(width, width, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, width), nn.Conv2d(width, width, 3, padding=1)
        self.time = nn.Linear(time, width)
        self.norm, self.into, self.out = nn.GroupNorm(32, width, 1e-6), nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = Attention(width, width, heads), Attention(width, context, heads)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x, time, context):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        x = x + self.conv2(F.silu(self.norm2(h)))
        batch, width, rows, columns = x.shape
        y = self.into(self.norm(x)).flatten(2).transpose(1, 2)
        n = self.norms[0](y)
        y = y + self.own(n, n)
        y = y + self.cross(self.norms[1](y), context)
        value, gate = self.up(self.norms[2](y)).chunk(2, -1)
        y = y + self.down(value * F.gelu(gate))
        return x + self.out(y.transpose(1, 2).reshape(batch, width, rows, columns))


def sd15_unet_block(batch):
    return UnetBlock(), (torch.randn(batch, 320, 64, 64), torch.randn(batch, 1280), torch.randn(batch, 77, 768))


class Experts(nn.Module):
    """Two of eight for each token. All are computed, and the others weigh nothing: so the shapes do not depend on the data,
    and a CUDA graph can hold it. Lathe computes the two."""

    def __init__(self, width, hidden, experts=8, chosen=2):
        super().__init__()
        self.chosen, self.gate = chosen, nn.Linear(width, experts, bias=False)
        self.w1, self.w3 = (nn.Parameter(torch.randn(experts, width, hidden) * width**-0.5) for _ in range(2))
        self.w2 = nn.Parameter(torch.randn(experts, hidden, width) * hidden**-0.5)

    def forward(self, x):
        scores = self.gate(x)
        best, places = scores.topk(self.chosen, -1)
        weights = torch.zeros_like(scores).scatter(-1, places, best.softmax(-1))
        y = (F.silu(x @ self.w1) * (x @ self.w3)) @ self.w2
        return (y * weights.t()[:, :, None]).sum(0)


class MixtralLayer(nn.Module):
    def __init__(self, layer, width, hidden):
        super().__init__()
        self.layer, self.experts = layer, Experts(width, hidden)
        del layer.perceptron

    def forward(self, x):
        layer = self.layer
        x = x + layer.attention(layer.norm1(x))
        return x + self.experts(layer.norm2(x).flatten(0, 1)).view(x.shape)


def mixtral_like_layer(batch):
    import attention_networks as own
    sizes = own.Sizes(1, 1024, 16, 3584, 512, causal=True, shared_heads=4)
    return MixtralLayer(own.Block(sizes), sizes.width, sizes.hidden), (torch.randn(batch, sizes.length, sizes.width),)


def mixtral_like_token(batch):
    """The experts alone, of one token for each of the batch, as a decoder's step has them."""
    return Experts(1024, 3584), (torch.randn(batch, 1024),)


def swin_t(batch):
    from torchvision.models import swin_t as make_swin
    return make_swin(), (torch.randn(batch, 3, 224, 224),)


def convnext_tiny(batch):
    from torchvision.models import convnext_tiny as make_convnext
    return make_convnext(), (torch.randn(batch, 3, 224, 224),)


NETWORKS = {make.__name__: make for make in
            (t5_small_encoder, whisper_tiny_encoder, clip_vit_b_32, sd15_unet_block, mixtral_like_layer, mixtral_like_token,
             swin_t, convnext_tiny)}
