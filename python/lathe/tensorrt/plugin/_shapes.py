# SPDX-License-Identifier: Apache-2.0
"""Sizes of tensors as expressions, which are evaluated when the library asks for shapes."""
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Union

from lathe._tensorrt import DimensionOperation, DimsExprs, IDimensionExpr, IExprBuilder

Size = Union[int, 'ShapeExpr']
_CONSTANTS: dict[DimensionOperation, Callable[[int, int], int]] = {
    DimensionOperation.SUM: lambda a, b: a + b, DimensionOperation.SUB: lambda a, b: a - b,
    DimensionOperation.PROD: lambda a, b: a * b, DimensionOperation.MAX: max, DimensionOperation.MIN: min,
    DimensionOperation.FLOOR_DIV: lambda a, b: a // b, DimensionOperation.CEIL_DIV: lambda a, b: -(-a // b),
    DimensionOperation.EQUAL: lambda a, b: int(a == b), DimensionOperation.LESS: lambda a, b: int(a < b)}


class ShapeExpr:
    """A size: a number, a size of an input, one that the plugin computes, or an operation on two of them.

    A size of an input is unknown (is_fake) while a network's layer is added, and an expression of the library when it asks for
    shapes. Two sizes are compared by an expression, 1 or 0, which has no truth in Python unless it is constant.
    """

    def __init__(self, value: 'int | IDimensionExpr | ShapeExpr | None' = None) -> None:
        self._value: Any = value._value if isinstance(value, ShapeExpr) else value

    def _operation(self, op: DimensionOperation, other: Size) -> 'ShapeExpr':
        return ShapeExpr.of(op, self, size_of(other))

    @classmethod
    def of(cls, op: DimensionOperation, first: 'ShapeExpr', second: 'ShapeExpr') -> 'ShapeExpr':
        made = cls()
        made._value = (op, first, second)
        return made

    def __add__(self, other: Size) -> 'ShapeExpr':
        return self._operation(DimensionOperation.SUM, other)

    def __sub__(self, other: Size) -> 'ShapeExpr':
        return self._operation(DimensionOperation.SUB, other)

    def __mul__(self, other: Size) -> 'ShapeExpr':
        return self._operation(DimensionOperation.PROD, other)

    def __floordiv__(self, other: Size) -> 'ShapeExpr':
        return self._operation(DimensionOperation.FLOOR_DIV, other)

    def __radd__(self, other: int) -> 'ShapeExpr':
        return ShapeExpr(other) + self

    def __rsub__(self, other: int) -> 'ShapeExpr':
        return ShapeExpr(other) - self

    def __rmul__(self, other: int) -> 'ShapeExpr':
        return ShapeExpr(other) * self

    def __eq__(self, other: object) -> 'ShapeExpr':  # type: ignore[override]
        return self._operation(DimensionOperation.EQUAL, other)  # type: ignore[arg-type]

    def __lt__(self, other: Size) -> 'ShapeExpr':
        return self._operation(DimensionOperation.LESS, other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        if not self.is_constant:
            raise RuntimeError('whether a size is 0 is not known before the engine runs')
        return self.constant_value() != 0

    @property
    def is_fake(self) -> bool:
        """Whether it stands for sizes that are not known yet at all."""
        if isinstance(self._value, tuple):
            return any(operand.is_fake for operand in self._value[1:])
        return self._value is None

    @property
    def is_size_tensor(self) -> bool:
        """Whether a run finds the size."""
        return hasattr(self._value, 'upper_bound')

    @property
    def is_constant(self) -> bool:
        """Whether the size is known now."""
        if isinstance(self._value, tuple):
            return all(operand.is_constant for operand in self._value[1:])
        return isinstance(self._value, int) or isinstance(self._value, IDimensionExpr) and self._value.is_constant()

    def constant_value(self) -> int:
        """Raises RuntimeError where the size is not constant."""
        if not self.is_constant:
            raise RuntimeError('the size is not constant')
        if isinstance(self._value, tuple):
            op, first, second = self._value
            return _CONSTANTS[op](first.constant_value(), second.constant_value())
        return int(self._value if isinstance(self._value, int) else self._value.get_constant_value())

    def evaluate(self, builder: IExprBuilder, declared: Sequence[tuple[object, IDimensionExpr]] = ()) -> IDimensionExpr:
        """The library's expression. declared: those of size tensors."""
        if isinstance(self._value, tuple):
            op, first, second = self._value
            return builder.operation(op, first.evaluate(builder, declared), second.evaluate(builder, declared))
        if isinstance(self._value, int):
            return builder.constant(self._value)
        if isinstance(self._value, IDimensionExpr):
            return self._value
        for size, expr in declared:
            if size is self._value:
                return expr
        raise ValueError('a size tensor that shapes use has to be among the outputs')

    def __repr__(self) -> str:
        return f'ShapeExpr({self.constant_value() if self.is_constant else "?"})'


def size_of(value: Size) -> ShapeExpr:
    """Raises ValueError where the value is no size."""
    if isinstance(value, ShapeExpr):
        return ShapeExpr(value)
    try:
        return ShapeExpr(operator.index(value))
    except TypeError:
        raise ValueError(f'sizes and numbers are wanted, got {value!r}') from None


class ShapeExprs:
    """The sizes of a tensor."""

    def __init__(self, length: int, sizes: Iterable[Size] = ()) -> None:
        if not 0 <= length <= 8:
            raise ValueError(f'tensors have 0 to 8 dimensions, not {length}')
        self._sizes = [size_of(size) for size in sizes] or [ShapeExpr() for _ in range(length)]

    @classmethod
    def from_tuple(cls, shape_exprs: Sequence[Size]) -> 'ShapeExprs':
        return cls(len(shape_exprs), shape_exprs)

    def numel(self) -> ShapeExpr:
        """The number of elements."""
        product = ShapeExpr(1)
        for size in self._sizes:
            product = product * size
        return product

    def __iter__(self) -> Iterator[ShapeExpr]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, index: int) -> ShapeExpr:
        return self._sizes[index]

    def __setitem__(self, index: int, size: Size) -> None:
        self._sizes[index] = size_of(size)

    def evaluate(self, builder: IExprBuilder, declared: Sequence[tuple[object, IDimensionExpr]]) -> DimsExprs:
        """The library's expressions. declared: those of size tensors."""
        return DimsExprs([size.evaluate(builder, declared) for size in self._sizes])

    def __repr__(self) -> str:
        return f'ShapeExprs({", ".join(map(repr, self._sizes))})'


def _of_two(op: DimensionOperation, first: Size, second: Size) -> ShapeExpr:
    return size_of(first)._operation(op, second)


def cdiv(first: Size, second: Size) -> ShapeExpr:
    """first / second, rounded up."""
    return _of_two(DimensionOperation.CEIL_DIV, first, second)


def larger(first: Size, second: Size) -> ShapeExpr:
    """The larger of two sizes: `max` of the module."""
    return _of_two(DimensionOperation.MAX, first, second)


def smaller(first: Size, second: Size) -> ShapeExpr:
    """The smaller of two sizes: `min` of the module."""
    return _of_two(DimensionOperation.MIN, first, second)
