// SPDX-License-Identifier: Apache-2.0
#include "api/devices.h"

#include <charconv>

#include "device/cuda/architecture.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nvrtc_compiler.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/open_device.h"
#include "kernels/cpu/target.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/headers.h"
#include "plan/header.h"

namespace lathe::api {
namespace {

// "cuda" is the current GPU, "cuda:1" that one.
Result<std::shared_ptr<Device>> open_target(std::string_view target) {
  if (target == "cuda") return cuda::open_current_device();
  int ordinal = -1;
  const std::string_view digits = target.substr(target.find(':') + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (error != std::errc() || end != digits.data() + digits.size())
    return fail(ErrorCode::config_invalid, "target '{}' names no GPU: say cuda, cuda:0, ...", target);
  return cuda::open_device(ordinal);
}

// A GPU here that plans for `target` run on; null when there is none, and the reason does not matter.
std::shared_ptr<Device> find_device_for(std::string_view target) {
  Result<std::shared_ptr<Device>> device = cuda::open_current_device();
  return device && (*device)->target() == target ? *device : nullptr;
}

}  // namespace

Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(plan));
  if (header.target.starts_with("cpu")) return cpu::shared_device(cpu_threads);
  if (!header.target.starts_with("cuda"))
    return fail(ErrorCode::plan_target, "the plan is for '{}', which this library does not know", header.target);
  return cuda::open_current_device();
}

Result<> TargetBuild::prepare(std::string_view target, int cpu_threads, BuildOptions& options) {
  if (target.starts_with("cuda-")) return prepare_cuda(target, find_device_for(target), options);
  if (!target.starts_with("cuda")) return prepare_cpu(target, cpu_threads, options);
  LATHE_ASSIGN(std::shared_ptr<Device> device, open_target(target));
  return prepare_cuda(device->target(), device, options);
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

Result<> TargetBuild::prepare_cuda(std::string_view target, std::shared_ptr<Device> device, BuildOptions& options) {
  LATHE_ASSIGN(compiler_, cuda::NvrtcCompiler::create(target, cuda::headers()));
  options.tactics = cuda::cuda_tactics();
  options.target = target;
  options.fuse_narrow_floats = true;
  options.fuse_prologues = true;
  options.tuner.compiler = compiler_.get();
  options.tuner.timing_key = device ? device->timing_key() : std::string(target);
  options.tuner.device = std::move(device);
  return {};
}

}  // namespace lathe::api
