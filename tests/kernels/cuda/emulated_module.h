// SPDX-License-Identifier: Apache-2.0
// Device code on the emulator, without a driver: compiled, loaded and launched in this process.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lathe::cuda {

// Text by the name that sources include.
std::map<std::string, std::string> header_texts();

// The emulator's form of a cubin, compiled by itself. The library's own device headers can be included.
Result<std::vector<std::byte>> compile_for_emulator(std::string_view source);

class EmulatedModule {
 public:
  static Result<std::unique_ptr<EmulatedModule>> load(std::span<const std::byte> object);
  EmulatedModule() = default;
  EmulatedModule(const EmulatedModule&) = delete;
  EmulatedModule& operator=(const EmulatedModule&) = delete;
  ~EmulatedModule();

  uint32_t parameters() const { return parameters_; }  // that lathe_kernel takes
  Result<> launch(std::array<int64_t, 3> grid, uint32_t block, uint32_t shared_bytes,
                  std::span<const uint64_t> arguments, uint32_t cluster = 1) const;

 private:
  void* library_ = nullptr;
  void* function_ = nullptr;
  uint32_t parameters_ = 0;
};

}  // namespace lathe::cuda
