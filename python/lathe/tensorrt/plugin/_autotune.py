# SPDX-License-Identifier: Apache-2.0
"""Which types and formats a plugin takes together."""
from collections.abc import Iterable, Iterator, Sequence

from lathe._tensorrt import DataType, DynamicPluginTensorDesc, TensorFormat

_TYPES = {'FP32': DataType.FLOAT, 'FP16': DataType.HALF, 'BF16': DataType.BF16, 'FP8': DataType.FP8,
          'INT8': DataType.INT8, 'INT32': DataType.INT32, 'INT64': DataType.INT64, 'INT4': DataType.INT4,
          'BOOL': DataType.BOOL, 'UINT8': DataType.UINT8}


def _type_of(name: str) -> DataType:
    if name not in _TYPES:
        raise ValueError(f'no type is called {name}; there are {", ".join(_TYPES)}')
    return _TYPES[name]


def _format_of(name: str) -> TensorFormat:
    if name not in TensorFormat.__members__:
        raise ValueError(f'no format is called {name}')
    found: TensorFormat = getattr(TensorFormat, name)
    return found


def _zipped(variants: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Tensors that list variants take their first ones together, then their second ones; others keep the one they have."""
    counts = {len(each) for each in variants if len(each) > 1} or {1}
    if len(counts) > 1:
        raise ValueError(f'tensors list different numbers of variants: {sorted(counts)}')
    for i in range(counts.pop()):
        yield tuple(each[i] if len(each) > 1 else each[0] for each in variants)


class AutoTuneCombination:
    """Types and formats of all inputs and outputs, in their order, and tactics for them.

    io_types: 'FP32|FP16, FP32|FP16': a comma between tensors, | between variants, which go together. layouts: likewise, or
    one for all tensors.
    """

    def __init__(self, io_types: str | None = None, layouts: str | None = None,
                 tactics: Iterable[int] | None = None) -> None:
        self._types: dict[int, list[str]] = {}
        self._layouts: dict[int, list[str]] = {}
        self._tactics = list(tactics or ())
        if io_types is None and layouts is not None:
            raise ValueError('layouts are given without the types of the tensors')
        if io_types is not None:
            types = self._split(io_types)
            formats = self._split('LINEAR' if layouts is None else layouts)
            if len(formats) not in (1, len(types)):
                raise ValueError(f'{len(formats)} layouts are listed for {len(types)} tensors')
            for i, each in enumerate(types):
                self._set(i, each, formats[i if len(formats) > 1 else 0])

    @staticmethod
    def _split(text: str) -> list[list[str]]:
        return [[variant.strip() for variant in tensor.split('|')] for tensor in text.split(',')]

    def _set(self, pos: int, types: list[str], layouts: list[str]) -> None:
        for name in types:
            _type_of(name)
        for name in layouts:
            _format_of(name)
        self._types[pos], self._layouts[pos] = types, layouts

    def pos(self, pos: int | Iterable[int], io_types: str, layouts: str = 'LINEAR') -> None:
        """Sets those of the tensors with these numbers."""
        types, formats = self._split(io_types), self._split(layouts)
        if len(types) != 1 or len(formats) != 1:
            raise ValueError(f"types and layouts of one tensor are wanted, got '{io_types}' and '{layouts}'")
        for each in (pos,) if isinstance(pos, int) else pos:
            self._set(each, types[0], formats[0])

    def tactics(self, tactics: Iterable[int]) -> None:
        """The tactics, positive numbers, that the builder times for this combination."""
        self._tactics = list(tactics)

    def rows(self, count: int) -> Iterator[tuple[list[tuple[DataType, TensorFormat]], list[int]]]:
        """Each combination of `count` tensors, and its tactics. Raises ValueError where one is not set."""
        if set(self._types) != set(range(count)):
            raise ValueError(f'a combination sets tensors {sorted(self._types)}; the plugin has {count}')
        for types in _zipped([self._types[i] for i in range(count)]):
            for formats in _zipped([self._layouts[i] for i in range(count)]):
                yield [(_type_of(t), _format_of(f)) for t, f in zip(types, formats)], self._tactics


def fits(row: Sequence[tuple[DataType, TensorFormat]], tensors: Sequence[DynamicPluginTensorDesc]) -> bool:
    """Whether the first tensors are as a combination says."""
    return all((each.desc.type, each.desc.format) == wanted for each, wanted in zip(tensors, row))
