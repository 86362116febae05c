# SPDX-License-Identifier: Apache-2.0
"""The architectures that are exported, as a table. A row says how the module is made (weights are random), what its
inputs are and which sizes it runs with.

Inputs: "name:type[dimensions]rule ..."; a dimension is a number or the name of an open size. A rule is <K (integers below
K), =ones or =mask (ones, then zeros where a row of the batch is padded), =left (row i is padded by i zeros on the left),
=from_P (counts up from the size P) or =outK (what output K was at the set before; zeros at the first); without one, values
are normal.
Sizes: three or more sets of values for the open sizes, in the order of their first mention. A model is traced with the
first set, as batch 1 is what users trace with; the dynamo exporter, which takes 1 for a constant, with the second; both
with `traced` where that is given, and of fixed sizes with the last set then.
"""
import importlib
from typing import Callable, NamedTuple

IMAGE = "image:f32[n,3,h,w]"
BATCH_OF_224 = "image:f32[n,3,224,224]"
SMALL, MIDDLE = "1,64,64 2,96,64 3,64,128", "1,96,96 2,128,96 3,96,160"
BATCHES = "1 2 3"
TOKENS = "input_ids:i64[n,s]<100 attention_mask:i64[n,s]=mask"
LENGTHS = "1,7 2,16 3,33"


class Model(NamedTuple):
    name: str
    make: Callable
    inputs: str
    sizes: str
    emulated: bool = False  # small enough for the GPU that is emulated
    tolerance: float = 1e-4  # of the largest value, in float32
    attentions: str = ""  # that become the op: "2", or "2 dynamo-open=1" where an export has another number
    shared: int = 0  # heads of keys and values in each of them, where they serve several of the queries
    causal: str = ""  # those of them whose later keys are left to the kernel
    windows: str = ""  # those whose keys that are far away are left to the kernel, too: none where a fixed length is within
    distances: str = ""  # those that add numbers by the distance of a key from a query, of which they have a row
    rotations: str = ""  # values that are turned by their positions, in pairs
    norms: str = ""  # layer, RMS, group and instance normalisations that become ops
    experts: str = ""  # products of rows by their experts' matrices
    caches: str = ""  # past keys and values that are updated in place, or copied once to be appended to
    traced: str = ""  # a set of values that the open sizes are traced with


def torchvision(family, name, **options):
    """A function of torchvision.models or of a module of it; the backbone's weights too are not fetched."""
    def make():
        module = importlib.import_module(f"torchvision.models{'.' + family if family else ''}")
        if family in ("detection", "segmentation"):
            options.setdefault("weights_backbone", None)
        return getattr(module, name)(weights=None, **options)
    return make


def timm(name, **options):
    return lambda: importlib.import_module("timm").create_model(name, pretrained=False, **options)


def transformers(model, config, **options):
    """A model of the class `model` from the class `config` with these settings."""
    def make():
        module = importlib.import_module("transformers")
        settings = getattr(module, config)(**options)
        settings.use_cache = False
        return getattr(module, model)(settings)
    return make


def plain(name, *arguments):
    """A class or function of plain_modules; names of torch.nn stand for themselves."""
    def make():
        nn = importlib.import_module("torch.nn")
        return getattr(importlib.import_module("plain_modules"), name)(*(getattr(nn, each) for each in arguments))
    return make


def with_past(name, make, *arguments):
    """A class of past_modules around a model."""
    return lambda: getattr(importlib.import_module("past_modules"), name)(make(), *arguments)


def past(heads, length, owner="", first=1):
    """Keys and values of two layers with heads of 16, as Optimum calls them; outputs from `first` on are the next ones."""
    return " ".join(f"past_key_values.{i // 2}.{owner}{('key', 'value')[i % 2]}:f32[n,{heads},{length},16]"
                    + (f"=out{first + i}" if first else "") for i in range(4))


