# SPDX-License-Identifier: Apache-2.0
"""The architectures that Optimum exports: rows as those of models.py, of which one says which file of an export it is."""
import importlib
from typing import NamedTuple

from models import (APPENDED, APPENDING, BATCHES, CAUSAL, DECODER, EAGER, LENGTHS, NARROW, PAIR_LENGTHS, PIXELS, PIXELS_64,
                    SMALL, SOUND, SPEECH, T5, TOKENS, TRANSLATION, VISION, WAVE, Model, past)


class Checkpoint(NamedTuple):
    """A model with random weights, and what Optimum is to make of it."""
    model: str
    config: str
    options: dict
    task: str
    file: str

    def module(self):
        library = importlib.import_module("transformers")
        return getattr(library, self.model)(getattr(library, self.config)(**self.options))


def checkpoint(model, config, task="feature-extraction", file="model.onnx", **options):
    return lambda: Checkpoint(model, config, options, task, file)


GENERATION, TRANSLATING = "text-generation-with-past", "text2text-generation-with-past"
ENCODER, FIRST, NEXT = "encoder_model.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx"
MERGED = "decoder_model_merged.onnx"  # both, as the branches of an If
TYPES = " token_type_ids:i64[n,s]<2"
CROSS = "encoder_attention_mask:i64[n,e]=mask "
WIDE = dict(hidden_size=64, n_layer=2, n_head=4, vocab_size=100)

# Decoders whose past is an input, as rows of models.CAUSAL; it keeps the eager ones to itself.
DECODERS = [
    *(row for row in CAUSAL if row[0] not in EAGER),
    ("gemma2", "Gemma2ForCausalLM", "Gemma2Config", 2, DECODER | dict(head_dim=16, sliding_window=8)),
    ("phi", "PhiForCausalLM", "PhiConfig", 0, DECODER | dict(num_key_value_heads=4)),
    ("phi3", "Phi3ForCausalLM", "Phi3Config", 2, DECODER | dict(pad_token_id=0, sliding_window=8)),
    ("gptj", "GPTJForCausalLM", "GPTJConfig", 0, dict(n_embd=64, n_layer=2, n_head=4, n_positions=64, rotary_dim=8, vocab_size=100)),
    ("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", 0, NARROW | dict(max_position_embeddings=64)),
    ("opt", "OPTForCausalLM", "OPTConfig", 0, dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128,
                                                   vocab_size=100, max_position_embeddings=64, word_embed_proj_dim=64)),
    ("bloom", "BloomForCausalLM", "BloomConfig", 0, WIDE),
    ("mpt", "MptForCausalLM", "MptConfig", 0, dict(d_model=64, n_layers=2, n_heads=4, vocab_size=100, max_seq_len=64, expansion_ratio=2)),
    ("falcon", "FalconForCausalLM", "FalconConfig", 1, dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                                            vocab_size=100)),
    ("falcon_alibi", "FalconForCausalLM", "FalconConfig", 0,
     dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=100, alibi=True, multi_query=False)),
]

# Their masks are cut to the keys, and may have fewer columns than these for all that is known.
CUT = ("gptj", "opt", "bloom", "falcon", "falcon_alibi")
WINDOWS = {"mistral": "2", "phi3": "2", "gemma2": "1"}
UNTURNED = ("gpt2", "opt", "bloom", "mpt", "falcon_alibi")

