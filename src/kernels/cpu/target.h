// SPDX-License-Identifier: Apache-2.0
// What this machine's CPU is to plans and timings.
#pragma once

#include <string>
#include <vector>

#include "device/target.h"

namespace lathe::cpu {

std::string target_name();  // "cpu-x86_64-avx512"
// One core of this machine: what its ISA level computes, its clock and caches as the system tells them.
Target describe_core();
// Targets whose plans this machine runs: kernels are chosen for the processor at run time, so those of every level that
// it has.
std::vector<std::string> runnable_targets();
// What a timing depends on besides the problem: CPU model, ISA level, library version.
std::string timing_device();

}  // namespace lathe::cpu
