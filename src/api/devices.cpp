// SPDX-License-Identifier: Apache-2.0
#include "api/devices.h"

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/open_device.h"
#include "kernels/cpu/target.h"
#include "plan/header.h"

namespace lathe::api {

Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(plan));
  if (header.target.starts_with("cpu")) return cpu::shared_device(cpu_threads);
  return fail(ErrorCode::plan_target, "the plan is for '{}', which this library does not know", header.target);
}

Result<> TargetBuild::prepare(std::string_view target, int cpu_threads, BuildOptions& options) {
  return prepare_cpu(target, cpu_threads, options);
}

Result<> TargetBuild::prepare_cpu(std::string_view target, int cpu_threads, BuildOptions& options) {
  if (!cpu::target_name().starts_with(target))
    return fail(ErrorCode::config_invalid, "plans for '{}' cannot be built on this machine, which is '{}'", target,
                cpu::target_name());
  LATHE_ASSIGN(const std::shared_ptr<Device> device, cpu::shared_device(cpu_threads));
  options.tactics = cpu::cpu_tactics();
  options.target = device->target();
  options.tuner.device = device;
  options.tuner.threads = device->threads();
  options.tuner.timing_key = device->timing_key();
  return {};
}

}  // namespace lathe::api
