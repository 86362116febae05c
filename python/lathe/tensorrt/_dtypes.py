# SPDX-License-Identifier: Apache-2.0
"""Types and numbers of elements, between the library and NumPy."""
from collections.abc import Iterable
from typing import Any

import numpy as np

from lathe._tensorrt import DataType

__all__ = ['nptype', 'volume']

NUMPY_TYPES: dict[DataType, type[Any]] = {
    DataType.FLOAT: np.float32, DataType.HALF: np.float16, DataType.INT8: np.int8, DataType.INT32: np.int32,
    DataType.INT64: np.int64, DataType.BOOL: np.bool_, DataType.UINT8: np.uint8}


def volume(iterable: Iterable[int]) -> int:
    """The product of sizes; 1 where there are none."""
    product = 1
    for size in iterable:
        product *= size
    return product


def nptype(trt_type: DataType) -> type[Any]:
    """The NumPy type of a DataType; TypeError where NumPy has none."""
    if trt_type not in NUMPY_TYPES:
        raise TypeError(f'NumPy has no type for {trt_type}')
    return NUMPY_TYPES[trt_type]
