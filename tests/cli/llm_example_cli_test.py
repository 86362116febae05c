#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The text that examples/llm makes, prompt and steps with caches in place, is what ONNX's reference evaluator makes of the
same network when it reads all of the text anew for each token."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from onnx.reference import ReferenceEvaluator

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
ROOT = pathlib.Path(__file__).resolve().parents[2]
EMULATED = {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so")}
sys.path.insert(0, str(ROOT / "examples/llm"))
import decoder  # noqa: E402

SHAPE = decoder.Shape(layers=2, width=48, heads=6, key_heads=2, hidden=72, context=40)
PROMPT, TOKENS, SEED, TEMPERATURE = b"In the beginning", 20, 7, 0.8


def noise():
    """What std::mt19937 gives the program."""
    source = np.random.MT19937()
    source._legacy_seeding(SEED)
    return ((source.random_raw(SHAPE.context) >> 8) / np.float32(1 << 24)).astype(np.float32)


def reference(file):
    network = ReferenceEvaluator(file)
    cache = np.zeros((1, SHAPE.key_heads, SHAPE.context, SHAPE.size), np.float32)
    text = list(PROMPT)
    for _ in range(TOKENS):
        feeds = {name: cache for name in network.input_names if "." in name}
        feeds |= {"tokens": np.array([text]), "place": np.array([0]), "noise": noise(),
                  "temperature": np.array([TEMPERATURE], np.float32)}
        text.append(int(network.run(["next"], feeds)[0][0, 0]))
    return bytes(text) + b"\n"


class LlmExample(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = f"{self.folder.name}/decoder.onnx"
        decoder.write(SHAPE, decoder.random_weights(SHAPE), self.model)

    def run_example(self, *words, **variables):
        return subprocess.run([BUILD / "bin/example_llm", *words], capture_output=True, env=os.environ | variables)

    def tell(self, *words, **variables):
        result = self.run_example(self.model, "--prompt=" + PROMPT.decode(), f"--tokens={TOKENS}", f"--seed={SEED}",
                                  f"--temperature={TEMPERATURE}", *words, **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr.decode(), r"prompt of 16 tokens: [\d.]+ ms; then [\d.]+ tokens/s")
        return result.stdout

    def test_caches_change_nothing(self):
        expected = reference(self.model)
        self.assertEqual(self.tell("--target=cpu"), expected)
        self.assertEqual(self.tell("--target=cpu", "--batch=3"), expected)
        self.assertEqual(self.tell("--target=cuda", **EMULATED), expected)

    def test_an_engine_is_kept(self):
        plan = f"{self.folder.name}/decoder.plan"
        first = self.tell("--target=cpu", f"--plan={plan}")
        os.remove(self.model)
        self.assertEqual(self.tell(f"--plan={plan}"), first)

    def test_refusals(self):
        long = self.run_example(self.model, "--prompt=abc", "--tokens=39", "--target=cpu")
        self.assertEqual((long.returncode, long.stdout), (1, b""))
        self.assertIn(b"3 tokens of prompt and 39 more exceed the context of 40", long.stderr)
        for words in ((), (self.model, "--tokens=0"), (self.model, "--unknown=1"), (self.model, "--prompt=")):
            self.assertEqual(self.run_example(*words).returncode, 2, words)
        missing = self.run_example("nothing.onnx", "--target=cpu")
        self.assertEqual(missing.returncode, 1)
        self.assertIn(b"nothing.onnx", missing.stderr)


if __name__ == "__main__":
    unittest.main()