MODELS = [
    Model("bert", checkpoint("BertModel", "BertConfig", **NARROW), TOKENS + TYPES, LENGTHS, True, attentions="2"),
    Model("roberta", checkpoint("RobertaModel", "RobertaConfig", **NARROW), TOKENS, LENGTHS, True, attentions="2"),
    Model("distilbert", checkpoint("DistilBertModel", "DistilBertConfig", dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=100),
          TOKENS, LENGTHS, True, attentions="2"),
    Model("albert", checkpoint("AlbertModel", "AlbertConfig", **NARROW, embedding_size=32), TOKENS + TYPES, LENGTHS, attentions="2"),
    Model("electra", checkpoint("ElectraModel", "ElectraConfig", **NARROW, embedding_size=32), TOKENS + TYPES, LENGTHS, attentions="2"),
    Model("mpnet", checkpoint("MPNetModel", "MPNetConfig", **NARROW), TOKENS, LENGTHS, attentions="2"),
    Model("deberta_v2", checkpoint("DebertaV2Model", "DebertaV2Config", **NARROW, relative_attention=True, position_buckets=8,
                                   norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"]), TOKENS, LENGTHS,
          attentions="2"),
    Model("modernbert", checkpoint("ModernBertModel", "ModernBertConfig", **NARROW, local_attention=8, pad_token_id=0, cls_token_id=0,
                                   sep_token_id=0), TOKENS, LENGTHS, attentions="2"),
    *(Model(f"{name}_past", checkpoint(model, config, GENERATION, **options), APPENDED + past(shared or 4, "p"), APPENDING, name == "llama",
            attentions="2", shared=shared, causal="" if name in CUT else "2", windows=WINDOWS.get(name, ""),
            rotations="" if name in UNTURNED else "4", caches="4")
      for name, model, config, shared, options in DECODERS),
    Model("t5_encoder", checkpoint("T5ForConditionalGeneration", "T5Config", TRANSLATING, ENCODER, **T5), TOKENS, LENGTHS, attentions="2",
          distances="2"),
    Model("t5_first", checkpoint("T5ForConditionalGeneration", "T5Config", TRANSLATING, FIRST, **T5),
          CROSS + "input_ids:i64[n,s]<100 encoder_hidden_states:f32[n,e,64]", PAIR_LENGTHS, attentions="4", causal="2", distances="2"),
    Model("t5_past", checkpoint("T5ForConditionalGeneration", "T5Config", TRANSLATING, NEXT, **T5),
          CROSS + "input_ids:i64[n,s]<100 " + past(4, "p", "decoder.", 0) + " " + past(4, "e", "encoder.", 0),
          "2,9,1,5 2,9,1,6 2,9,1,7", attentions="4", caches="4"),
    *(Model(f"t5_merged_{name}", checkpoint("T5ForConditionalGeneration", "T5Config", TRANSLATING, MERGED, **T5),
            f"{CROSS}input_ids:i64[n,s]<100 encoder_hidden_states:f32[n,e,64] use_cache_branch:bool[1]={taken} "
            + past(4, "p", "decoder.", 0) + " " + past(4, "e", "encoder.", 0), sizes)  # attentions in branches are not counted
      for name, taken, sizes in (("first", 0, "1,7,3,1 2,16,5,1 3,33,9,1"), ("next", 1, "2,9,1,5 2,9,1,6 2,9,1,7"))),
    Model("bart_past", checkpoint("BartForConditionalGeneration", "BartConfig", TRANSLATING, NEXT, **TRANSLATION),
          CROSS + "input_ids:i64[n,s]<100 " + past(4, "p", "decoder.", 0) + " " + past(4, "e", "encoder.", 0),
          "2,9,1,5 2,9,1,6 2,9,1,7", attentions="4", caches="4"),
    Model("vit", checkpoint("ViTForImageClassification", "ViTConfig", "image-classification", **VISION), PIXELS_64, BATCHES, attentions="2"),
    Model("deit", checkpoint("DeiTForImageClassification", "DeiTConfig", "image-classification", **VISION), PIXELS_64, BATCHES, attentions="2"),
    Model("swin", checkpoint("SwinModel", "SwinConfig", image_size=64, patch_size=4, embed_dim=24, depths=[2, 2], num_heads=[2, 4],
                             window_size=4), PIXELS_64, BATCHES, attentions="4"),
    Model("segformer", checkpoint("SegformerForSemanticSegmentation", "SegformerConfig", "semantic-segmentation", depths=[1, 1, 1, 1],
                                  hidden_sizes=[16, 32, 64, 128], num_attention_heads=[1, 2, 4, 8], decoder_hidden_size=32), PIXELS,
          SMALL, attentions="4"),
    Model("clip", checkpoint("CLIPModel", "CLIPConfig", "zero-shot-image-classification", projection_dim=32,
                             vision_config=VISION | dict(projection_dim=32),
                             text_config=NARROW | dict(max_position_embeddings=40, projection_dim=32, eos_token_id=99)),
          TOKENS + " pixel_values:f32[m,3,64,64]", "1,7,1 2,16,3 3,33,2", attentions="4"),
    Model("wav2vec2", checkpoint("Wav2Vec2ForCTC", "Wav2Vec2Config", "automatic-speech-recognition", **WAVE), SOUND,
          "1,3200 2,4000 3,5555", attentions="2"),
    Model("whisper_encoder", checkpoint("WhisperForConditionalGeneration", "WhisperConfig", "automatic-speech-recognition-with-past", ENCODER,
                                        **SPEECH | dict(max_source_positions=1500)), "input_features:f32[n,16,3000]", BATCHES, attentions="2"),
    Model("whisper_past", checkpoint("WhisperForConditionalGeneration", "WhisperConfig", "automatic-speech-recognition-with-past", NEXT,
                                     **SPEECH | dict(max_source_positions=1500)),
          "input_ids:i64[n,s]<100 cache_position:i64[s]=from_p " + past(4, "p", "decoder.", 0) + " " + past(4, "1500", "encoder.", 0),
          "2,1,5 2,1,6 2,1,7", attentions="4", caches="4"),
]
