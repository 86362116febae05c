# SPDX-License-Identifier: Apache-2.0
"""Wheels of what the build folder holds, installed into a fresh environment and used outside of this tree."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve()
DIGITS = ROOT / 'examples' / 'digits' / 'digits.onnx'
MEGABYTES = 15
PIP = [sys.executable, '-m', 'pip', '--disable-pip-version-check']
# What a user's program gets: no PYTHONPATH, no variable of Lathe's.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(('PYTHON', 'LATHE', 'LD_LIBRARY'))}

RUN_DIGITS = """
import numpy as np
import lathe
engine = lathe.build({model!r})
np.save('y.npy', engine(np.load('x.npy')))
lathe.Engine(engine.plan)
print(lathe.__file__)
"""

BUILD_WITH_RUNTIME = """
import tensorrt as trt
logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
network = builder.create_network(0)
parser = trt.OnnxParser(network, logger)
assert parser.parse_from_file({model!r})
config = builder.create_builder_config()
config._target = 'cpu'
config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
plan = builder.build_serialized_network(network, config)
print(trt.__name__, plan.nbytes)
"""


def checked(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f'{command}: {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        checked(sys.executable, ROOT / 'tools' / 'wheel.py', '--build', BUILD, '--output', cls.path)
        cls.wheel, = cls.path.glob('lathe-*.whl')
        cls.compat, = cls.path.glob('lathe_tensorrt-*.whl')
        checked(sys.executable, '-m', 'venv', '--without-pip', cls.path / 'venv')
        cls.python = cls.path / 'venv' / 'bin' / 'python'
        checked(*PIP, '--python', cls.python, 'install', '--no-index', '--no-deps', cls.wheel, cls.compat)
        # The one package that it needs, which the test does not fetch.
        cls.packages, = (cls.path / 'venv').glob('lib/python*/site-packages')
        numpy = pathlib.Path(np.__file__).parent
        for each in (numpy, numpy.with_name('numpy.libs')):
            if each.exists():
                (cls.packages / each.name).symlink_to(each)

    def run_outside(self, script):
        return checked(self.python, '-c', script.format(model=str(DIGITS)), cwd=self.path, env=CLEAN)

    def test_size(self):
        self.assertLessEqual(self.wheel.stat().st_size, MEGABYTES << 20)

    def test_libraries_are_stripped_and_there_once(self):
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(self.path / 'unpacked')
        binaries = [path for path in (self.path / 'unpacked').rglob('*')
                    if path.is_file() and path.read_bytes()[:4] == b'\x7fELF']
        self.assertEqual(sum(path.name.startswith('liblathe') for path in binaries), 2, binaries)
        for path in binaries:
            self.assertNotIn('.symtab', checked('readelf', '--section-headers', '--wide', path), path)

    def test_digits(self):
        session = onnxruntime.InferenceSession(DIGITS)
        shape = [size if isinstance(size, int) else 1 for size in session.get_inputs()[0].shape]
        x = np.random.default_rng(0).random(shape, np.float32)
        np.save(self.path / 'x.npy', x)
        self.assertEqual(self.run_outside(RUN_DIGITS).strip(), str(self.packages / 'lathe' / '__init__.py'))
        np.testing.assert_allclose(np.load(self.path / 'y.npy'), session.run(None, {session.get_inputs()[0].name: x})[0],
                                   rtol=1e-4, atol=1e-5)

    def test_name_of_the_original_and_a_plan_with_its_runtime(self):
        name, size = self.run_outside(BUILD_WITH_RUNTIME).split()
        self.assertEqual(name, 'lathe.tensorrt')
        self.assertGreater(int(size), 1 << 20)  # the lean runtime is in the wheel and went into the plan

    def test_what_the_installation_says_of_itself(self):
        script = 'import importlib.metadata as m, lathe; print(m.version("lathe"), lathe.__version__, *m.requires("lathe"))'
        version, own, *requires = self.run_outside(script).split()
        self.assertEqual((version, requires), (own, ['numpy']))

    def test_backend_of_pytorch(self):
        script = 'import importlib.metadata as m; print(*(e.value for e in m.entry_points(group="torch_dynamo_backends", name="lathe")))'
        self.assertEqual(self.run_outside(script).strip(), 'lathe.torch:backend')
        self.assertTrue((self.packages / 'lathe' / 'torch' / '_backend.py').exists())

    def test_systems_that_it_is_for(self):
        glibc = re.search(r'-manylinux_2_(\d+)_', self.wheel.name)
        self.assertTrue(17 <= int(glibc[1]) <= int(os.confstr('CS_GNU_LIBC_VERSION').rpartition('.')[2]), self.wheel.name)

    def test_names_of_the_runtimes(self):
        self.assertEqual(self.run_outside('import tensorrt_lean, tensorrt_dispatch as d; print(d.Runtime.__name__)').strip(),
                         'Runtime')

    def test_installing_lathe_leaves_it_out(self):
        checked('cmake', '--install', BUILD, '--prefix', self.path / 'installed')
        self.assertTrue((self.path / 'installed' / 'include' / 'lathe.h').exists())
        self.assertFalse((self.path / 'installed' / 'lathe').exists())

    def test_types(self):
        for name in ('py.typed', '_tensorrt.pyi'):
            self.assertTrue((self.packages / 'lathe' / name).exists())

    def test_compiler_can_be_started(self):
        self.assertTrue(os.access(self.packages / 'lathe' / 'lathe-compiler', os.X_OK))


if __name__ == '__main__':
    unittest.main()
