# SPDX-License-Identifier: Apache-2.0
"""Types and numbers of elements, between the library and NumPy."""
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lathe._deferred import Deferred
from lathe._tensorrt import DataType

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred('numpy')

__all__ = ['nptype', 'volume']

# How the protocols of arrays spell the types that NumPy has.
TYPE_STRINGS = {DataType.FLOAT: 'f4', DataType.HALF: 'f2', DataType.INT8: 'i1', DataType.INT32: 'i4', DataType.INT64: 'i8',
                DataType.BOOL: 'b1', DataType.UINT8: 'u1'}


def volume(iterable: Iterable[int]) -> int:
    """The product of sizes; 1 where there are none."""
    product = 1
    for size in iterable:
        product *= size
    return product


def nptype(trt_type: DataType) -> type[Any]:
    """The NumPy type of a DataType; TypeError where NumPy has none."""
    if trt_type not in TYPE_STRINGS:
        raise TypeError(f'NumPy has no type for {trt_type}')
    return np.dtype(TYPE_STRINGS[trt_type]).type
