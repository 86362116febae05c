# SPDX-License-Identifier: Apache-2.0
"""What a program may ask of a compilation."""
import dataclasses
from collections.abc import Mapping
from typing import Any

from lathe.engine import Error

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
    cache: str | None = None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise Error(f'precision is one of {", ".join(PRECISIONS)}, got {self.precision!r}')
        if not isinstance(self.threads, int) or isinstance(self.threads, bool) or self.threads < 0:
            raise Error(f'threads is a number from 0 on, got {self.threads!r}')
        if not isinstance(self.open_seconds, int | float) or not self.open_seconds > 0:
            raise Error(f'open_seconds is a number above 0, got {self.open_seconds!r}')

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> 'Options':
        """The options with these names. Raises Error for names that there are not."""
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise Error(f'no such option: {", ".join(unknown)}; there are {", ".join(names)}')
        return cls(**given)
