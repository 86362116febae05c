#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/python_api.md: which names of the original's Python API lathe.tensorrt has. --check compares instead."""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / 'docs' / 'python_api.md'
# Reasons, by how a class's or member's name begins or ends; the first that fits counts.
REASONS = (
    (lambda name: name.startswith(('IPluginV2', 'IPluginCreator.')) or name == 'INetworkDefinition.add_plugin_v2',
     'plugins of the V2 family are written in C++'),
    (lambda name: 'Quick' in name, 'plugins that are functions are made of classes here'),
    (lambda name: name.startswith(('ISymExpr', 'PluginArg', 'KernelLaunchParams')),
     'kernels of plugins are not compiled when engines are built'),
    (lambda name: name.split('.')[-1] in ('NodeIndices', 'FallbackString'), 'Python has its own lists and texts'),
    (lambda name: name.endswith('.__del__'), 'frees nothing in the original; not needed'),
    (lambda name: True, 'not bound yet'),
)


def surface():
    for line in (ROOT / 'python' / 'surface.txt').read_text().splitlines():
        if not line.startswith('#'):
            owner, members = line.split(':', 1)
            yield owner, members.split()


def find(module, owner):
    if owner == '(module)':
        return module
    found = module
    for part in owner.removeprefix('tensorrt.').split('.'):
        found = getattr(found, part, None)
    return found


def has(target, name):
    # What every object has says nothing.
    return hasattr(target, name) and not (hasattr(object, name) and getattr(target, name) is getattr(object, name))


def page(module):
    names = there = 0
    rows = []
    for owner, members in surface():
        target = find(module, owner)
        missing = [name for name in members if target is None or not has(target, name)]
        counted = len(members) + (owner != '(module)')
        absent = len(missing) + (target is None)
        names, there = names + counted, there + counted - absent
        if target is None:
            missing = ['the class']
        reasons = {}
        for name in missing:
            reason = next(text for fits, text in REASONS if fits(f'{owner}.{name}'))
            reasons.setdefault(reason, []).append(f'`{name}`' if target is not None else name)
        told = '; '.join(f'{", ".join(each)}: {reason}' for reason, each in reasons.items())
        rows.append(f'| `{owner}` | {counted - absent} of {counted} | {told} |')
    head = ('# The Python API of TensorRT 11.1 in `lathe.tensorrt`\n\n'
            'Made by `tools/python_api.py` from `python/surface.txt` and the module. A name that is there is bound; that says '
            'nothing of its behaviour, which the tests in `tests/python` say.\n\n'
            f'{there} of {names} names are there ({100 * there / names:.1f} %).\n\n| Class | There | Missing |\n|---|---|---|\n')
    return head + '\n'.join(rows) + '\n'


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument('--build', default=str(ROOT / 'build'), help='the build folder')
    arguments.add_argument('--check', action='store_true', help='fail when the page is not what would be written')
    given = arguments.parse_args()
    sys.path.insert(0, str(pathlib.Path(given.build) / 'python'))
    from lathe import tensorrt
    import lathe.tensorrt.plugin
    text = page(tensorrt)
    if not given.check:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        sys.exit(f'{PAGE.relative_to(ROOT)} is out of date: run tools/python_api.py')


if __name__ == '__main__':
    main()
