// SPDX-License-Identifier: Apache-2.0
#include "device/family.h"

#include "kernels/cpu/open_device.h"
#include "kernels/cpu/target.h"

namespace lathe::cpu {
namespace {

class Family final : public DeviceFamily {
 public:
  std::string_view name() const override { return "cpu"; }

  Result<std::optional<std::string>> resolve(std::string_view name) const override {
    if (name == this->name()) return std::string(name);
    const Processor* processor = find_processor(name);
    return processor ? std::optional(std::string(processor->target)) : std::nullopt;
  }

  Result<std::shared_ptr<Device>> open(int threads) const override { return shared_device(threads); }
  Result<std::unique_ptr<lathe::Kernel>> make_kernel(const StepRecord& record) const override {
    return cpu::make_kernel(record);
  }
  bool is_host() const override { return true; }
  Result<> find_device() const override { return {}; }
  size_t memory_alignment() const override { return 64; }
};

}  // namespace

const DeviceFamily& family();  // families.def
const DeviceFamily& family() {
  static const Family family;
  return family;
}

}  // namespace lathe::cpu
