// SPDX-License-Identifier: Apache-2.0
// The CPU kernels by name. The list is the folders kernels/cpu/<name>/ that hold <name>_kernel.cpp; each defines
//   Result<std::unique_ptr<Kernel>> lathe::cpu::make_<name>(const Record&);
#pragma once

#include <string_view>

#include "device/cpu/kernel.h"
#include "device/params.h"

namespace lathe::cpu {

using KernelFactory = Result<std::unique_ptr<Kernel>> (*)(const Record& record);

// nullptr when this library has no kernel of that name.
KernelFactory find_kernel(std::string_view name);

// What factories say of params that do not decode or hold what the kernel cannot work with.
tl::unexpected<Error> refuse_params(std::string_view kernel);
// Whether an enumeration that counts from 0 to `last` has the value.
template <class E>
constexpr bool is_one_of(E value, E last) {
  return value >= E{} && value <= last;
}
// decode_params() of a list of counts: none is negative or takes more than 31 bits.
template <Params T>
std::optional<T> decode_counts(std::span<const int64_t> list) {
  for (const int64_t number : list)
    if (number < 0 || number > INT32_MAX) return std::nullopt;
  return decode_params<T>(list);
}
constexpr bool is_axis(int64_t axis) { return axis >= 0 && axis < kMaxRank; }

}  // namespace lathe::cpu
