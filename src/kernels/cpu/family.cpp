// SPDX-License-Identifier: Apache-2.0
#include "device/family.h"

#include <algorithm>

#include "kernels/cpu/open_device.h"

namespace lathe::cpu {
namespace {

constexpr std::string_view kNames[] = {
    "cpu", "cpu-x86_64", "cpu-x86_64-avx2", "cpu-x86_64-avx512", "cpu-x86_64-vnni", "cpu-arm64"};

class Family final : public DeviceFamily {
 public:
  std::string_view name() const override { return "cpu"; }

  Result<std::optional<std::string>> resolve(std::string_view name) const override {
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) return std::nullopt;
    return std::string(name);
  }

  Result<std::shared_ptr<Device>> open(int threads) const override { return shared_device(threads); }
  bool is_host() const override { return true; }
  size_t memory_alignment() const override { return 64; }
};

}  // namespace

const DeviceFamily& family();  // families.def
const DeviceFamily& family() {
  static const Family family;
  return family;
}

}  // namespace lathe::cpu
