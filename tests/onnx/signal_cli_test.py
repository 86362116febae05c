#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DFT and STFT, compared with NumPy's transforms of doubles; MelWeightMatrix, and TfIdfVectorizer, compared with counting."""
import collections
import itertools
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
random = np.random.default_rng(3)


def to_complex(x):
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(np.complex128)


def to_parts(x):
    return np.stack([x.real, x.imag], -1)


class Signal(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.count = 0

    def write(self, op, opset, operands, wanted, open_axis=None, inputs=1, **attributes):
        """One case, whose first operands are inputs, the first with an open axis; None is an omitted one."""
        folder = self.folder / "cases" / "node" / f"case_{self.count}"
        self.count += 1
        (folder / "test_data_set_0").mkdir(parents=True)
        names = ["" if array is None else f"x{i}" for i, array in enumerate(operands)]
        tensors = [numpy_helper.from_array(np.ascontiguousarray(a), n) for a, n in zip(operands, names) if n]
        output = numpy_helper.from_array(np.ascontiguousarray(wanted.astype(np.float64 if operands[0].dtype == np.float64 else np.float32)), "y")
        info = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in tensors[:inputs]]
        if open_axis is not None:
            info[0].type.tensor_type.shape.dim[open_axis].dim_param = "n"
        result = helper.make_tensor_value_info("y", output.data_type, [f"y{d}" for d in range(wanted.ndim)])
        graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", info, [result], tensors[inputs:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10),
                  folder / "model.onnx")
        files = [(f"input_{i}", tensor) for i, tensor in enumerate(tensors[:inputs])]
        for name, proto in (*files, ("output_0", output)):
            (folder / "test_data_set_0" / f"{name}.pb").write_bytes(proto.SerializeToString())

    def all_are(self, verdict):
        result = subprocess.run([LATHE, "conformance", self.folder, "--mode=runtime"], capture_output=True, text=True)
        wanted = " ".join(f"{each}={self.count if each == verdict else 0}" for each in ("passed", "failed", "unsupported"))
        self.assertEqual(result.stdout.strip().splitlines()[-1], wanted, result.stdout[-3000:])

    def transform(self, dims, axis, points, opset=20, inverse=0, onesided=0, **how):
        x = random.standard_normal(dims)  # f64: sums that cancel out are too far off in f32 for the official tolerance
        length = None if points is None else np.int64(points)
        place = axis % len(dims)  # also where the parts are no dimension
        if inverse and onesided:
            wanted = np.fft.irfft(to_complex(x), points, place)[..., None]
        elif onesided:
            wanted = to_parts(np.fft.rfft(x[..., 0].astype(np.float64), points, place))
        elif inverse:
            wanted = to_parts(np.fft.ifft(to_complex(x), points, place))
        else:
            wanted = to_parts(np.fft.fft(to_complex(x), points, place))
        if opset < 20:
            self.write("DFT", opset, [x] if length is None else [x, length], wanted, axis=axis, inverse=inverse,
                       onesided=onesided, **how)
        else:
            self.write("DFT", opset, [x, length, np.int64(axis)], wanted, inverse=inverse, onesided=onesided, **how)

    def test_dft(self):
        for opset, axis, points in itertools.product((17, 20), (1, 2), (None, 7, 12, 5)):
            for parts, inverse, onesided in ((1, 0, 0), (2, 0, 0), (1, 0, 1), (2, 1, 0), (1, 1, 0)):
                self.transform((2, 9, 8, parts), axis, points, opset, inverse, onesided)
            # What is left out of the imaginary parts of the first and the middle bin has no meaning in a real signal.
            self.transform((2, 5, 4, 2), axis, points, opset, 1, 1)
        self.transform((10, 1), 0, None)
        self.transform((1, 1, 3, 1), 1, 4)
        self.all_are("passed")

    def test_mel_weights(self):
        for bands, points, rate, low, high in ((8, 16, 8192, 0, 4096), (40, 400, 16000, 20, 7600), (5, 7, 100, 10, 10)):
            corners = np.arange(bands + 2) * (self.mel(high) - self.mel(low)) / (bands + 2) + self.mel(low)
            corners = np.floor((points + 1) * 700 * (10 ** (corners / 2595) - 1) / rate).astype(int)
            wanted = np.zeros((points // 2 + 1, bands))
            for band, (left, middle, right) in enumerate(zip(corners, corners[1:], corners[2:])):
                for i in range(left, right):
                    wanted[i, band] = (i - left) / (middle - left) if i < middle else (right - i) / (right - middle)
                wanted[middle, band] = 1
            self.write("MelWeightMatrix", 17, [np.int64(bands), np.int64(points), np.int64(rate), np.float64(low), np.float64(high)],
                       wanted)
        self.all_are("passed")

    @staticmethod
    def mel(frequency):
        return 2595 * np.log10(1 + frequency / 700)

    # The matrix of sines and cosines is computed with the rest.
    def test_open_sizes(self):
        for axis, points in itertools.product((1, 2), (None, 7)):
            for parts, inverse, onesided in ((1, 0, 0), (2, 0, 0), (1, 0, 1), (2, 1, 0), (2, 1, 1)):
                self.transform((2, 9, 8, parts), axis, points, 17, inverse, onesided, open_axis=axis)
        for axis in (0, 1, -2):  # known while running
            self.transform((3, 4, 5, 1), axis, None, 20, 0, 1, inputs=2)
        x = random.standard_normal((2, 50, 1))
        frames = np.lib.stride_tricks.sliding_window_view(x[..., 0], 16, 1)[:, ::5]
        self.write("STFT", 17, [x, np.int64(5), None, np.int64(16)], to_parts(np.fft.rfft(frames)), open_axis=1, inputs=3)
        self.write("STFT", 17, [x, np.int64(5), np.hanning(16)], to_parts(np.fft.rfft(frames * np.hanning(16))), open_axis=1)
        self.all_are("passed")

    def test_what_is_too_large_is_refused(self):
        x = np.ones((1, 4, 1), np.float32)
        self.write("DFT", 17, [x, np.int64(1 << 40)], x, axis=1)
        self.write("DFT", 17, [x, np.int64(2**63 - 1)], x, axis=1)
        for columns, skips in (([2**63 - 1], 0), ([1 << 40], 0), ([0] * 65, 0), ([0], 2**63 - 1)):
            self.write("TfIdfVectorizer", 9, [np.ones(10**6 if skips else 3, np.int64)], x, mode="TF", max_skip_count=skips,
                       min_gram_length=2 if skips else 1, max_gram_length=2 if skips else 1, ngram_counts=[0] * (2 if skips else 1),
                       ngram_indexes=columns, pool_int64s=[1, 1] if skips else list(range(len(columns))))
        self.all_are("unsupported")

    def test_stft(self):
        for parts, step, with_window in itertools.product((1, 2), (1, 8, 5), (False, True)):
            for onesided in (0, 1)[:3 - parts]:
                x = random.standard_normal((2, 64, parts))
                window = np.hanning(16) if with_window else None
                frames = np.lib.stride_tricks.sliding_window_view(to_complex(x), 16, 1)[:, ::step]
                frames = frames * (1 if window is None else window.astype(np.float64))
                wanted = to_parts(np.fft.fft(frames))[:, :, :9 if onesided else 16]
                self.write("STFT", 17, [x, np.int64(step), window, None if with_window else np.int64(16)], wanted,
                           onesided=onesided)
        self.all_are("passed")

    def test_tf_idf(self):
        grams = [(2,), (3,), (5,), (5, 4), (6, 7), (2, 2), (7, 5, 6), (2, 2, 2)]
        weights = [0.5, 2, 3, 1, 4, 0.25, 1, 8, 2]
        cases = list(itertools.product(("TF", "IDF", "TFIDF"), (0, 1, 4), ((1, 1), (1, 3), (2, 3)), (1, 2), (12,), ([4, 0, 2, 1, 3, 6, 5, 7],)))
        for length, columns in ((12, [4, 0, 2, 1, 3, 8, 5, 7]), (12, [4, 0, 2, 1, 2, 6, 2, 7]), (1, range(8)), (0, range(8))):
            cases.append(("TF", 1, (2, 3), 2, length, list(columns)))  # columns of no n-gram, and of several; no place for any
        for mode, skips, (least, most), rank, length, columns in cases:
            x = random.integers(2, 8, (3, length)[-rank:]).astype(np.int32 if skips else np.int64)
            rows = []
            for row in np.atleast_2d(x):
                found = collections.Counter()
                for n, distance in itertools.product(range(least, most + 1), range(1, skips + 2)):
                    if n > 1 or distance == 1:
                        found.update(tuple(row[i:i + (n - 1) * distance + 1:distance])
                                     for i in range(len(row) - (n - 1) * distance))
                rows.append([sum(found[gram] for gram, column in zip(grams, columns) if column == i) for i in range(max(columns) + 1)])
            counts, weight = np.array(rows), weights[:max(columns) + 1]
            wanted = {"TF": counts, "IDF": (counts > 0) * weight, "TFIDF": counts * weight}[mode]
            self.write("TfIdfVectorizer", 9, [x], wanted[0] if rank == 1 else wanted, mode=mode, max_skip_count=skips,
                       min_gram_length=least, max_gram_length=most, ngram_counts=[0, 3, 9], ngram_indexes=columns,
                       pool_int64s=[e for gram in grams for e in gram], weights=[float(w) for w in weight])
        self.all_are("passed")


if __name__ == "__main__":
    unittest.main()
