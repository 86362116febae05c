# SPDX-License-Identifier: Apache-2.0
"""The packages, with the generated stub of the module, pass mypy --strict, and so do programs that use them rightly, with
pyright as well."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

PACKAGES = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve() / 'python'
PROGRAMS = pathlib.Path(__file__).parent / 'typed'


def mypy(*arguments):
    return subprocess.run([sys.executable, '-m', 'mypy', '--config-file', PROGRAMS / 'mypy.ini', '--cache-dir',
                           PACKAGES.parent / 'mypy_cache', *arguments],
                          cwd=PACKAGES, env=os.environ | {'MYPYPATH': str(PACKAGES)}, capture_output=True, text=True)


def pyright(program):
    """The lines in which pyright finds errors."""
    done = subprocess.run([sys.executable, '-m', 'pyright', '--outputjson', '--pythonpath', sys.executable, program], cwd=PACKAGES,
                          env=os.environ | {'PYTHONPATH': str(PACKAGES)}, capture_output=True, text=True)
    return {each['range']['start']['line'] + 1 for each in json.loads(done.stdout)['generalDiagnostics'] if each['severity'] == 'error'}


class Types(unittest.TestCase):
    def test_packages_and_a_program(self):
        checked = mypy('lathe', PROGRAMS / 'program.py')
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_mistakes_are_found(self):
        path = PROGRAMS / 'mistakes.py'
        wrong = {number for number, line in enumerate(path.read_text().splitlines(), 1) if '# mistake' in line}
        self.assertEqual({int(line.split(':')[1]) for line in mypy(path).stdout.splitlines() if ': error:' in line}, wrong)
        self.assertEqual(pyright(path), wrong)

    def test_pyright_takes_a_program(self):
        self.assertEqual(pyright(PROGRAMS / 'program.py'), set())

    def test_marker(self):
        self.assertTrue((PACKAGES / 'lathe' / 'py.typed').exists())
        self.assertIn('def get_layer(self, index: int) -> ILayer', (PACKAGES / 'lathe' / '_tensorrt.pyi').read_text())


if __name__ == '__main__':
    unittest.main()
