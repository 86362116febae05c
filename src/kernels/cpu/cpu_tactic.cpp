// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_tactic.h"

#include <cstdio>
#include <cstring>

#include "kernels/cpu/isa.h"

namespace lathe::cpu {

#define LATHE_CPU_TACTIC(name) const Tactic& name##_tactic();
#include "cpu_tactics.inc"
#undef LATHE_CPU_TACTIC

const TacticList& cpu_tactics() {
  static const TacticList list = {
#define LATHE_CPU_TACTIC(name) &name##_tactic(),
#include "cpu_tactics.inc"
#undef LATHE_CPU_TACTIC
  };
  return list;
}

namespace {

std::string cpu_model() {
  std::string model = "unknown CPU";
  std::FILE* file = std::fopen("/proc/cpuinfo", "re");
  if (!file) return model;
  char line[256];
  std::string parts;
  while (std::fgets(line, sizeof line, file) && line[0] != '\n')
    for (const char* key : {"model name", "cpu family", "model\t", "stepping", "cache size"})
      if (std::strncmp(line, key, std::strlen(key)) == 0)
        if (const char* colon = std::strchr(line, ':')) parts += colon + 1;
  std::fclose(file);
  for (char& c : parts)
    if (c == '\n') c = ' ';
  return parts.empty() ? model : parts;
}

}  // namespace

std::string timing_device() {
  return fmt::format("{}| {} | kernels built {}", cpu_model(), name_of(isa_level()), LATHE_KERNEL_HASH);
}

std::string target_name() {
#if defined(__x86_64__)
  return fmt::format("cpu-x86_64-{}", name_of(isa_level()));
#else
  return "cpu-aarch64-baseline";
#endif
}

std::optional<std::string> refuse_non_f32(const Problem& problem) {
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    for (const Operand& operand : *list)
      if (!operand.omitted && operand.dtype != DType::f32)
        return fmt::format("an operand is {}, this kernel computes in f32", name_of(operand.dtype));
  return std::nullopt;
}

std::optional<std::string> refuse_layout(const Operand& operand, std::string_view what) {
  if (operand.rank() >= 3 && operand.strides[1] != Expr(1) && operand.dims[1] != Expr(1))
    return fmt::format("{} is not channels-last", what);
  return std::nullopt;
}

}  // namespace lathe::cpu
