# SPDX-License-Identifier: Apache-2.0
"""Models of the libraries that tools/exports/models.py names, both ways; `make test-torch` compiles many more."""
import importlib.util
import pathlib
import sys
import unittest

from pytorch import Cases

EXPORTS = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'exports'
MISSING = [name for name in ('torchvision', 'transformers', 'onnx') if importlib.util.find_spec(name) is None]
if MISSING:
    raise unittest.SkipTest(f'{", ".join(MISSING)} is not installed in {sys.executable}')
sys.path.insert(0, str(EXPORTS))
import test_torch  # noqa: E402


class Models(Cases):
    # S235: each strategy, too.
    def test_cosine(self):
        for name in ('bert', 'squeezenet'):
            with self.subTest(name):
                found = test_torch.measure(name, ['backend', 'module'], {'threads': 1, 'budget': 0}, 'cpu')
                self.assertEqual(list(found['cosine']), ['backend', 'strategies', 'module'])
                self.assertGreater(min(found['cosine'].values()), test_torch.LEAST_COSINE)
                self.assertEqual(found['stays'], {'backend': '', 'module': ''})


if __name__ == '__main__':
    unittest.main()
