# SPDX-License-Identifier: Apache-2.0
"""What the tests of lathe.torch share. They need PyTorch, which `make setup` does not install, and are skipped without it."""
import contextlib
import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
import warnings

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'))
MISSING = [name for name in ('torch', 'onnxscript') if importlib.util.find_spec(name) is None]
if MISSING:
    raise unittest.SkipTest(f'{", ".join(MISSING)} is not installed in {sys.executable}')

import torch  # noqa: E402

import lathe.torch  # noqa: E402


class Cases(unittest.TestCase):
    """Each test has a folder of engines of its own, and starts without compiled functions."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = folder.name
        self.enterContext(unittest.mock.patch.dict(os.environ, LATHE_CACHE_DIR=folder.name))
        self.addCleanup(torch._dynamo.reset)
        torch.manual_seed(0)
        self.enterContext(torch.no_grad())

    @contextlib.contextmanager
    def warned(self, count=0):
        """The texts of Lathe's warnings in the block, of which there must be so many."""
        texts = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            yield texts
        texts += [str(each.message) for each in caught if str(each.message).startswith('lathe: ')]
        self.assertEqual(len(texts), count, texts)

    def engines(self):
        """How many engines have been built."""
        return len(list(pathlib.Path(self.cache).rglob('*.engine')))

    def assert_same(self, have, want, **tolerance):
        torch.testing.assert_close(have, want, **tolerance)


class Perceptron(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, width), torch.nn.Linear(width, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@contextlib.contextmanager
def endless_with_open_sizes():
    """A with statement in which torch.export.export() comes to no end where sizes are open."""
    export = torch.export.export

    def endless(*args, dynamic_shapes=None, **options):
        leaves = torch.utils._pytree.tree_leaves(dynamic_shapes)
        while any(each is not None for each in leaves):
            pass
        return export(*args, dynamic_shapes=dynamic_shapes, **options)
    with unittest.mock.patch('torch.export.export', endless):
        yield
