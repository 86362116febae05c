// SPDX-License-Identifier: Apache-2.0
#include "api/builder/target_build.h"

#include <algorithm>

#include "api/runtime/devices.h"
#include "device/cuda/architecture.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nvrtc_compiler.h"
#include "kernels/cpu/counted_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/open_device.h"
#include "kernels/cpu/target.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/generic/counted_ops.h"
#include "kernels/cuda/headers.h"
#include "kernels/cuda/libraries/cublaslt_tactic.h"
#include "kernels/cuda/libraries/cudnn_tactic.h"

namespace lathe::api {
namespace {

constexpr std::string_view kCuda = "cuda", kCudaNumber = "cuda:", kCudaArchitecture = "cuda-";
constexpr std::string_view kCpuTargets[] = {
    "cpu", "cpu-x86_64", "cpu-x86_64-avx2", "cpu-x86_64-avx512", "cpu-x86_64-vnni", "cpu-arm64"};

// A library that cannot be used makes its tactic refuse, with the reason. Without a device it is not looked for: the
// machine that runs the plan has it. What it offers goes into the key of timings.
template <class LibraryTactic, class Handle>
std::unique_ptr<Tactic> library_tactic(const char* name,
                                       const std::optional<Result<std::shared_ptr<const Handle>>>& handle,
                                       std::string& timing_key) {
  timing_key += fmt::format(", {}", name);
  if (!handle) return std::make_unique<LibraryTactic>(nullptr, "");
  const Result<std::shared_ptr<const Handle>>& made = *handle;
  if (!made) return std::make_unique<LibraryTactic>(nullptr, made.error().message);
  timing_key += " " + (*made)->library().version_text();
  return std::make_unique<LibraryTactic>(*made, "");
}

}  // namespace

Result<> check_target_name(std::string_view target) {
  if (target == kCuda || std::find(std::begin(kCpuTargets), std::end(kCpuTargets), target) != std::end(kCpuTargets))
    return {};
  if (target.starts_with(kCudaNumber)) {
    LATHE_TRY(gpu_ordinal(target));
  } else if (target.starts_with(kCudaArchitecture)) {
    LATHE_TRY(cuda::parse_target(target));
  } else {
    return fail(ErrorCode::config_invalid, "target '{}' is not known; see setTarget() in lathe.h", target);
  }
  return {};
}

Result<> TargetBuild::prepare(std::string_view target, int cpu_threads, BuildOptions& options, LibrarySources sources,
                              const cuda::ToolchainOptions& toolchain) {
  if (target.starts_with("cuda-")) return prepare_cuda(target, find_gpu_for(target), options, sources, toolchain);
  if (!target.starts_with("cuda")) return prepare_cpu(target, cpu_threads, options);
  LATHE_ASSIGN(std::shared_ptr<Device> device, open_gpu(target));
  return prepare_cuda(device->target(), device, options, sources, toolchain);
}

Result<> TargetBuild::prepare_cpu(std::string_view target, int cpu_threads, BuildOptions& options) {
  if (!cpu::target_name().starts_with(target))
    return fail(ErrorCode::config_invalid, "plans for '{}' cannot be built on this machine, which is '{}'", target,
                cpu::target_name());
  LATHE_ASSIGN(const std::shared_ptr<Device> device, cpu::shared_device(cpu_threads));
  options.tactics = cpu::cpu_tactics();
  options.counted = cpu::counted_tactics();
  options.passes.narrow_floats = false;
  options.fuse_movement = true;
  options.decompose_doubles = true;
  options.target = device->target();
  options.tuner.device = device;
  options.tuner.target = device->describe();
  options.tuner.timing_key = device->timing_key();
  return {};
}

Result<> TargetBuild::prepare_cuda(std::string_view target, std::shared_ptr<Device> device, BuildOptions& options,
                                   LibrarySources sources, const cuda::ToolchainOptions& toolchain) {
  LATHE_ASSIGN(compiler_, cuda::NvrtcCompiler::create(target, cuda::headers(), toolchain));
  options.tactics = cuda::cuda_tactics();
  options.counted = cuda::counted_tactics();
  options.target = target;
  options.fuse_narrow_types = true;
  options.fuse_prologues = true;
  options.fuse_movement = true;
  options.least_pixel = 4;
  options.passes.integer_products = true;
  options.tuner.compiler = compiler_.get();
  LATHE_ASSIGN(const cuda::Architecture* architecture, cuda::parse_target(target));
  options.tuner.target = device ? device->describe() : cuda::describe(*architecture);
  options.tuner.timing_key = device ? device->timing_key() : std::string(target);
  std::optional<Result<std::shared_ptr<const cuda::CublasLtHandle>>> cublaslt;
  std::optional<Result<std::shared_ptr<const cuda::CudnnHandle>>> cudnn;
  if (device && sources.cublaslt) cublaslt = cuda::libraries_of(*device).cublaslt();
  if (device && sources.cudnn) cudnn = cuda::libraries_of(*device).cudnn();
  std::string& key = options.tuner.timing_key;
  if (sources.cublaslt) library_tactics_.push_back(library_tactic<cuda::CublasLtTactic>("cuBLASLt", cublaslt, key));
  if (sources.cudnn) library_tactics_.push_back(library_tactic<cuda::CudnnTactic>("cuDNN", cudnn, key));
  for (const auto& tactic : library_tactics_) options.tactics.insert(options.tactics.begin(), tactic.get());
  options.tuner.device = std::move(device);
  return {};
}

}  // namespace lathe::api
