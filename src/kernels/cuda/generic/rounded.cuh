// SPDX-License-Identifier: Apache-2.0
// Products that are rounded by themselves: the compiler may fuse any other with a sum, and decisions that follow from
// the result (which box is dropped, how many samples there are) would differ from the plain evaluation's.
#pragma once

#include "generic/element.cuh"

#ifdef LATHE_EMULATED
LATHE_DEVICE float product(float a, float b) { return a * b; }
LATHE_DEVICE double product(double a, double b) { return a * b; }
#else
LATHE_DEVICE float product(float a, float b) { return __fmul_rn(a, b); }
LATHE_DEVICE double product(double a, double b) { return __dmul_rn(a, b); }
#endif
