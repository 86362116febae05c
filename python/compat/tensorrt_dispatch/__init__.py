# SPDX-License-Identifier: Apache-2.0
"""The original's import name of its dispatching runtime: what runs engines, as in tensorrt_lean."""
from tensorrt_lean import *  # noqa: F403
from tensorrt_lean import __version__  # noqa: F401
