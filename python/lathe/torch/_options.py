# SPDX-License-Identifier: Apache-2.0
"""What a program may ask of a compilation."""
import dataclasses
import math
import os
from collections.abc import Mapping
from typing import Any

from lathe import tensorrt as trt
from lathe.engine import Error, Reports

PRECISIONS = ('fp32', 'fp16', 'bf16')


@dataclasses.dataclass(frozen=True)
class Options:
    """How graphs are compiled. Raises Error for values that nothing can be made of.

    precision: what computation in float32 may be narrowed to: 'fp32' (nothing), 'fp16' or 'bf16'.
    threads: what engines for the CPU are tuned for and run on; 0 for as many as torch.get_num_threads() gives.
    device: what to build for, as lathe.build() takes its target; by default the device that the inputs are on.
    strict: whether it is an error where a part of a graph stays in PyTorch, rather than a warning.
    refit: whether engines can be given other weights; docs/refit.md says what that costs.
    budget: seconds for the search for fast kernels; None for the default.
    open_seconds: how long capturing a program with open sizes may take; then all sizes are those of the example, with a warning.
    cache: the folder where engines are kept; by default `torch` in that of kernels (LATHE_CACHE_DIR); '' keeps none.
    """

    precision: str = 'fp32'
    threads: int = 0
    device: str | None = None
    strict: bool = False
    refit: bool = False
    budget: float | None = None
    open_seconds: float = 600
    cache: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name, holds, wanted in (
                ('precision', isinstance(self.precision, str) and self.precision in PRECISIONS, f'one of {", ".join(PRECISIONS)}'),
                ('threads', type(self.threads) is int and self.threads >= 0, 'a whole number from 0 on'),
                ('device', _is_target(self.device), 'None or what lathe.build() takes as its target'),
                ('strict', isinstance(self.strict, bool), 'True or False'),
                ('refit', isinstance(self.refit, bool), 'True or False'),
                ('budget', self.budget is None or _is_number(self.budget) and 0 <= self.budget < math.inf,
                 'None or seconds from 0 on'),
                ('open_seconds', _is_number(self.open_seconds) and self.open_seconds > 0, 'seconds above 0'),
                ('cache', self.cache is None or isinstance(self.cache, str | os.PathLike), 'None or the path of a folder')):
            if not holds:
                raise Error(f'{name} is {wanted}, got {getattr(self, name)!r}')

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> 'Options':
        """The options with these names. Raises Error for names that there are not."""
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise Error(f'no such option: {", ".join(unknown)}; there are {", ".join(names)}')
        return cls(**given)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_target(device: Any) -> bool:
    if device is None:
        return True
    try:
        trt.Builder(Reports()).create_builder_config()._target = device
    except (TypeError, ValueError):
        return False
    return True
