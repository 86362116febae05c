// SPDX-License-Identifier: Apache-2.0
// CPUs to plans and timings: this machine's, and those of the table (processors.def).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/target.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// Instructions that multiply narrow numbers; each CPU has those before its own, too.
enum class NarrowProducts : uint8_t { none, vnni, bf16, amx };

// A row of processors.def.
struct Processor {
  std::string_view target;
  IsaLevel level;
  NarrowProducts products;  // that plans for it need: VNNI, AVX512-BF16, AMX
  double lanes, units;
  double clock_mhz;  // under load
  int threads;
  double cache_bytes;
  double cache_clock_bytes, shared_clock_bytes;
  double core_memory_rate, memory_rate;  // bytes in a microsecond
};

// "cpu-x86_64-avx2", or "cpu-x86_64" for the least of an architecture; null = there is none of that name.
const Processor* find_processor(std::string_view name);
// Of this machine's architecture and level, the row that asks for no more than the level: plans for it run on every
// machine of that level.
const Processor& own_processor();
// Whether this machine is such a one: kernels that are timed here are those that run there.
bool is_here(const Processor& processor);
// Whether it has an instruction for sums of products of 8-bit integers: this machine is asked, the table tells of
// others.
bool multiplies_bytes(const Processor& processor);
bool multiplies_bf16(const Processor& processor);       // likewise, of bf16
bool has_matrix_registers(const Processor& processor);  // likewise
// `threads` of its cores; 0 = as many as the table says.
Target describe(const Processor& processor, int threads);
// `threads` cores of this machine: its row, but for what the system tells in `cpu`, the folder of a core. The clock is
// the base clock, which all cores keep up; the highest is that of one core for a moment.
Target describe_machine(int threads, const std::string& cpu = "/sys/devices/system/cpu/cpu0");

std::string product_name();  // of this machine's CPU, as its maker calls it
std::string target_name();   // "cpu-x86_64-avx512"
// Targets whose plans this machine runs: kernels are chosen for the processor at run time, so those of every level that
// it has.
std::vector<std::string> runnable_targets();
// What a timing depends on besides the problem: CPU model, ISA level, library version.
std::string timing_device();

}  // namespace lathe::cpu
