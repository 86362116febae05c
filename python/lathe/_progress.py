# SPDX-License-Identifier: Apache-2.0
"""How far a build is, where somebody looks: a line in a terminal, a bar in a notebook."""
import contextlib
import html
import importlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from lathe import tensorrt as trt

WIDTH = 30  # of a terminal's bar, in characters
SECONDS_BETWEEN = 0.1


@contextlib.contextmanager
def shown(wanted: bool) -> Iterator[trt.IProgressMonitor | None]:
    """What builds in the with statement tell of their progress; None where nobody wants to see it."""
    if not wanted:
        yield None
        return
    bar = _Bar()
    try:
        yield bar
    finally:
        bar.close()


class _Bar(trt.IProgressMonitor):
    """Shows the phase of the import or build, and percents; nothing where standard error is no terminal and this no notebook."""

    def __init__(self) -> None:
        super().__init__()
        self._phase, self._steps, self._drawn = '', 1, 0.0
        self._handle = _notebook_display()
        self._in_terminal = self._handle is None and sys.stderr is not None and sys.stderr.isatty()

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        self._phase, self._steps, self._drawn = phase_name, max(num_steps, 1), 0.0

    def step_complete(self, phase_name: str, step: int) -> bool:
        now = time.monotonic()
        if now - self._drawn >= SECONDS_BETWEEN:
            self._drawn = now
            self._draw(min((step + 1) / self._steps, 1.0))
        return True

    def phase_finish(self, phase_name: str) -> None:
        pass

    def close(self) -> None:
        """Takes the bar away."""
        if self._handle is not None:
            self._handle.update({'text/plain': ''}, raw=True)
        elif self._in_terminal:
            sys.stderr.write('\r\x1b[K')
            sys.stderr.flush()

    def _draw(self, part: float) -> None:
        if self._handle is not None:
            text = f'{html.escape(self._phase)}: {part:.0%}'
            self._handle.update({'text/html': f'<progress value="{part:.3f}" max="1"></progress> {text}', 'text/plain': text}, raw=True)
        elif self._in_terminal:
            sys.stderr.write(f'\r[{"#" * round(part * WIDTH):{WIDTH}}] {part:4.0%} {self._phase}\x1b[K')
            sys.stderr.flush()


def _notebook_display() -> Any:
    """A cell's output that can be replaced; None outside of notebooks. Whoever runs in one has IPython loaded."""
    ipython = sys.modules.get('IPython')
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, 'kernel'):
        return None
    return importlib.import_module('IPython.display').display({'text/plain': ''}, raw=True, display_id=True)
