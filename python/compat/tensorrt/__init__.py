# SPDX-License-Identifier: Apache-2.0
"""The original's import name: the module that programs get is lathe.tensorrt itself."""
import sys

import lathe.tensorrt
import lathe.tensorrt.plugin

sys.modules[__name__] = lathe.tensorrt
sys.modules[f'{__name__}.plugin'] = lathe.tensorrt.plugin
