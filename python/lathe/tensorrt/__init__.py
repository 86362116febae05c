# SPDX-License-Identifier: Apache-2.0
"""The Python interface of TensorRT, generation 11, on Lathe.

What is there is listed in docs/python_api.md. Addresses and streams are plain integers; for engines of the CPU device
addresses are of the host's memory.
"""
from collections.abc import Iterable as _Iterable
from types import TracebackType as _TracebackType
from typing import Any as _Any

import numpy as _np

from lathe import _tensorrt
from lathe._tensorrt import *  # noqa: F403
from lathe._tensorrt import DataType

__version__ = '.'.join(str(part) for part in _tensorrt._interface_version)

float32 = DataType.FLOAT
float16 = DataType.HALF
bfloat16 = DataType.BF16
int8 = DataType.INT8
int32 = DataType.INT32
int64 = DataType.INT64
bool = DataType.BOOL
uint8 = DataType.UINT8
fp8 = DataType.FP8
int4 = DataType.INT4
fp4 = DataType.FP4
e8m0 = DataType.E8M0

_NUMPY_TYPES: dict[DataType, type[_Any]] = {
    float32: _np.float32, float16: _np.float16, int8: _np.int8, int32: _np.int32, int64: _np.int64, bool: _np.bool_,
    uint8: _np.uint8}


def volume(iterable: _Iterable[int]) -> int:
    """The product of sizes; 1 where there are none."""
    product = 1
    for size in iterable:
        product *= size
    return product


def nptype(trt_type: DataType) -> type[_Any]:
    """The NumPy type of a DataType; TypeError where NumPy has none."""
    if trt_type not in _NUMPY_TYPES:
        raise TypeError(f'NumPy has no type for {trt_type}')
    return _NUMPY_TYPES[trt_type]


def common_enter(this: _Any) -> _Any:
    """What the with statement calls: warns, for objects are freed when their last reference goes."""
    return this.__enter__()


def common_exit(this: _Any, exc_type: type[BaseException] | None, exc_value: BaseException | None,
                traceback: _TracebackType | None) -> None:
    """Does nothing; the object stays usable."""
