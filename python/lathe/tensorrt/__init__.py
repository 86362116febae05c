# SPDX-License-Identifier: Apache-2.0
"""The Python interface of TensorRT, generation 11, on Lathe.

What is there is listed in docs/python_api.md. Addresses and streams are plain integers; for engines of the CPU device
addresses are of the host's memory.
"""
from types import TracebackType as _TracebackType
from typing import Any as _Any

from lathe import _tensorrt
from lathe._tensorrt import *  # noqa: F403
from lathe._tensorrt import DataType
from lathe.tensorrt._dtypes import *  # noqa: F403
from lathe.tensorrt._plugins import *  # noqa: F403

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


def common_enter(this: _Any) -> _Any:
    """What the with statement calls: warns, for objects are freed when their last reference goes."""
    return this.__enter__()


def common_exit(this: _Any, exc_type: type[BaseException] | None, exc_value: BaseException | None,
                traceback: _TracebackType | None) -> None:
    """Does nothing; the object stays usable."""