NARROW = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100)
DECODER = NARROW | dict(num_key_value_heads=2, max_position_embeddings=64)
VISION = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=64, patch_size=8)
T5 = dict(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=100)
TRANSLATION = dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                   encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=100, max_position_embeddings=64)
PAIRS = TOKENS + " decoder_input_ids:i64[n,t]<100"
PAIR_LENGTHS = "1,7,3 2,16,5 3,33,9"
WAVE = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, conv_dim=(32,) * 7,
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, vocab_size=32)
SOUND = "input_values:f32[n,t]"
PIXELS, PIXELS_64 = "pixel_values:f32[n,3,h,w]", "pixel_values:f32[n,3,64,64]"
SPEECH = dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
              encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=100, max_source_positions=50, pad_token_id=1,
              bos_token_id=2, eos_token_id=3, decoder_start_token_id=2, num_mel_bins=16)

# Decoders whose past is an input: name, class, configuration, heads of keys (0: they are not shared), settings.
CAUSAL = [
    ("llama", "LlamaForCausalLM", "LlamaConfig", 2, DECODER),
    ("llama_eager", "LlamaForCausalLM", "LlamaConfig", 2, DECODER | dict(attn_implementation="eager")),
    ("mistral", "MistralForCausalLM", "MistralConfig", 2, DECODER | dict(sliding_window=8)),
    ("qwen2", "Qwen2ForCausalLM", "Qwen2Config", 2, DECODER),
    ("qwen3", "Qwen3ForCausalLM", "Qwen3Config", 2, DECODER | dict(head_dim=16)),
    ("gemma", "GemmaForCausalLM", "GemmaConfig", 2, DECODER | dict(head_dim=16)),
    ("gpt2", "GPT2LMHeadModel", "GPT2Config", 0, dict(n_embd=64, n_layer=2, n_head=4, n_positions=64, vocab_size=100)),
    ("gpt_oss", "GptOssForCausalLM", "GptOssConfig", 2,
     DECODER | dict(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=8, experts_implementation="batched_mm")),
]
EAGER = ("llama_eager", "gpt_oss")  # they add masks, of which nobody has counted what becomes attributes
APPENDED = "input_ids:i64[n,s]<100 attention_mask:i64[n,t]=left position_ids:i64[n,s]=from_p "
APPENDING = "2,5,5,0 2,1,6,5 2,1,7,6 2,3,10,7"  # a prompt, two tokens, and three at once
WRITTEN, WRITING = "input_ids:i64[n,s]<100 cache_position:i64[s]=from_p ", "2,5,0 2,1,5 2,1,6 2,3,7"
BESIDE, DECODING = "decoder_input_ids:i64[n,s]<100 encoder_hidden_states:f32[n,e,64] ", "2,5,9,0 2,1,9,5 2,1,9,6 2,3,9,7"

