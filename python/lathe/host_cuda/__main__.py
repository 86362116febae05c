# SPDX-License-Identifier: Apache-2.0
"""Prints the folder of the library."""
from lathe.host_cuda import FOLDER

print(FOLDER)
