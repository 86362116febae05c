// SPDX-License-Identifier: Apache-2.0
// What this machine's CPU is to plans and timings.
#pragma once

#include <string>
#include <vector>

namespace lathe::cpu {

std::string target_name();  // "cpu-x86_64-avx512"
// Targets whose plans this machine runs: kernels are chosen for the processor at run time, so those of every level that
// it has.
std::vector<std::string> runnable_targets();
// What a timing depends on besides the problem: CPU model, ISA level, library version.
std::string timing_device();

}  // namespace lathe::cpu
