# SPDX-License-Identifier: Apache-2.0
"""The code of docs/pytorch.md runs, top to bottom."""
import contextlib
import pathlib
import re
import unittest

from pytorch import Cases

PAGE = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'pytorch.md'


class Page(Cases):
    def test_code(self):
        blocks = re.findall(r'```python\n(.*?)```', PAGE.read_text(), re.S)
        self.assertEqual(len(blocks), 5)
        names = {}
        with contextlib.chdir(self.cache):
            for block in blocks:
                exec(compile(block, str(PAGE), 'exec'), names)
        model, trained, x = names['model'], names['trained'], names['x']
        self.assert_same(names['again'](x), model(x))
        self.assert_same(names['fast'](x), trained(x))


if __name__ == '__main__':
    unittest.main()
