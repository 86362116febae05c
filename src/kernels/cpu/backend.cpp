// SPDX-License-Identifier: Apache-2.0
// What CPUs offer to builds.
#include "tuning/backend.h"

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/data_dependent_tactic.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/open_device.h"
#include "kernels/cpu/target.h"

namespace lathe::cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  Result<BackendBuild> prepare(std::string_view target, const BackendSettings& settings) const override {
    if (!target_name().starts_with(target))
      return fail(ErrorCode::config_invalid, "plans for '{}' cannot be built on this machine, which is '{}'", target,
                  target_name());
    BackendBuild build;
    LATHE_ASSIGN(build.device, shared_device(settings.threads));
    build.target = build.device->describe();
    const bool integers = multiplies_bytes();
    build.traits = {.fuses_movement = true,
                    .integer_products = integers,
                    .weighted_products = integers,
                    .decompose_doubles = true,
                    .windows_keep_layout = true};
    build.tactics = cpu_tactics();
    build.data_dependent = data_dependent_tactics();
    build.timing_key = build.device->timing_key();
    return build;
  }
};

}  // namespace

const Backend& backend();  // families.def
const Backend& backend() {
  static const CpuBackend backend;
  return backend;
}

}  // namespace lathe::cpu