MODELS = [
    Model("perceptron", plain("perceptron"), "x:f32[n,20]", "1 4 17", True),
    Model("yolo", plain("Yolo"), IMAGE, SMALL, True),
    Model("vae_groupnorm", plain("Vae"), IMAGE, "1,32,32 2,48,32 3,32,64", True),
    Model("unet", plain("Unet"), IMAGE, "1,32,32 2,50,33 3,41,64", True),
    Model("diffusion_unet", plain("DiffusionUnet"), "latent:f32[n,4,h,w] time:i64[n]<1000 states:f32[n,s,24]",
          "1,8,8,5 2,16,8,9 3,8,24,16", True, attentions="1"),
    Model("lstm", plain("Recurrent", "LSTM"), "tokens:i64[n,s]<100", LENGTHS, True),
    Model("gru", plain("Recurrent", "GRU"), "tokens:i64[n,s]<100", LENGTHS, True),
    Model("rnn", plain("Recurrent", "RNN"), "tokens:i64[n,s]<100", LENGTHS, True),
    Model("wavenet", plain("WaveNet"), "wave:f32[n,1,t]", "1,64 2,100 3,333", True),
    Model("super_resolution", plain("SuperResolution"), IMAGE, "1,16,16 2,24,17 3,33,20", True),
    Model("translator", plain("Translator"), "source:i64[n,s]<100 target:i64[n,t]<100", "1,7,5 2,16,9 3,20,21", True,
          attentions="6"),
    Model("looped_experts", plain("LoopedExperts"), "tokens:f32[n,s,32]", LENGTHS, True, experts="3"),
    Model("dcgan", plain("generator"), "noise:f32[n,32,1,1]", BATCHES, True),
    Model("volume", plain("volume_network"), "volume:f32[n,1,d,h,w]", "1,8,8,8 2,12,8,10 3,9,16,8", True),

    Model("bert", transformers("BertModel", "BertConfig", **NARROW, max_position_embeddings=128),
          TOKENS + " token_type_ids:i64[n,s]<2", LENGTHS, True, attentions="2", norms="5"),
    Model("albert", transformers("AlbertModel", "AlbertConfig", **NARROW, embedding_size=32, max_position_embeddings=128),
          TOKENS, LENGTHS, True, attentions="2", norms="5"),
    Model("distilbert", transformers("DistilBertModel", "DistilBertConfig", dim=64, n_layers=2, n_heads=4, hidden_dim=128,
                                     vocab_size=100, max_position_embeddings=128), TOKENS, LENGTHS, True,
          attentions="2", norms="5"),
    Model("electra", transformers("ElectraModel", "ElectraConfig", **NARROW, embedding_size=32, max_position_embeddings=128),
          TOKENS, LENGTHS, True, attentions="2", norms="5"),
    Model("roberta", transformers("RobertaModel", "RobertaConfig", **NARROW, max_position_embeddings=130), TOKENS, LENGTHS,
          True, attentions="2", norms="5"),
    Model("deberta", transformers("DebertaModel", "DebertaConfig", **NARROW, relative_attention=True,
                                  pos_att_type=["p2c", "c2p"]), TOKENS, LENGTHS, True, attentions="2", norms="5"),
    Model("deberta_v2", transformers("DebertaV2Model", "DebertaV2Config", **NARROW, relative_attention=True,
                                     position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True,
                                     pos_att_type=["p2c", "c2p"]), TOKENS, LENGTHS, True, attentions="2", norms="5"),
    Model("mpnet", transformers("MPNetModel", "MPNetConfig", **NARROW), TOKENS, LENGTHS, True,
          attentions="2", distances="2", norms="5"),
    Model("squeezebert", transformers("SqueezeBertModel", "SqueezeBertConfig", **NARROW, embedding_size=64), TOKENS,
          LENGTHS, attentions="2", norms="5"),
    Model("mobilebert", transformers("MobileBertModel", "MobileBertConfig", **NARROW, embedding_size=32,
                                     true_hidden_size=32, intra_bottleneck_size=32), TOKENS, LENGTHS, attentions="2"),
    Model("xlnet", transformers("XLNetModel", "XLNetConfig", d_model=64, n_layer=2, n_head=4, d_inner=128, vocab_size=100),
          TOKENS, LENGTHS, attentions="2", norms="4"),
    Model("t5_encoder", transformers("T5EncoderModel", "T5Config", **T5), TOKENS, LENGTHS, True,
          attentions="2", distances="2", norms="5"),
    Model("t5", transformers("T5Model", "T5Config", **T5), PAIRS, PAIR_LENGTHS, True,
          attentions="6", causal="2", distances="4", norms="12"),
    Model("bart", transformers("BartModel", "BartConfig", **TRANSLATION), PAIRS, PAIR_LENGTHS,
          attentions="6", causal="2", norms="12"),
    Model("marian", transformers("MarianModel", "MarianConfig", **TRANSLATION, pad_token_id=99, decoder_start_token_id=99),
          PAIRS, PAIR_LENGTHS, attentions="6", causal="2", norms="10"),
    Model("gpt2", transformers("GPT2LMHeadModel", "GPT2Config", n_embd=64, n_layer=2, n_head=4, n_positions=64,
                               vocab_size=100), TOKENS, LENGTHS, True, attentions="2", causal="2", norms="5"),
    Model("gpt_neo", transformers("GPTNeoModel", "GPTNeoConfig", hidden_size=64, num_layers=2, num_heads=4, vocab_size=100,
                                  attention_types=[[["global", "local"], 1]], max_position_embeddings=64, window_size=8),
          TOKENS, LENGTHS, attentions="2"),
    Model("gpt_neox", transformers("GPTNeoXModel", "GPTNeoXConfig", **NARROW, max_position_embeddings=64), TOKENS, LENGTHS,
          attentions="2", causal="2", rotations="4", norms="3"),
    Model("opt", transformers("OPTModel", "OPTConfig", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                              ffn_dim=128, vocab_size=100, max_position_embeddings=64, word_embed_proj_dim=64),
          TOKENS, LENGTHS, attentions="2", causal="2", norms="5"),
    Model("bloom", transformers("BloomModel", "BloomConfig", hidden_size=64, n_layer=2, n_head=4, vocab_size=100), TOKENS,
          LENGTHS, attentions="2", causal="2", norms="6"),
    Model("llama", transformers("LlamaForCausalLM", "LlamaConfig", **DECODER), TOKENS, LENGTHS, True,
          attentions="2", shared=2, causal="2", rotations="4", norms="5"),
    Model("mistral", transformers("MistralModel", "MistralConfig", **DECODER, sliding_window=8), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", windows="2 torchscript-fixed=0 dynamo-fixed=0", rotations="4", norms="5"),
    Model("phi3", transformers("Phi3Model", "Phi3Config", **DECODER, sliding_window=8, pad_token_id=0), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", windows="2 torchscript-fixed=0 dynamo-fixed=0", rotations="4", norms="5"),
    Model("qwen2", transformers("Qwen2Model", "Qwen2Config", **DECODER), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", rotations="4", norms="5"),
    Model("qwen3", transformers("Qwen3Model", "Qwen3Config", **DECODER, head_dim=16), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", rotations="4", norms="9"),
    Model("gemma", transformers("GemmaModel", "GemmaConfig", **DECODER, head_dim=16), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", rotations="4", norms="5"),
    Model("gemma3", transformers("Gemma3TextModel", "Gemma3TextConfig", **DECODER, head_dim=16, sliding_window=8,
                                 layer_types=["sliding_attention", "full_attention"]), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", windows="1 torchscript-fixed=0 dynamo-fixed=0", rotations="4", norms="13"),
    Model("modernbert", transformers("ModernBertModel", "ModernBertConfig", **NARROW, max_position_embeddings=64, local_attention=8,
                                     pad_token_id=0, cls_token_id=0, sep_token_id=0), TOKENS, LENGTHS,
          attentions="2", windows="1", rotations="4", norms="5"),
    Model("gpt_oss", transformers("GptOssModel", "GptOssConfig", **DECODER, head_dim=16, num_local_experts=4,
                                  num_experts_per_tok=2, sliding_window=8, experts_implementation="batched_mm"),
          TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", windows="1 torchscript-fixed=0 dynamo-fixed=0", rotations="4", norms="5", experts="4"),
    Model("mixtral", transformers("MixtralModel", "MixtralConfig", **DECODER, num_local_experts=4, num_experts_per_tok=2,
                                  experts_implementation="batched_mm"), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", rotations="4", norms="5", experts="4"),
    # By TorchScript, with all experts hit while it is traced, and in each run: else the export fails.
    Model("mixtral_eager", transformers("MixtralModel", "MixtralConfig", **DECODER, num_local_experts=4, num_experts_per_tok=2,
                                        experts_implementation="eager"), TOKENS, "1,24 2,16 3,33",
          attentions="2", shared=2, causal="2", experts="4", traced="2,33"),
    Model("qwen3_moe", transformers("Qwen3MoeModel", "Qwen3MoeConfig", **DECODER, head_dim=16, num_experts=4, num_experts_per_tok=2,
                                    moe_intermediate_size=48, experts_implementation="batched_mm"), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", rotations="4", norms="9", experts="4"),
    Model("olmo2", transformers("Olmo2Model", "Olmo2Config", **DECODER, pad_token_id=0), TOKENS, LENGTHS,
          attentions="2", shared=2, causal="2", rotations="4", norms="9"),
    # Latent keys and values; even and odd elements are turned, and joined as halves.
    Model("deepseek_v3", transformers("DeepseekV3Model", "DeepseekV3Config", **(DECODER | dict(num_key_value_heads=4)),
                                      q_lora_rank=32, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16,
                                      first_k_dense_replace=2), TOKENS, LENGTHS,
          attentions="2", causal="2", rotations="4", norms="9"),
    Model("phi", transformers("PhiModel", "PhiConfig", **DECODER), TOKENS, LENGTHS,
          attentions="2", causal="2", rotations="4", norms="3"),
    Model("falcon", transformers("FalconModel", "FalconConfig", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                 vocab_size=100), TOKENS, LENGTHS,
          attentions="2", shared=1, causal="2", rotations="4", norms="3"),
    # TorchScript writes exponents of its slopes as complex numbers, which ONNX has not: those exports are not valid.
    Model("falcon_alibi", transformers("FalconModel", "FalconConfig", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                       vocab_size=100, alibi=True), TOKENS, LENGTHS,
          attentions="2 torchscript-open=0 torchscript-fixed=0", causal="2 torchscript-open=0 torchscript-fixed=0"),
    Model("mpt", transformers("MptModel", "MptConfig", d_model=64, n_heads=4, n_layers=2, vocab_size=100, max_seq_len=64),
          TOKENS, LENGTHS, attentions="2", causal="2", norms="5"),

    *(Model(f"{name}_past", with_past("Appending", transformers(model, config, **options)), APPENDED + past(shared or 4, "p"),
            APPENDING if "sliding_window" not in options else "2,12,12,0 2,1,13,12 2,1,14,13 2,3,17,14", name == "llama",
            attentions="2", shared=shared, causal="" if name in EAGER else "2",
            windows="2" if name == "mistral" else "", caches="4", traced="2,3,7,4")
      for name, model, config, shared, options in CAUSAL),
    *(Model(f"{name}_cache", with_past("Writing", transformers(model, config, **options), 32), WRITTEN + past(shared or 4, "32"),
            WRITING, name == "llama", attentions="2", shared=shared, caches="4", traced="2,3,4")
      for name, model, config, shared, options in CAUSAL),
    *(Model(f"llama_{name}_past".lower(), with_past(name, transformers("LlamaForCausalLM", "LlamaConfig", **DECODER)),
            APPENDED + past(2, "p"), APPENDING, attentions="2", shared=2, caches="4", traced="2,3,7,4")
      for name in ("Summed", "Filled")),
    Model("t5_past", with_past("AppendingDecoder", transformers("T5ForConditionalGeneration", "T5Config", **T5), True),
          BESIDE + "attention_mask:i64[n,e]=mask " + past(4, "p", "decoder.") + " " + past(4, "e", "encoder.", 0), DECODING,
          attentions="4", causal="2", distances="2", caches="4", traced="2,3,9,4"),
    Model("whisper_past", with_past("AppendingDecoder", transformers("WhisperForConditionalGeneration", "WhisperConfig", **SPEECH),
                                    False),
          BESIDE.replace("n,e", "n,50") + past(4, "p", "decoder.") + " " + past(4, "50", "encoder.", 0),
          "2,5,0 2,1,5 2,1,6 2,3,7", attentions="4", causal="2", caches="4", traced="2,3,4"),

    Model("wav2vec2", transformers("Wav2Vec2ForCTC", "Wav2Vec2Config", **WAVE), SOUND, "1,3200 2,4000 3,5555",
          attentions="2", norms="7"),
    Model("hubert", transformers("HubertModel", "HubertConfig", **WAVE), SOUND, "1,3200 2,4000 3,5555",
          attentions="2", norms="7"),
    Model("whisper_encoder", lambda: transformers("WhisperModel", "WhisperConfig", **SPEECH)().encoder,
          "input_features:f32[n,16,100]", BATCHES, True, attentions="2", norms="5"),
    Model("whisper", transformers("WhisperModel", "WhisperConfig", **SPEECH),
          "input_features:f32[n,16,100] decoder_input_ids:i64[n,t]<100", "1,3 2,5 3,11", attentions="6"),
    Model("audio_spectrogram", transformers("ASTModel", "ASTConfig", hidden_size=64, num_hidden_layers=2,
                                            num_attention_heads=4, intermediate_size=128, max_length=64, num_mel_bins=32),
          "input_values:f32[n,64,32]", BATCHES, attentions="2", norms="5"),

    Model("vit", transformers("ViTModel", "ViTConfig", **VISION), PIXELS_64, BATCHES, True, attentions="2", norms="5"),
    Model("deit", transformers("DeiTModel", "DeiTConfig", **VISION), PIXELS_64, BATCHES, attentions="2", norms="5"),
    Model("beit", transformers("BeitModel", "BeitConfig", **VISION, use_relative_position_bias=True), PIXELS_64, BATCHES,
          attentions="2"),
    Model("dinov2", transformers("Dinov2Model", "Dinov2Config", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                 image_size=64, patch_size=8), PIXELS, "1,64,64 2,80,64 3,64,96", attentions="2", norms="5"),
    Model("segformer", transformers("SegformerForSemanticSegmentation", "SegformerConfig", depths=[1, 1, 1, 1],
                                    hidden_sizes=[16, 32, 64, 128], decoder_hidden_size=32), PIXELS, SMALL,
          attentions="4", norms="19"),
    Model("dpt", transformers("DPTForDepthEstimation", "DPTConfig", **VISION | dict(patch_size=16, num_hidden_layers=4),
                              backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 32, 64, 64], fusion_hidden_size=32),
          PIXELS_64, BATCHES, attentions="4", norms="8"),
    Model("hf_swin", transformers("SwinModel", "SwinConfig", image_size=64, patch_size=4, embed_dim=24, depths=[2, 2],
                                  num_heads=[2, 4], window_size=4), PIXELS_64, BATCHES, attentions="4"),
    Model("hf_swin_v2", transformers("Swinv2Model", "Swinv2Config", image_size=64, patch_size=4, embed_dim=24, depths=[2, 2],
                                     num_heads=[2, 4], window_size=4), PIXELS_64, BATCHES, attentions="4"),
    Model("mobilevit", transformers("MobileViTModel", "MobileViTConfig", image_size=64, hidden_sizes=[32, 48, 64],
                                    neck_hidden_sizes=[8, 16, 24, 32, 48, 64, 96]), PIXELS_64, BATCHES,
          attentions="9", norms="21"),
    Model("yolos", transformers("YolosForObjectDetection", "YolosConfig", **VISION | dict(image_size=[64, 64]),
                                num_detection_tokens=10), PIXELS_64, BATCHES, attentions="2", norms="5"),
    Model("clip", transformers("CLIPModel", "CLIPConfig", projection_dim=32, vision_config=VISION | dict(projection_dim=32),
                               text_config=NARROW | dict(max_position_embeddings=40, projection_dim=32, eos_token_id=99)),
          TOKENS + " pixel_values:f32[m,3,64,64]", "1,7,1 2,16,3 3,33,2", attentions="4", causal="2", norms="11"),
    Model("siglip", transformers("SiglipModel", "SiglipConfig", text_config=NARROW | dict(max_position_embeddings=40),
                                 vision_config=VISION),
          "input_ids:i64[n,s]<100 pixel_values:f32[m,3,64,64]", "1,7,1 2,16,3 3,33,2", attentions="5", norms="11"),
    Model("sam_encoder", transformers("SamVisionModel", "SamVisionConfig", hidden_size=64, output_channels=32,
                                      num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, window_size=3,
                                      global_attn_indexes=[1], mlp_dim=128), PIXELS_64, BATCHES, attentions="2"),
    Model("patch_tst", transformers("PatchTSTModel", "PatchTSTConfig", num_input_channels=3, context_length=32,
                                    patch_length=8, patch_stride=8, d_model=32, num_attention_heads=4, num_hidden_layers=2,
                                    ffn_dim=64),
          "past_values:f32[n,32,3]", BATCHES),

    Model("resnet18", torchvision("", "resnet18"), IMAGE, SMALL),
    Model("resnet50", torchvision("", "resnet50"), IMAGE, SMALL),
    Model("resnext50", torchvision("", "resnext50_32x4d"), IMAGE, SMALL),
    Model("alexnet", torchvision("", "alexnet"), BATCH_OF_224, BATCHES),
    Model("vgg11_bn", torchvision("", "vgg11_bn"), BATCH_OF_224, BATCHES),
    Model("squeezenet", torchvision("", "squeezenet1_1"), IMAGE, SMALL, True),
    Model("densenet121", torchvision("", "densenet121"), IMAGE, SMALL),
    Model("inception_v3", torchvision("", "inception_v3", init_weights=False), IMAGE, MIDDLE),
    Model("googlenet", torchvision("", "googlenet", init_weights=False), IMAGE, SMALL),
    Model("shufflenet_v2", torchvision("", "shufflenet_v2_x1_0"), IMAGE, SMALL, True),
    Model("mobilenet_v2", torchvision("", "mobilenet_v2"), IMAGE, SMALL, True),
    Model("mobilenet_v3", torchvision("", "mobilenet_v3_small"), IMAGE, SMALL, True),
    Model("mnasnet", torchvision("", "mnasnet1_0"), IMAGE, SMALL),
    Model("efficientnet_b0", torchvision("", "efficientnet_b0"), IMAGE, SMALL),
    Model("efficientnet_v2", torchvision("", "efficientnet_v2_s"), IMAGE, SMALL),
    Model("regnet_y", torchvision("", "regnet_y_400mf"), IMAGE, SMALL),
    Model("regnet_x", torchvision("", "regnet_x_400mf"), IMAGE, SMALL),
    Model("convnext", torchvision("", "convnext_tiny"), IMAGE, SMALL),
    Model("vit_b_16", torchvision("", "vit_b_16", image_size=64), PIXELS_64.replace("pixel_values", "image"), BATCHES,
          attentions="12"),
    Model("swin", torchvision("", "swin_t"), IMAGE, SMALL, attentions="12"),
    Model("swin_v2", torchvision("", "swin_v2_t"), IMAGE, SMALL, attentions="12"),
    Model("maxvit", torchvision("", "maxvit_t"), BATCH_OF_224, BATCHES, attentions="22"),
    Model("deeplab_v3", torchvision("segmentation", "deeplabv3_mobilenet_v3_large"), IMAGE, SMALL),
    Model("lraspp", torchvision("segmentation", "lraspp_mobilenet_v3_large"), IMAGE, SMALL),
    Model("fcn", torchvision("segmentation", "fcn_resnet50"), IMAGE, SMALL),
    Model("s3d", torchvision("video", "s3d"), "video:f32[n,3,t,224,224]", "1,16 1,24 2,16"),
    Model("r3d_18", torchvision("video", "r3d_18"), "video:f32[n,3,t,h,w]", "1,8,32,32 2,8,48,32 1,12,32,48"),
    Model("raft", plain("Flow"),
          "first:f32[n,3,128,128] second:f32[n,3,128,128]", BATCHES),
    Model("ssdlite", torchvision("detection", "ssdlite320_mobilenet_v3_large", score_thresh=0.1, num_classes=7,
                                 topk_candidates=20, detections_per_img=10),
          "image:f32[3,h,w]", "128,128 192,128 128,200"),
    Model("retinanet", torchvision("detection", "retinanet_resnet50_fpn", num_classes=7, min_size=128, max_size=192,
                                   score_thresh=0.0, topk_candidates=20, detections_per_img=10),
          "image:f32[3,h,w]", "128,128 160,128 128,180"),
    Model("faster_rcnn", torchvision("detection", "fasterrcnn_mobilenet_v3_large_320_fpn", num_classes=7, min_size=128,
                                     max_size=192), "image:f32[3,h,w]", "128,128 160,128 128,180"),

    Model("deit_tiny", timm("deit_tiny_patch16_224"), BATCH_OF_224, BATCHES, attentions="12"),
    Model("visformer_tiny", timm("visformer_tiny"), BATCH_OF_224, BATCHES, attentions="8"),
    Model("coatnet", timm("coatnet_nano_rw_224"), BATCH_OF_224, BATCHES, attentions="9"),
    Model("efficientformer", timm("efficientformer_l1"), BATCH_OF_224, BATCHES, attentions="1"),
    Model("poolformer", timm("poolformer_s12"), IMAGE, SMALL),
    Model("mlp_mixer", timm("mixer_s32_224"), BATCH_OF_224, BATCHES),
    Model("resmlp", timm("resmlp_12_224"), BATCH_OF_224, BATCHES),
    Model("gmlp", timm("gmlp_ti16_224"), BATCH_OF_224, BATCHES),
    Model("levit", timm("levit_128s"), BATCH_OF_224, BATCHES, attentions="11"),
    Model("xcit", timm("xcit_nano_12_p16_224"), BATCH_OF_224, BATCHES, attentions="14"),
    # All but the last two mix scores of different heads before the softmax, and probabilities behind it.
    Model("cait", timm("cait_xxs24_224"), BATCH_OF_224, BATCHES, attentions="2"),
    Model("ghostnet", timm("ghostnet_100"), IMAGE, SMALL),
    Model("hrnet", timm("hrnet_w18_small"), IMAGE, SMALL),
    Model("dla", timm("dla34"), IMAGE, SMALL),
    Model("res2net", timm("res2net50_26w_4s"), IMAGE, SMALL),
    Model("resnest", timm("resnest14d"), IMAGE, SMALL),
    Model("nf_regnet", timm("nf_regnet_b0"), IMAGE, SMALL),
    # Its attentions are of channels, whose rows have an element for each pixel, an open number.
    Model("edgenext", timm("edgenext_xx_small"), IMAGE, SMALL),
    Model("repvgg", timm("repvgg_a0"), IMAGE, SMALL),
    Model("rexnet", timm("rexnet_100"), IMAGE, SMALL),
    Model("mobileone", timm("mobileone_s0"), IMAGE, SMALL),
    Model("fastvit", timm("fastvit_t8"), IMAGE, SMALL),
    Model("pvt_v2", timm("pvt_v2_b0"), IMAGE, SMALL, attentions="8"),
    Model("twins", timm("twins_svt_small"), BATCH_OF_224, BATCHES, attentions="18"),
    Model("volo", timm("volo_d1_224"), BATCH_OF_224, BATCHES),
    Model("focalnet", timm("focalnet_tiny_srf"), IMAGE, SMALL),
    # The other six, of channels, have an element for each pixel, too.
    Model("davit", timm("davit_tiny"), IMAGE, SMALL, attentions="6"),
    Model("gcvit", timm("gcvit_xxtiny"), BATCH_OF_224, BATCHES, attentions="12"),
    Model("nest", timm("nest_tiny"), BATCH_OF_224, BATCHES, attentions="12"),
    Model("sequencer", timm("sequencer2d_s"), BATCH_OF_224, BATCHES),
    Model("eva02", timm("eva02_tiny_patch14_224"), BATCH_OF_224, BATCHES, attentions="12", rotations="24"),
    Model("cspdarknet", timm("cspdarknet53"), IMAGE, SMALL),
    Model("efficientvit", timm("efficientvit_b0"), IMAGE, SMALL),
    Model("tiny_vit", timm("tiny_vit_5m_224"), BATCH_OF_224, BATCHES, attentions="10"),
    Model("convnext_v2", timm("convnextv2_atto"), IMAGE, SMALL),
    Model("mobilenet_v4", timm("mobilenetv4_conv_small"), IMAGE, SMALL),
]
