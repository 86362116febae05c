#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheels of `lathe` and of the original's import name from what a build folder holds, without compiling anything.

The platform in the wheel's name is the oldest glibc that has all that the libraries call: manylinux_2_35_x86_64, say.
"""
import argparse
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def glibc_of(library):
    """The minor version of the newest functions of glibc 2 that a library calls."""
    needed = subprocess.run(['readelf', '--version-info', '--wide', library], capture_output=True, text=True, check=True)
    return max(int(minor) for minor in re.findall(r'GLIBC_2\.(\d+)', needed.stdout))


def tag_of(build):
    module, = (build / 'python' / 'lathe').glob('_tensorrt.*.so')
    glibc = max(glibc_of(path) for path in (module, build / 'lib' / 'liblathe.so', build / 'lib' / 'liblathe_lean.so'))
    if '.abi3.' in module.name:
        python = 'cp312-abi3'
    else:
        version = re.search(r'cpython-(\d+)', module.name)[1]
        python = f'cp{version}-cp{version}'
    return f'{python}-manylinux_2_{glibc}_{platform.machine()}'


def make(source, folder, settings=()):
    given = [word for setting in settings for word in ('-C', setting)]
    subprocess.run([sys.executable, '-m', 'pip', '--quiet', '--disable-pip-version-check', 'wheel', source, '--wheel-dir', folder,
                    '--no-index', '--no-deps', '--no-build-isolation', *given], check=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument('--build', type=pathlib.Path, default=ROOT / 'build', help='the build folder')
    arguments.add_argument('--output', type=pathlib.Path, default=ROOT / 'build' / 'wheels', help='where the wheels go')
    given = arguments.parse_args()
    make(ROOT, given.output, [f'cmake.source-dir={ROOT}/python/prebuilt', f'wheel.tags={tag_of(given.build)}',
                              f'cmake.define.LATHE_BUILD_DIR={given.build.resolve()}'])
    make(ROOT / 'python' / 'compat', given.output)


if __name__ == '__main__':
    main()
