# SPDX-License-Identifier: Apache-2.0
"""Compiles ONNX models into engines and runs them.

    engine = lathe.build('model.onnx')
    y = engine(x)
"""
from lathe import _tensorrt
from lathe.engine import Engine, Error, build, load

__version__ = _tensorrt._lathe_version()
__all__ = ['Engine', 'Error', 'build', 'load']
