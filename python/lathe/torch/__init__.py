# SPDX-License-Identifier: Apache-2.0
"""Engines for models of PyTorch.

    fast = torch.compile(model, backend='lathe')        # as they are called
    fast = lathe.torch.compile(model, (x,))             # ahead of time: can be saved, and given other weights

Importing this makes the backend's name known to torch.compile(); where the wheel is installed, its metadata do.
"""
from torch._dynamo import list_backends, register_backend

from lathe.torch._backend import backend
from lathe.torch._module import Module, compile
from lathe.torch._options import Options
from lathe.torch._part import strategies

if 'lathe' not in list_backends(()):
    register_backend(backend, name='lathe')

__all__ = ['Module', 'Options', 'backend', 'compile', 'strategies']
