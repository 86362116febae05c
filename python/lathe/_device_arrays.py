# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of GPUs, of whatever library: where they lie, and when they may be read."""
import ctypes
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from lathe._deferred import Deferred

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred('numpy')

# Of DLPack.
CUDA, CUDA_MANAGED = 2, 13
KINDS = {0: 'i', 1: 'u', 2: 'f', 6: 'b'}
LEGACY_STREAM = 1  # what DLPack and CUDA's array interface call the default stream


class Place(NamedTuple):
    """keeper: what holds the memory while it is looked at."""

    address: int
    shape: tuple[int, ...]
    keeper: Any


class _Tensor(ctypes.Structure):
    """DLTensor, with which DLManagedTensor begins."""

    _fields_ = [('data', ctypes.c_void_p), ('device_type', ctypes.c_int32), ('device_id', ctypes.c_int32),
                ('rank', ctypes.c_int32), ('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16),
                ('shape', ctypes.POINTER(ctypes.c_int64)), ('strides', ctypes.POINTER(ctypes.c_int64)),
                ('byte_offset', ctypes.c_uint64)]


def place_of(name: str, value: Any, dtype: str, stream: int, writes: bool = False) -> Place:
    """Where an array with __cuda_array_interface__ or DLPack lies, of a type as in TYPE_STRINGS; what its library does to it is done
    before what the stream is given from now on. Raises TypeError for arrays elsewhere, of other types, or with gaps."""
    if hasattr(value, '__cuda_array_interface__'):
        place, found, strides = _by_interface(value, stream, writes, name)
    elif hasattr(value, '__dlpack__') and int(value.__dlpack_device__()[0]) in (CUDA, CUDA_MANAGED):
        place, found, strides = _by_dlpack(value, stream)
    else:
        raise TypeError(f'{name} is not in the memory of a GPU, where this engine runs: give it an array with '
                        '__cuda_array_interface__ or DLPack of one')
    if found != dtype:
        raise TypeError(f'{name} has elements of {np.dtype(dtype)}, got {found}')
    if not _contiguous(place.shape, strides):
        raise TypeError(f'{name} takes a contiguous array, got strides of {strides} elements for shape {place.shape}')
    return place


def _by_interface(value: Any, stream: int, writes: bool, name: str) -> tuple[Place, str, Any]:
    interface = value.__cuda_array_interface__
    address, is_read_only = interface['data']
    if writes and is_read_only:
        raise TypeError(f'output {name} takes an array that can be written to')
    producer = interface.get('stream')
    if producer is not None and producer != (stream or LEGACY_STREAM):
        _wait_for(producer)
    text = interface['typestr'][1:]
    size, strides = int(text[1:]), interface.get('strides')
    elements = None if strides is None else tuple(stride // size for stride in strides)
    return Place(address, tuple(interface['shape']), value), text, elements


def _by_dlpack(value: Any, stream: int) -> tuple[Place, str, Any]:
    capsule = value.__dlpack__(stream=stream or LEGACY_STREAM)
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer_of(capsule, b'dltensor'))
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    strides = tuple(tensor.strides[axis] for axis in range(tensor.rank)) if tensor.strides else None
    found = f'{KINDS.get(tensor.code, "V")}{tensor.bits // 8}' if tensor.lanes == 1 else f'vectors of {tensor.lanes}'
    return Place((tensor.data or 0) + tensor.byte_offset, shape, (value, capsule)), found, strides


def _contiguous(shape: tuple[int, ...], strides: Any) -> bool:
    if strides is None or 0 in shape:
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _wait_for(stream: int) -> None:
    """Until the stream has done its work. Raises RuntimeError."""
    driver = ctypes.CDLL(os.environ.get('LATHE_CUDA_DRIVER') or 'libcuda.so.1')
    error = driver.cuStreamSynchronize(ctypes.c_void_p(stream))
    if error != 0:
        raise RuntimeError(f'the stream {stream:#x} of an array cannot be waited for: error {error} of CUDA')
