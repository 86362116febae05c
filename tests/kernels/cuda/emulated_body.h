// SPDX-License-Identifier: Apache-2.0
// Short texts of device code on the emulator.
#pragma once

#include <gtest/gtest.h>

#include "kernels/cuda/emulated_module.h"

namespace lathe::cuda {

// Runs `body` on one cluster with `data` as its parameter `int* x`.
inline Result<> run_body(std::string_view body, std::vector<int>& data, uint32_t block = 32, uint32_t shared_bytes = 0,
                         uint32_t cluster = 1) {
  const std::string source = fmt::format(
      "#include \"lib/tensor.cuh\"\n#include \"lib/math.cuh\"\n#include \"gemm/main_loop.cuh\"\n#include "
      "\"gemm/panel.cuh\"\n#include \"lib/tensor_copies.cuh\"\nLATHE_PARAMETERS(1)\n"
      "LATHE_KERNEL({}, 1) void lathe_kernel(int* x) {{\n  dependency_wait();\n{}\n}}\n",
      block, body);
  LATHE_ASSIGN(const std::vector<std::byte> object, compile_for_emulator(source));
  LATHE_ASSIGN(const auto module, EmulatedModule::load(object));
  const uint64_t argument = reinterpret_cast<uint64_t>(data.data());
  return module->launch({cluster, 1, 1}, block, shared_bytes, std::span(&argument, 1), cluster);
}

inline void expect_failure(std::string_view body, std::string_view message, uint32_t block = 32,
                           uint32_t shared_bytes = 0, uint32_t cluster = 1) {
  std::vector<int> data(4096);
  const Result<> result = run_body(body, data, block, shared_bytes, cluster);
  ASSERT_FALSE(result) << "expected: " << message;
  EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
}

}  // namespace lathe::cuda
