# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of the host: where they lie, and memory for outputs."""
from typing import TYPE_CHECKING, Any, TypeAlias

from lathe import tensorrt as trt
from lathe._deferred import Deferred
from lathe._device_arrays import Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Deferred('numpy')

Array: TypeAlias = 'NDArray[Any]'


def host_place(name: str, value: Any, dtype: Any, copies: bool) -> Place:
    array = _host_array(name, value, dtype)
    if not array.flags.c_contiguous:
        if not copies:
            raise TypeError(f'{name} takes a contiguous array, which stays where it is')
        array = np.ascontiguousarray(array)
    return Place(_address(array), array.shape, array)


def _address(array: Array) -> int:
    address: int = array.__array_interface__['data'][0]  # a third of the time of array.ctypes.data
    return address


def _host_array(name: str, value: Any, dtype: Any) -> Array:
    """The value as an array of NumPy, in place where it is on the host. Raises TypeError."""
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, '__dlpack_device__') or hasattr(value, '__cuda_array_interface__'):
        device = value.__dlpack_device__()[0] if hasattr(value, '__dlpack_device__') else 2
        if int(device) != 1:
            raise TypeError(f'{name} is not in the memory of the host, and this engine is for the CPU: copy it there first')
        array = np.from_dlpack(value)
    else:
        array = np.asarray(value)
    if array.dtype != dtype:
        raise TypeError(f'{name} has elements of {np.dtype(dtype)}, got {array.dtype}')
    return array


class HostOutput(trt.IOutputAllocator):
    """Memory for one output, whose shape may be known only when it has been computed; anew for each run."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self._dtype = np.dtype(dtype)
        self._memory = np.empty(0, np.uint8)
        self._offset = 0
        self._shape: tuple[int, ...] = (0,)

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        alignment = max(alignment, 64)
        self._memory = np.empty(max(size, 1) + alignment, np.uint8)
        address = _address(self._memory)
        self._offset = -address % alignment
        return address + self._offset

    def notify_shape(self, tensor_name: str, shape: trt.Dims) -> None:
        self._shape = tuple(shape)

    def take(self) -> Array:
        """The output of the last run."""
        memory, self._memory = self._memory, np.empty(0, np.uint8)
        if trt.volume(self._shape) == 0:
            return np.empty(self._shape, self._dtype)
        return np.ndarray(self._shape, self._dtype, memory, self._offset)
