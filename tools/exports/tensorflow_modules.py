# SPDX-License-Identifier: Apache-2.0
"""Networks in TensorFlow's own terms: Keras' layers and applications, and transformers as the models of transformers'
TensorFlow days (and BERT's first release) spell them."""
import keras
import tensorflow as tf
from keras import layers


def application(name, **options):
    """A network of keras.applications, whose weights are random."""
    def make():
        return getattr(keras.applications, name)(weights=None, **options)
    return make


def sequential(*parts):
    """Layers after each other: "Dense(8, activation='gelu')"."""
    def make():
        return keras.Sequential([eval(part, vars(layers)) for part in parts])
    return make


class Bert(tf.Module):
    """BERT as its first release has it: matrices of two dimensions, a mask that is added, GELU by tanh."""

    def __init__(self, size=64, heads=4, blocks=2, words=100, positions=128):
        super().__init__()
        self.heads = heads
        self.words, self.positions, self.types = (embedding(n, size) for n in (words, positions, 2))
        self.norm = layers.LayerNormalization(epsilon=1e-12)
        self.blocks = [{name: layers.Dense(width) for name, width in
                        (("q", size), ("k", size), ("v", size), ("out", size), ("up", 2 * size), ("down", size))}
                       | {name: layers.LayerNormalization(epsilon=1e-12) for name in ("first", "second")}
                       for _ in range(blocks)]

    def split(self, x, batch, length):
        return tf.transpose(tf.reshape(x, [batch, length, self.heads, x.shape[-1] // self.heads]), [0, 2, 1, 3])

    def attend(self, block, x, bias, batch, length):
        q, k, v = (self.split(block[name](x), batch, length) for name in "qkv")
        scores = tf.multiply(tf.matmul(q, k, transpose_b=True), 1.0 / tf.sqrt(float(q.shape[-1])))
        context = tf.matmul(tf.nn.softmax(scores + bias), v)
        return tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [batch * length, x.shape[-1]])

    def __call__(self, input_ids, attention_mask, token_type_ids):
        batch, length = tf.unstack(tf.shape(input_ids))
        x = tf.gather(self.words, input_ids) + self.positions[:length] + tf.gather(self.types, token_type_ids)
        size = x.shape[-1]
        bias = (1.0 - tf.cast(attention_mask, tf.float32))[:, tf.newaxis, tf.newaxis] * -10000.0
        x = tf.reshape(self.norm(x), [-1, size])
        for block in self.blocks:
            x = block["first"](x + block["out"](self.attend(block, x, bias, batch, length)))
            x = block["second"](x + block["down"](keras.activations.gelu(block["up"](x), approximate=True)))
        return tf.reshape(x, [batch, length, size])


def gelu(x):
    """By erf, which the exporter knows; what Keras has by erfc, it does not."""
    return 0.5 * x * (1.0 + tf.math.erf(x / 2.0 ** 0.5))


def embedding(rows, columns):
    return tf.Variable(tf.random.normal([rows, columns]) * 0.3)


class Gpt2(tf.Module):
    """GPT-2 of transformers' TensorFlow models: packed queries, keys and values, masks of 0 and 1 by comparing ranges."""

    def __init__(self, size=64, heads=4, blocks=2, words=100, positions=64):
        super().__init__()
        self.heads, self.size = heads, size
        self.words, self.positions = embedding(words, size), embedding(positions, size)
        self.blocks = [{"in": layers.Dense(3 * size), "out": layers.Dense(size), "up": layers.Dense(4 * size),
                        "down": layers.Dense(size), "first": layers.LayerNormalization(epsilon=1e-5),
                        "second": layers.LayerNormalization(epsilon=1e-5)} for _ in range(blocks)]
        self.norm = layers.LayerNormalization(epsilon=1e-5)

    @staticmethod
    def causal_mask(queries, keys):
        return tf.cast(tf.range(queries)[:, None] >= tf.range(keys) - keys + queries, tf.float32)

    def split(self, x):
        shape = tf.shape(x)
        return tf.transpose(tf.reshape(x, [shape[0], shape[1], self.heads, self.size // self.heads]), [0, 2, 1, 3])

    def attend(self, block, x, padding):
        q, k, v = (self.split(each) for each in tf.split(block["in"](x), 3, axis=2))
        w = tf.matmul(q, k, transpose_b=True) / tf.math.sqrt(tf.cast(tf.shape(k)[-1], tf.float32))
        shape = tf.shape(w)
        b = tf.reshape(self.causal_mask(shape[2], shape[3]), [1, 1, shape[2], shape[3]])
        w = w * b - 1e4 * (1 - b)
        context = tf.transpose(tf.matmul(tf.nn.softmax(w + padding, axis=-1), v), [0, 2, 1, 3])
        return block["out"](tf.reshape(context, tf.concat([tf.shape(context)[:-2], [self.size]], 0)))

    def __call__(self, input_ids, attention_mask):
        x = tf.gather(self.words, input_ids) + tf.gather(self.positions, tf.range(tf.shape(input_ids)[-1]))[None]
        padding = (1.0 - tf.cast(attention_mask, tf.float32))[:, None, None, :] * -1e4
        for block in self.blocks:
            x += self.attend(block, block["first"](x), padding)
            x += block["down"](keras.activations.gelu(block["up"](block["second"](x)), approximate=True))
        return tf.matmul(self.norm(x), self.words, transpose_b=True)


class T5(tf.Module):
    """A T5 encoder of transformers' TensorFlow models: relative positions in buckets, RMSNorm, no scale."""

    def __init__(self, size=64, heads=4, blocks=2, words=100, buckets=32):
        super().__init__()
        self.heads, self.size, self.buckets = heads, size, buckets
        self.words, self.bias = embedding(words, size), embedding(buckets, heads)
        self.blocks = [{name: layers.Dense(width, use_bias=False) for name, width in
                        (("q", size), ("k", size), ("v", size), ("out", size), ("gate", 2 * size), ("up", 2 * size),
                         ("down", size))} | {name: tf.Variable(1 + 0.1 * tf.random.normal([size])) for name in ("first", "second")}
                       for _ in range(blocks)]

    @staticmethod
    def norm(weight, x):
        return weight * x * tf.math.rsqrt(tf.math.reduce_mean(tf.math.square(x), axis=-1, keepdims=True) + 1e-6)

    def bucket(self, distance):
        half, exact = self.buckets // 2, self.buckets // 4
        base = tf.cast(tf.math.greater(distance, 0), distance.dtype) * half
        distance = tf.math.abs(distance)
        far = exact + tf.cast(tf.math.log(tf.cast(distance, tf.float32) / exact) / tf.math.log(128 / exact)
                              * (half - exact), distance.dtype)
        return base + tf.where(distance < exact, distance, tf.math.minimum(far, half - 1))

    def position_bias(self, length):
        places = tf.range(length)
        values = tf.gather(self.bias, self.bucket(places[None, :] - places[:, None]))
        return tf.expand_dims(tf.transpose(values, [2, 0, 1]), axis=0)

    def attend(self, block, x, bias):
        batch = tf.shape(x)[0]
        q, k, v = (tf.transpose(tf.reshape(block[name](x), (batch, -1, self.heads, self.size // self.heads)), (0, 2, 1, 3))
                   for name in "qkv")
        weights = tf.nn.softmax(tf.einsum("bnqd,bnkd->bnqk", q, k) + bias, axis=-1)
        return block["out"](tf.reshape(tf.transpose(tf.matmul(weights, v), (0, 2, 1, 3)), (batch, -1, self.size)))

    def __call__(self, input_ids, attention_mask):
        x = tf.gather(self.words, input_ids)
        bias = self.position_bias(tf.shape(x)[1]) + (1.0 - tf.cast(attention_mask, tf.float32))[:, None, None, :] * -1e9
        for block in self.blocks:
            x += self.attend(block, self.norm(block["first"], x), bias)
            y = self.norm(block["second"], x)
            x += block["down"](keras.activations.gelu(block["gate"](y), approximate=True) * block["up"](y))
        return x


class Llama(tf.Module):
    """Rotated halves, heads of keys and values that are repeated, SwiGLU, in tf.einsum's terms."""

    def __init__(self, size=64, heads=4, shared=2, blocks=2, words=100):
        super().__init__()
        self.heads, self.shared, self.size, self.head = heads, shared, size, size // heads
        self.words = embedding(words, size)
        narrow = shared * self.head
        self.blocks = [{name: layers.Dense(width, use_bias=False) for name, width in
                        (("q", size), ("k", narrow), ("v", narrow), ("out", size), ("gate", 2 * size), ("up", 2 * size),
                         ("down", size))} | {name: tf.Variable(1 + 0.1 * tf.random.normal([size])) for name in ("first", "second")}
                       for _ in range(blocks)]

    def rotate(self, x, length):
        frequencies = 10000.0 ** (-tf.range(0, self.head, 2, dtype=tf.float32) / self.head)
        angles = tf.einsum("i,j->ij", tf.cast(tf.range(length), tf.float32), frequencies)
        angles = tf.concat([angles, angles], -1)[None, :, None, :]
        first, second = tf.split(x, 2, axis=-1)
        return x * tf.cos(angles) + tf.concat([-second, first], -1) * tf.sin(angles)

    def attend(self, block, x):
        batch, length = tf.shape(x)[0], tf.shape(x)[1]
        q = self.rotate(tf.reshape(block["q"](x), [batch, length, self.heads, self.head]), length)
        k = self.rotate(tf.reshape(block["k"](x), [batch, length, self.shared, self.head]), length)
        v = tf.reshape(block["v"](x), [batch, length, self.shared, self.head])
        k, v = (tf.repeat(each, self.heads // self.shared, axis=2) for each in (k, v))
        scores = tf.einsum("bqhd,bkhd->bhqk", q, k) * self.head ** -0.5
        visible = tf.linalg.band_part(tf.ones([length, length], tf.bool), -1, 0)
        scores = tf.where(visible, scores, tf.float32.min)
        context = tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(scores, -1), v)
        return block["out"](tf.reshape(context, [batch, length, self.size]))

    def __call__(self, input_ids):
        x = tf.gather(self.words, input_ids)
        for block in self.blocks:
            x += self.attend(block, T5.norm(block["first"], x))
            y = T5.norm(block["second"], x)
            x += block["down"](tf.nn.silu(block["gate"](y)) * block["up"](y))
        return x


def keras_encoder(causal=False, size=64, heads=4, blocks=2):
    """An encoder, or a decoder, of Keras' own attention."""
    def make():
        ids = keras.Input([None], dtype="int64", name="input_ids")
        mask = keras.Input([None], dtype="int64", name="attention_mask")
        x = layers.Embedding(100, size)(ids)
        for _ in range(blocks):
            attention = layers.MultiHeadAttention(heads, size // heads)
            visible = keras.ops.cast(keras.ops.expand_dims(mask, 1), "bool")
            x = layers.LayerNormalization()(x + attention(x, x, attention_mask=visible, use_causal_mask=causal))
            y = layers.Dense(2 * size, activation=gelu)(x)
            x = layers.LayerNormalization()(x + layers.Dense(size)(y))
        return keras.Model([ids, mask], x)
    return make


def keras_cross(size=64, heads=4):
    """Attention to another sequence, and queries in groups that share keys."""
    def make():
        x, memory = keras.Input([None, size], name="x"), keras.Input([None, size], name="memory")
        y = x + layers.MultiHeadAttention(heads, size // heads, value_dim=8)(x, memory)
        y = y + layers.GroupQueryAttention(size // heads, heads, 2)(y, y, use_causal_mask=True)
        return keras.Model([x, memory], layers.Dense(size, activation="swish")(y))
    return make


def keras_plain_attention(size=32):
    """Attention and AdditiveAttention, which have no heads."""
    def make():
        q, v = keras.Input([None, size], name="q"), keras.Input([None, size], name="v")
        return keras.Model([q, v], layers.concatenate([layers.Attention(use_scale=True)([q, v]), layers.AdditiveAttention()([q, v])]))
    return make


class VisionTransformer(tf.Module):
    """Patches by a convolution, a class token, and tf.linalg.matmul with joined heads."""

    def __init__(self, size=64, heads=4, blocks=2, patches=64):
        super().__init__()
        self.heads, self.size = heads, size
        self.patch = layers.Conv2D(size, 8, strides=8)
        self.token, self.places = embedding(1, size), embedding(patches + 1, size)
        self.blocks = [{"in": layers.Dense(3 * size), "out": layers.Dense(size), "up": layers.Dense(2 * size), "down": layers.Dense(size),
                        "first": layers.LayerNormalization(), "second": layers.LayerNormalization()} for _ in range(blocks)]

    def attend(self, block, x):
        batch, tokens = tf.shape(x)[0], x.shape[1]
        packed = tf.reshape(block["in"](x), [batch, tokens, 3, self.heads, self.size // self.heads])
        q, k, v = tf.unstack(tf.transpose(packed, [2, 0, 3, 1, 4]), axis=0)
        weights = tf.nn.softmax(tf.matmul(q * (self.size // self.heads) ** -0.5, k, transpose_b=True))
        return block["out"](tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), [batch, tokens, self.size]))

    def __call__(self, image):
        patches = self.patch(image)
        x = tf.reshape(patches, [tf.shape(patches)[0], patches.shape[1] * patches.shape[2], self.size])
        token = tf.broadcast_to(self.token[None], [tf.shape(x)[0], 1, self.size])
        x = tf.concat([token, x], axis=1) + self.places[:x.shape[1] + 1]
        for block in self.blocks:
            x += self.attend(block, block["first"](x))
            x += block["down"](gelu(block["up"](block["second"](x))))
        return x[:, 0]


class Greedy(tf.Module):
    """A decoder of a recurrent cell with a tf.while_loop, whose steps are written into a TensorArray."""

    def __init__(self, size=16, words=20):
        super().__init__()
        self.words = embedding(words, size)
        self.cell, self.scores = layers.GRUCell(size), layers.Dense(words)

    def __call__(self, state, steps):
        def step(i, word, state, made):
            y, _ = self.cell(tf.gather(self.words, word), [state])
            word = tf.argmax(self.scores(y), -1)
            return i + 1, word, y, made.write(i, word)
        made = tf.TensorArray(tf.int64, size=steps, element_shape=[None])
        word = tf.zeros([tf.shape(state)[0]], tf.int64)
        *_, state, made = tf.while_loop(lambda i, *_: i < steps, step, [0, word, state, made])
        return tf.transpose(made.stack()), state


def unet():
    """Convolutions, pooling, transposed convolutions and resizes of images of open size."""
    image = keras.Input([None, None, 3], name="image")
    first = layers.Conv2D(16, 3, padding="same", activation="relu")(image)
    second = layers.Conv2D(24, 3, padding="same", activation="leaky_relu")(layers.MaxPooling2D()(first))
    third = layers.SeparableConv2D(32, 3, padding="same", activation="hard_swish")(layers.AveragePooling2D(2, padding="same")(second))
    third = layers.GroupNormalization(8)(third)
    up = layers.concatenate([layers.Conv2DTranspose(24, 3, strides=2, padding="same")(third), second])
    up = layers.UpSampling2D()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(up)))
    return keras.Model(image, layers.Conv2D(4, 1, activation="softmax")(layers.concatenate([up, first])))


def pixels(image):
    """What pre- and post-processing in a graph does: resizing, padding, shuffles, rolls, gathers."""
    x = tf.image.resize(image, [24, 20], method="bilinear") + tf.image.resize(image, [24, 20], method="nearest")
    x = tf.pad(tf.nn.space_to_depth(x, 2), [[0, 0], [1, 2], [2, 1], [0, 0]], mode="REFLECT")
    x = tf.roll(x, [1, -2], [1, 2])[:, ::-1, 1:-1:2]
    values, places = tf.math.top_k(tf.reduce_max(x, [1, 2]), 4)
    return tf.gather(x, places, axis=3, batch_dims=1), values, tf.cumsum(x, axis=1, exclusive=True, reverse=True)


def logic(x, y):
    """Comparisons, choices and arithmetic of integers as TensorFlow rounds them."""
    n, m = tf.cast(x * 10, tf.int32), tf.cast(y * 10, tf.int32) * 2 + 1
    return (tf.where(tf.logical_and(x > 0, y < 0), x, y), tf.math.floormod(n, m), tf.math.floordiv(n, m),
            tf.math.reduce_logsumexp(x, -1), tf.one_hot(tf.argmax(x, -1), 5), tf.math.cumprod(x, 1), tf.clip_by_norm(x, 1.0, -1),
            tf.sign(x), tf.round(x * 3), tf.math.erf(y), tf.math.softplus(x), tf.reverse(x, [0, 1]),
            tf.boolean_mask(x, x[:, 0] > 0), tf.where(x > 1))
