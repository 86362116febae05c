# SPDX-License-Identifier: Apache-2.0
"""Exports one architecture of TensorFlow with tf2onnx, with TensorFlow's results at each set of sizes beside it."""
import os
import re
import zlib

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "TF_ENABLE_ONEDNN_OPTS": "0"}

import keras
import numpy as np
import tensorflow as tf
import tf2onnx

from cases import make_inputs, parse_inputs, size_sets, write_case

LIBRARIES = ("tf2onnx",)
PACKAGES = ("tensorflow", "keras", "tf2onnx", "onnx", "onnxruntime")
VARIANTS = {"tensorflow-open": True, "tensorflow-fixed": False}  # whether sizes are open
TYPES = {"f32": tf.float32, "i64": tf.int64, "i32": tf.int32}


def randomise(model):
    """Variables that start as constants become such that an error would show."""
    for variable in getattr(model, "weights", getattr(model, "variables", ())):
        name = getattr(variable, "path", variable.name)
        noise = tf.random.normal(variable.shape) * 0.1
        if re.search("moving_variance|gamma", name):
            variable.assign(1 + noise)
        elif re.search("moving_mean|beta|bias", name):
            variable.assign(noise)


def as_function(model, names):
    """Tensors in, tensors out; models of Keras with several inputs want them by name."""
    def call(*tensors):
        if not isinstance(model, keras.Model):
            return model(*tensors)
        return model(dict(zip(names, tensors)) if len(tensors) > 1 else tensors[0], training=False)
    return call


def export(model, variant, folder):
    """Exports into the folder and returns what case.json says."""
    keras.utils.set_random_seed(zlib.crc32(model.name.encode()))
    sets = size_sets(model, model.sizes)
    given = {index: make_inputs(model, sizes, index) for index, sizes in enumerate(sets)}
    if not VARIANTS[variant]:
        given = dict([max(given.items())])
    module, largest = model.make(), given[max(given)]
    function = as_function(module, list(largest))
    function(*map(tf.constant, largest.values()))  # makes what layers make when they are first called
    randomise(module)
    signature = [tf.TensorSpec([int(d) if d.isdigit() else None for d in dims] if VARIANTS[variant] else largest[name].shape,
                               TYPES[dtype], name=name) for name, dtype, dims, _ in parse_inputs(model.inputs)]
    function = tf.function(function, input_signature=signature)
    tf2onnx.convert.from_function(function, input_signature=signature, opset=18, output_path=str(folder / "model.onnx"))
    results = [[np.asarray(value) for value in tf.nest.flatten(function(*map(tf.constant, arrays.values())))]
               for arrays in given.values()]
    unknown = [None] * len(given)
    return write_case(model, variant, folder, sets, given, results, [0.0] * len(given), unknown)
