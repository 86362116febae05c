# SPDX-License-Identifier: Apache-2.0
"""Modules that are imported when something of them is first asked for."""
import importlib
from typing import Any


class Deferred:
    """A module that programs may never need, such as NumPy, whose import takes longer than loading an engine."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)  # not asked for again
        return found
