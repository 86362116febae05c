# SPDX-License-Identifier: Apache-2.0
"""Tensors as functions of plugins see them: described, while an engine is built, or in memory, while it runs."""
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lathe._deferred import Deferred
from lathe._tensorrt import DataType, PluginTensorDesc, TensorFormat
from lathe.tensorrt._dtypes import TYPE_STRINGS, volume
from lathe.tensorrt.plugin._shapes import ShapeExpr, ShapeExprs, Size, size_of

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred('numpy')


class TensorDesc:
    """Sizes, type and format of an input or output."""

    is_size_tensor = False

    def __init__(self, shape_expr: ShapeExprs, dtype: DataType, format: TensorFormat = TensorFormat.LINEAR,
                 scale: float | None = None) -> None:
        self.shape_expr = shape_expr
        self.dtype = dtype
        self.format = format
        self.scale = scale
        self._aliased: TensorDesc | None = None

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape_expr)

    def numel(self) -> ShapeExpr:
        """The number of elements."""
        return self.shape_expr.numel()

    def like(self) -> 'TensorDesc':
        """One of the same sizes and type."""
        return TensorDesc(ShapeExprs.from_tuple(list(self.shape_expr)), self.dtype, self.format, self.scale)

    def aliased(self) -> 'TensorDesc':
        """An output that shares this input's memory."""
        made = self.like()
        made._aliased = self
        return made

    @property
    def is_aliased(self) -> bool:
        """Whether it shares the memory of an input."""
        return self._aliased is not None

    def get_aliased(self) -> 'TensorDesc | None':
        """The input whose memory it shares, or None."""
        return self._aliased


class SizeTensorDesc(TensorDesc):
    """An output without dimensions, INT32, that holds a size which the plugin computes."""

    is_size_tensor = True

    def __init__(self, opt: Size, upper_bound: Size) -> None:
        super().__init__(ShapeExprs(0), DataType.INT32)
        self.opt, self.upper_bound = size_of(opt), size_of(upper_bound)

    def expr(self) -> ShapeExpr:
        """The size, for shapes of outputs."""
        made = ShapeExpr()
        made._value = self
        return made


class Tensor:
    """Memory of an input or output. On the CPU device numpy.asarray(tensor) is a view of it, else it has the CUDA array interface.

    Valid during the call only. shape: in elements. strides: in elements, None for formats other than row-major.
    """

    def __init__(self, desc: PluginTensorDesc, data_ptr: int, on_host: bool) -> None:
        self.data_ptr = data_ptr
        self.dtype, self.format, self.scale = desc.type, desc.format, desc.scale
        self.shape = tuple(desc.dims)
        self._on_host = on_host

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def strides(self) -> Sequence[int] | None:
        """Strides in elements; None for formats other than LINEAR."""
        if self.format != TensorFormat.LINEAR:
            return None
        return tuple(volume(self.shape[axis + 1:]) for axis in range(self.ndim))

    def numel(self) -> int:
        """The number of elements."""
        return volume(self.shape)

    def _interface(self) -> dict[str, Any]:
        if self.dtype not in TYPE_STRINGS or self.format != TensorFormat.LINEAR:
            raise AttributeError(f'there is no array interface of {self.dtype} in {self.format}')
        return {'shape': self.shape, 'typestr': np.dtype(TYPE_STRINGS[self.dtype]).str, 'data': (self.data_ptr, False), 'version': 3}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not self._on_host:
            raise AttributeError('the tensor is in the memory of a GPU')
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._on_host:
            raise AttributeError('the tensor is in the memory of the host')
        return self._interface()


def size_tensor(opt: Size, upper_bound: Size) -> SizeTensorDesc:
    """An output that holds a size: opt is what to tune for, upper_bound its limit."""
    return SizeTensorDesc(opt, upper_bound)


def from_shape_expr(shape_expr: Sequence[Size] | ShapeExprs, dtype: DataType) -> TensorDesc:
    """An output of these sizes."""
    return TensorDesc(ShapeExprs.from_tuple(list(shape_expr)), dtype)
