// SPDX-License-Identifier: Apache-2.0
// Lists a function of every ISA level that this machine can run, for tests that compare the levels.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/cpu/isa.h"

namespace lathe::cpu {

template <class F>
struct LevelFunction {
  std::string_view level;
  F* function;
};

// LATHE_ISA_LEVELS(f): a vector of LevelFunction for lathe::cpu::<level>::f.
template <class F>
std::vector<LevelFunction<F>> levels_up_to_best(std::initializer_list<F*> functions) {
  std::vector<LevelFunction<F>> levels;
  int level = 0;
  for (F* function : functions) {
    if (level <= static_cast<int>(isa_level())) levels.push_back({name_of(static_cast<IsaLevel>(level)), function});
    ++level;
  }
  return levels;
}
#if defined(__x86_64__)
#define LATHE_ISA_LEVELS(f) \
  ::lathe::cpu::levels_up_to_best({&::lathe::cpu::baseline::f, &::lathe::cpu::avx2::f, &::lathe::cpu::avx512::f})
#else
#define LATHE_ISA_LEVELS(f) ::lathe::cpu::levels_up_to_best({&::lathe::cpu::baseline::f})
#endif

}  // namespace lathe::cpu
