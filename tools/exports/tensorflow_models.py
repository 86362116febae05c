# SPDX-License-Identifier: Apache-2.0
"""The architectures of TensorFlow that are exported: rows as those of models.py."""
from models import LENGTHS, SMALL, TOKENS, Model
from tensorflow_modules import (Bert, Gpt2, Greedy, Llama, T5, VisionTransformer, application, keras_cross, keras_encoder,
                                keras_plain_attention, logic, pixels, sequential, unet)

IMAGE, IMAGE_96, BATCHES = "image:f32[n,h,w,3]", "image:f32[n,96,96,3]", "1 2 3"
AGAINST, PAIRS = "1,7,3 2,16,5 3,33,9", "1,96,96 2,128,96 1,96,160"

MODELS = [
    Model("bert", Bert, TOKENS + " token_type_ids:i64[n,s]<2", LENGTHS, True, attentions="2"),
    # Its causal mask puts a number in place of scores, and another that is added hides padding: none is hidden for sure.
    Model("gpt2", Gpt2, TOKENS, LENGTHS, True),
    Model("t5_encoder", T5, TOKENS, LENGTHS, True, attentions="2", distances="2"),
    Model("llama", Llama, "input_ids:i64[n,s]<100", LENGTHS, True, attentions="2", shared=2, causal="2"),
    Model("keras_encoder", keras_encoder(), TOKENS, LENGTHS, True, attentions="2"),
    Model("keras_decoder", keras_encoder(causal=True), TOKENS, LENGTHS, True, attentions="2"),
    Model("keras_cross", keras_cross(), "x:f32[n,s,64] memory:f32[n,t,64]", AGAINST, True, attentions="2"),
    Model("keras_attention", keras_plain_attention(), "q:f32[n,s,32] v:f32[n,t,32]", AGAINST, True, attentions="1"),
    Model("vit", VisionTransformer, "image:f32[n,64,64,3]", BATCHES, True, attentions="2"),

    Model("greedy", Greedy, "state:f32[n,16] steps:i32[]=5", BATCHES, True),
    Model("pixels", lambda: pixels, IMAGE, "1,32,32 2,50,33 3,41,64", True),
    Model("logic", lambda: logic, "x:f32[n,5] y:f32[n,5]", "1 4 7", True),
    Model("lstm", sequential("Embedding(100, 16)", "Bidirectional(LSTM(16, return_sequences=True))", "LSTM(8)", "Dense(5)"),
          "tokens:i64[n,s]<100", LENGTHS, True),
    Model("gru", sequential("Embedding(100, 16, mask_zero=True)", "GRU(16, return_sequences=True)", "GRU(8, reset_after=False)"),
          "tokens:i64[n,s]<100", LENGTHS, True),
    Model("rnn", sequential("SimpleRNN(16, return_sequences=True)", "TimeDistributed(Dense(4))"), "x:f32[n,s,8]", LENGTHS, True),
    Model("conv_lstm", sequential("ConvLSTM2D(8, 3, padding='same', return_sequences=True)"), "x:f32[n,5,8,8,3]", BATCHES, True),
    Model("conv1d", sequential("Conv1D(16, 5, padding='causal', dilation_rate=2, activation='elu')", "MaxPooling1D(2)",
                               "SeparableConv1D(8, 3)", "GlobalAveragePooling1D()"), "wave:f32[n,t,4]", "1,64 2,100 3,77", True),
    Model("conv3d", sequential("Conv3D(8, 3, strides=2, padding='same', activation='relu')", "Conv3DTranspose(4, 2, strides=2)",
                               "AveragePooling3D(2)"), "x:f32[n,8,8,8,2]", BATCHES, True),
    Model("unet", unet, IMAGE, "1,32,32 2,48,32 3,32,64", True),

    Model("mobilenet_v2", application("MobileNetV2", input_shape=(96, 96, 3), classes=10), IMAGE_96, BATCHES),
    Model("mobilenet_v3", application("MobileNetV3Small", input_shape=(96, 96, 3), classes=10), IMAGE_96, BATCHES),
    Model("resnet50_v2", application("ResNet50V2", include_top=False, pooling="avg"), IMAGE, SMALL),
    Model("densenet121", application("DenseNet121", include_top=False, pooling="max"), IMAGE, SMALL),
    Model("nasnet", application("NASNetMobile", include_top=False, input_shape=(96, 96, 3), pooling="avg"), IMAGE_96, BATCHES),
    Model("xception", application("Xception", include_top=False), IMAGE, PAIRS),
]
