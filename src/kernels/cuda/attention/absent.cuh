// SPDX-License-Identifier: Apache-2.0
// What stands for operands of attention that there are none of.
#pragma once

#include "lib/types.cuh"

struct Unmasked {};
struct Unsunk {};
struct Undistanced {};
