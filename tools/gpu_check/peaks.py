# SPDX-License-Identifier: Apache-2.0
"""What an H200 reaches, as measured by large products of matrices and copies: floors are of these."""
PEAK_TFLOPS = 790.0  # of float16
PEAK_TBPS = 4.28
