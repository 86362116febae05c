// SPDX-License-Identifier: Apache-2.0
// The most that one core's multiply-add units can do.
#pragma once

namespace lathe::bench {

double measure_peak();  // GF/s, f32, at the widest vectors the CPU has

}  // namespace lathe::bench
