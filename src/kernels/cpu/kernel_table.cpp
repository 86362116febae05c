// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {

#define LATHE_CPU_KERNEL(name) Result<std::unique_ptr<Kernel>> make_##name(const Record& record);
#include "cpu_kernels.inc"
#undef LATHE_CPU_KERNEL

namespace {

struct Row {
  std::string_view name;
  KernelFactory factory;
};

constexpr Row kRows[] = {
#define LATHE_CPU_KERNEL(name) {#name, make_##name},
#include "cpu_kernels.inc"
#undef LATHE_CPU_KERNEL
    {"", nullptr},
};

}  // namespace

KernelFactory find_kernel(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.factory;
  return nullptr;
}

tl::unexpected<Error> refuse_params(std::string_view kernel) {
  return fail(ErrorCode::plan_malformed, "{}: the parameters of the record are not valid", kernel);
}

}  // namespace lathe::cpu
