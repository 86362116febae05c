# SPDX-License-Identifier: Apache-2.0
"""Every public class, method, property and function of the packages says what it is."""
import inspect
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']) / 'python'))
import lathe  # noqa: E402
import lathe.tensorrt.plugin  # noqa: E402
from lathe import _tensorrt  # noqa: E402
from lathe import tensorrt as trt  # noqa: E402

# What nanobind makes of methods and functions.
BOUND = (type(_tensorrt.ITensor.get_dimension_name), type(_tensorrt.get_plugin_registry))


def members(owner):
    """(name, object) of all that is public in a module or class, and in its classes."""
    for name, each in vars(owner).items():
        if name.startswith('_'):
            continue
        is_class = inspect.isclass(each) and each.__module__.startswith('lathe')
        if is_class or isinstance(each, (property, *BOUND)) or inspect.isfunction(each) and each.__module__.startswith('lathe'):
            yield f'{owner.__name__}.{name}', each
        if is_class and each.__name__ == name:
            yield from members(each)


def says_something(name, each):
    """Whether there is text beside the signatures, with which nanobind begins."""
    lines = (inspect.getdoc(each) or '').splitlines()  # overrides have the text of what they override
    signatures = (f'{name.rpartition(".")[2]}(', '(self')
    return any(line.strip() and not line.startswith(signatures) for line in lines)


class Docstrings(unittest.TestCase):
    maxDiff = None

    def test_all_is_documented(self):
        found = dict(each for owner in (lathe, trt, lathe.tensorrt.plugin) for each in members(owner))
        self.assertGreater(len(found), 700)
        self.assertEqual([name for name, each in found.items() if not says_something(name, each)], [])

    def test_signatures_alone_are_found(self):
        class Bound:
            def method(self):
                """method(self) -> None"""
        self.assertFalse(says_something('Bound.method', Bound.method))


if __name__ == '__main__':
    unittest.main()
