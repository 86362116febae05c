# SPDX-License-Identifier: Apache-2.0
"""The notebook docs/tutorial.ipynb is the page, and its code runs, top to bottom."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve() / 'python'))
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tutorial(unittest.TestCase):
    def test_notebook_is_the_page(self):
        done = subprocess.run([sys.executable, ROOT / 'tools' / 'notebook.py'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_code(self):
        cells = json.loads((ROOT / 'docs' / 'tutorial.ipynb').read_text())['cells']
        code = [''.join(cell['source']) for cell in cells if cell['cell_type'] == 'code']
        self.assertEqual(len(code), 7)
        names = {}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / 'examples').symlink_to(ROOT / 'examples')
            os.mkdir(docs := pathlib.Path(folder) / 'docs')
            with contextlib.chdir(docs):
                for cell in code:
                    exec(compile(cell, 'tutorial.ipynb', 'exec'), names)
        self.assertEqual(names['digit'], 1)
        self.assertEqual(names['y'].argmax(), 1)
        self.assertEqual(names['refused'].code, 'LATHE-5003')
        self.assertGreater(len(names['layers']), 2)


if __name__ == '__main__':
    unittest.main()
