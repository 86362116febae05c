// SPDX-License-Identifier: Apache-2.0
// What CPUs offer to builds.
#include "tuning/backend.h"

#include "base/processors.h"
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
    const Processor* processor = target == name() ? &own_processor() : find_processor(target);
    if (!processor) return fail(ErrorCode::config_invalid, "target '{}' is no CPU; see setTarget() in lathe.h", target);
    BackendBuild build;
    if (is_here(*processor)) {
      LATHE_ASSIGN(build.device, shared_device(settings.threads));
      build.target = build.device->describe();
      build.target.name = processor->target;
    } else {
      build.target = describe(*processor, settings.threads);
    }
    const bool integers = multiplies_bytes(*processor);
    build.traits = {.arithmetic = {.narrow_floats = false,
                                   .integer_products = integers,
                                   .weighted_products = integers,
                                   .bf16_factors = multiplies_bf16(*processor),
                                   .packed_weights = true,
                                   .f32_rows = true,
                                   .separate_matmuls = true},
                    .fuses_movement = true,
                    .windows_keep_layout = true};
    build.tactics = cpu_tactics();
    build.data_dependent = data_dependent_tactics();
    build.timing_key = build.device ? build.device->timing_key() : build.target.name;
    return build;
  }

  Survey survey() const override {
    return {{{"cpu",
              product_name(),
              target_name(),
              {{"isa", std::string(name_of(isa_level()))}, {"threads", allowed_cpus()}}}},
            {}};
  }
};

}  // namespace

const Backend& backend();  // families.def
const Backend& backend() {
  static const CpuBackend backend;
  return backend;
}

}  // namespace lathe::cpu
