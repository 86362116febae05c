# SPDX-License-Identifier: Apache-2.0
"""A limit to what may not come to an end, such as capturing a program with open sizes."""
import contextlib
import ctypes
import threading
from collections.abc import Iterator

AGAIN = 5.0  # seconds, after which it is said again where somebody took it for another exception


class Overdue(BaseException):
    """It takes longer than it may. No Exception, of which tracing programs lets many pass."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A with statement that raises Overdue where what is inside, of Python, takes more seconds."""
    thread, lock, done = threading.get_ident(), threading.Lock(), threading.Event()
    is_over = False

    def watch() -> None:
        left = min(seconds, threading.TIMEOUT_MAX)
        while not done.wait(left) and not is_over:
            with lock:
                if not is_over:
                    _raise_in(thread, Overdue)
            left = AGAIN
    threading.Thread(target=watch, name='lathe-limit', daemon=True).start()
    try:
        yield
    finally:
        is_over = True  # one step: calls may end by what was raised at last
        with lock:
            _raise_in(thread, None)  # what was not raised yet must not come behind the statement
        done.set()


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(exception) if exception else None)
