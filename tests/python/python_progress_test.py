# SPDX-License-Identifier: Apache-2.0
"""Bars of builds: in a terminal, in a notebook, and nowhere else."""
import os
import pathlib
import pty
import re
import subprocess
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve() / 'python'
sys.path.insert(0, str(PACKAGES))

import lathe  # noqa: E402

DIGITS = ROOT / 'examples' / 'digits' / 'digits.onnx'
ONE = {'image': (1, 1, 8, 8)}
SCRIPT = f'import lathe; lathe.build({str(DIGITS)!r}, shapes={ONE!r}, progress=True)'


def run(**options):
    return subprocess.run([sys.executable, '-c', SCRIPT], env=os.environ | {'PYTHONPATH': str(PACKAGES)}, check=True, **options)


class Notebook:
    """IPython as far as a bar needs it."""

    def __init__(self):
        self.updates, self.display_data = [], mock.Mock(return_value=self)

    def update(self, data, raw):
        self.updates.append(data)

    def modules(self):
        shell = mock.Mock(spec=['kernel'])
        return {'IPython': mock.Mock(get_ipython=lambda: shell), 'IPython.display': mock.Mock(display=self.display_data)}


class Progress(unittest.TestCase):
    def test_in_a_terminal(self):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        run(stderr=terminal)
        os.close(terminal)
        told = ''
        while not told.endswith('\r\x1b[K'):  # the bar is taken away
            told += os.read(master, 4096).decode()
        drawn = re.findall(r'\r\[(#*) *\] +(\d+)% ([a-z ]+)\x1b\[K', told)
        self.assertIn('importing the model', [phase for _, _, phase in drawn])
        self.assertIn('writing the plan', [phase for _, _, phase in drawn])
        for bar, percent, _ in drawn:
            self.assertAlmostEqual(len(bar), 30 * int(percent) / 100, delta=0.7)

    def test_in_a_notebook(self):
        notebook = Notebook()
        with mock.patch.dict(sys.modules, notebook.modules()):
            lathe.build(DIGITS, shapes=ONE, progress=True)
        self.assertTrue(any(re.fullmatch(r'<progress value="[\d.]+" max="1"></progress> tuning: \d+%', data.get('text/html', ''))
                            for data in notebook.updates), notebook.updates)
        self.assertEqual(notebook.updates[-1], {'text/plain': ''})

    def test_goes_when_a_build_fails(self):
        notebook = Notebook()
        with mock.patch.dict(sys.modules, notebook.modules()), self.assertRaises(lathe.Error):
            lathe.build(DIGITS, shapes={'image': (1, 1, 7, 8)}, progress=True)
        self.assertEqual(notebook.updates[-1], {'text/plain': ''})

    def test_in_files_and_unless_asked_for(self):
        self.assertEqual(run(capture_output=True).stderr, b'')
        notebook = Notebook()
        with mock.patch.dict(sys.modules, notebook.modules()):
            lathe.build(DIGITS, shapes=ONE)
        notebook.display_data.assert_not_called()


if __name__ == '__main__':
    unittest.main()
