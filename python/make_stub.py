#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the stub of the extension module, which tells type checkers its classes: nanobind's, with what it cannot know.

usage: make_stub.py FOLDER_OF_THE_MODULE
"""
import pathlib
import re
import subprocess
import sys

PATTERNS = pathlib.Path(__file__).with_name('stub_patterns.txt')
# Arguments that are made of Python's own values.
MADE_OF = {'Dims': 'Sequence[int]', 'Permutation': 'Sequence[int]', 'Weights': 'numpy.typing.NDArray[Any]'}


def main():
    folder = pathlib.Path(sys.argv[1])
    stub = folder / '_tensorrt.pyi'
    # The module is loaded by itself: the package around it would need more than has been built by then.
    subprocess.run([sys.executable, '-m', 'nanobind.stubgen', '--quiet', '--module', '_tensorrt', '--import', folder,
                    '--include-private', '--pattern-file', PATTERNS, '--output-file', stub], check=True)
    text = stub.read_text()
    for name, values in MADE_OF.items():
        text = re.sub(rf'(\w: ){name}(?= \| None|, |\) ->)', rf'\1{name} | {values}', text)
    stub.write_text(text.replace('= Severity.', '= ILogger.Severity.'))


if __name__ == '__main__':
    main()
