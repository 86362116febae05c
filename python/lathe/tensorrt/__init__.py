# SPDX-License-Identifier: Apache-2.0
"""The Python interface of TensorRT, generation 11, on Lathe.

What is there is listed in docs/python_api.md. Addresses and streams are plain integers; for engines of the CPU device
addresses are of the host's memory.
"""
import ctypes
import warnings

import numpy as _np

from lathe import _tensorrt
from lathe._tensorrt import *  # noqa: F403
from lathe._tensorrt import (Builder, DataType, ICudaEngine, IBuilderConfig, IExecutionContext, IHostMemory, ILogger,
                             INetworkDefinition, Logger, OnnxParser, Runtime, Weights)

__version__ = '.'.join(str(part) for part in _tensorrt._interface_version)

Logger.Severity = ILogger.Severity
_tensorrt.IErrorRecorder.MAX_DESC_LENGTH = 127  # longer descriptions may be cut
for _severity in ILogger.Severity:
    setattr(ILogger, _severity.name, _severity)

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

_NUMPY_TYPES = {float32: _np.float32, float16: _np.float16, int8: _np.int8, int32: _np.int32, int64: _np.int64,
                bool: _np.bool_, uint8: _np.uint8}
_ITEM_SIZES = {float32: 4, float16: 2, bfloat16: 2, int8: 1, int32: 4, int64: 8, bool: 1, uint8: 1, fp8: 1, int4: 0.5,
               fp4: 0.5}


def volume(iterable):
    """The product of sizes; 1 where there are none."""
    product = 1
    for size in iterable:
        product *= size
    return product


def nptype(trt_type):
    """The NumPy type of a DataType; TypeError where NumPy has none."""
    if trt_type not in _NUMPY_TYPES:
        raise TypeError(f'NumPy has no type for {trt_type}')
    return _NUMPY_TYPES[trt_type]


DataType.itemsize = property(_ITEM_SIZES.get, doc='Bytes per element; None for E8M0.')


def _weights_numpy(self):
    """A view of the weights as a flat NumPy array; the Weights where NumPy has no such type."""
    if self.dtype not in _NUMPY_TYPES:
        return self
    if self.size == 0:
        return _np.empty(0, _NUMPY_TYPES[self.dtype])
    memory = (ctypes.c_byte * self.nbytes).from_address(self._address())
    memory.owner = self
    return _np.frombuffer(memory, _NUMPY_TYPES[self.dtype])


Weights.numpy = _weights_numpy


def common_enter(this):
    warnings.warn('Context managers do nothing here: objects are freed when their last reference goes.',
                  DeprecationWarning, stacklevel=2)
    return this


def common_exit(this, exc_type, exc_value, traceback):
    """Does nothing; the object stays usable."""


for _class in (Builder, ICudaEngine, IBuilderConfig, IExecutionContext, IHostMemory, ILogger, INetworkDefinition,
               OnnxParser, Runtime):
    _class.__enter__ = common_enter
    _class.__exit__ = common_exit


def _to_define(owner, *names):
    """Gives an interface methods that say what a subclass has left out."""
    for name in names:
        def method(self, *arguments, _name=name):
            raise NotImplementedError(f'{type(self).__name__} must define {_name}()')
        setattr(owner, name, method)


_to_define(ILogger, 'log')
_to_define(_tensorrt.IProfiler, 'report_layer_time')
_to_define(_tensorrt.IProgressMonitor, 'phase_start', 'step_complete', 'phase_finish')
_to_define(_tensorrt.IDebugListener, 'process_debug_tensor')
_to_define(_tensorrt.IStreamWriter, 'write')
_to_define(_tensorrt.IStreamReaderV2, 'read', 'seek')
_to_define(_tensorrt.IGpuAllocator, 'allocate', 'deallocate')
_to_define(_tensorrt.IGpuAsyncAllocator, 'allocate_async', 'deallocate_async')
_to_define(_tensorrt.IErrorRecorder, 'num_errors', 'get_error_code', 'get_error_desc', 'has_overflowed', 'clear',
           'report_error')


def _reallocate(self, memory, alignment, new_size):
    """Blocks do not grow unless a subclass says how."""


def _allocate_async(self, size, alignment, flags, stream):
    return self.allocate(size, alignment, flags)


def _deallocate_async(self, memory, stream):
    return self.deallocate(memory)


_tensorrt.IGpuAllocator.reallocate = _reallocate
_tensorrt.IGpuAllocator.allocate_async = _allocate_async
_tensorrt.IGpuAllocator.deallocate_async = _deallocate_async
