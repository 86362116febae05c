// SPDX-License-Identifier: Apache-2.0
// What NVIDIA GPUs offer to builds.
#include "tuning/backend.h"

#include <algorithm>
#include <cstdlib>

#include "device/cuda/architecture.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/environment.h"
#include "device/cuda/family.h"
#include "device/cuda/nvrtc_compiler.h"
#include "device/hardware.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/cuda_traits.h"
#include "kernels/cuda/generic/data_dependent_ops.h"
#include "kernels/cuda/headers.h"
#include "kernels/cuda/joined_launch.h"
#include "kernels/cuda/libraries/cublaslt_tactic.h"
#include "kernels/cuda/libraries/cudnn_tactic.h"
#include "kernels/cuda/packing/packing_source.h"

namespace lathe::cuda {
namespace {

// A GPU here that plans for `target` run on; null when there is none, and the reason does not matter.
std::shared_ptr<Device> find_device_for(std::string_view target) {
  Result<std::shared_ptr<Device>> device = open_named("cuda");
  return device && (*device)->check_target(target) ? *device : nullptr;
}

Result<> check_portability(const Architecture& own, const BackendBuild& build) {
  const auto* device = dynamic_cast<const HardwareDevice*>(build.device.get());
  if (build.portability == Portability::none || !(own.is_tegra() || (device && device->hardware().is_integrated)))
    return {};
  return fail(
      ErrorCode::config_invalid,
      "hardware compatibility levels are for discrete GPUs, and sm_{} ({}) shares its memory with the host: clear "
      "the level",
      own.number, own.family);
}

// What TF32 needs and does not have; "" = nothing. All drivers that are opened know of it.
std::string why_no_tf32(const Architecture& own) {
  if (own.number < 80)
    return fmt::format("sm_{} ({}) has compute capability {}.{}, and TF32 needs 8.0 or later", own.number, own.family,
                       own.number / 10, own.number % 10);
  const char* const forbidden = std::getenv("NVIDIA_TF32_OVERRIDE");
  if (forbidden && std::string_view(forbidden) == "0") return "the environment has NVIDIA_TF32_OVERRIDE=0";
  return {};
}

// What products of 2:4 sparse weights need and does not have; "" = nothing.
std::string why_no_sparsity(const Architecture& own) {
  if (own.number >= 80) return {};
  return fmt::format("sm_{} ({}) has compute capability {}.{}, and products of 2:4 sparse weights need 8.0 or later",
                     own.number, own.family, own.number / 10, own.number % 10);
}

// Arithmetic::float8_block: what one instruction multiplies, or on Hopper a panel, as shorter sums of wgmma take as
// long to scale as the products of wider floats (decision 0115).
int64_t float8_block(const Target& target) {
  if (!target.limits.float8) return 0;
  return target.limits.warpgroups ? 128 : 32;
}

// The build is for all GPUs from there on, and measured on the device that is there.
Result<> widen(const Architecture& own, BackendBuild& build) {
  if (!runs_code_of(ampere_plus(), own))
    return fail(ErrorCode::config_invalid,
                "the build is for sm_{} ({}), and HardwareCompatibilityLevel::kAMPERE_PLUS is for GPUs of compute "
                "capability 8.0 and later: name a newer one as target, or clear the level",
                own.number, own.family);
  build.target = describe_as_ampere_plus(std::move(build.target));
  build.code_form = CodeForm::assembly;
  build.code_target = fmt::format("cuda-sm_{}", ampere_plus().number);
  build.timing_key += " as " + build.target.name;
  return {};
}

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

void add_libraries(const std::vector<std::string_view>& names, BackendBuild& build) {
  const bool with_cublaslt = std::ranges::count(names, kCublasLtName) > 0;
  const bool with_cudnn = std::ranges::count(names, kCudnnName) > 0;
  std::optional<Result<std::shared_ptr<const CublasLtHandle>>> cublaslt;
  std::optional<Result<std::shared_ptr<const CudnnHandle>>> cudnn;
  if (build.device && with_cublaslt) cublaslt = libraries_of(*build.device).cublaslt();
  if (build.device && with_cudnn) cudnn = libraries_of(*build.device).cudnn();
  std::string& key = build.timing_key;
  if (with_cublaslt) build.owned.push_back(library_tactic<CublasLtTactic>("cuBLASLt", cublaslt, key));
  if (with_cudnn) build.owned.push_back(library_tactic<CudnnTactic>("cuDNN", cudnn, key));
  for (const auto& tactic : build.owned) build.tactics.insert(build.tactics.begin(), tactic.get());
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  Result<BackendBuild> prepare(std::string_view target, const BackendSettings& settings) const override {
    BackendBuild build;
    if (target.starts_with("cuda-")) {
      build.device = find_device_for(target);
    } else {
      LATHE_ASSIGN(build.device, open_named(target));
    }
    const std::string name = build.device ? build.device->target() : std::string(target);
    LATHE_ASSIGN(const Architecture* architecture, parse_target(name));
    build.target = build.device ? build.device->describe() : describe(*architecture);
    build.timing_key = build.device ? build.device->timing_key() : name;
    build.portability = target == target_name(ampere_plus()) ? Portability::ampere_plus : settings.portability;
    build.source_target = this->name();
    LATHE_TRY(check_portability(*architecture, build));
    if (build.portability == Portability::ampere_plus) LATHE_TRY(widen(*architecture, build));
    LATHE_ASSIGN(build.compiler, NvrtcCompiler::create(build.target.name, headers(), settings.compiler));
    build.traits = kTraits;
    build.join_launches = joined_launch;
    build.packing_source = packing_source();
    build.traits.arithmetic.float8_products = build.target.limits.float8;
    build.traits.arithmetic.float8_block = float8_block(build.target);
    build.no_tf32 = why_no_tf32(*architecture);
    build.no_sparsity = why_no_sparsity(*architecture);
    build.tactics = cuda_tactics();
    build.data_dependent = data_dependent_tactics();
    if (build.portability != Portability::ampere_plus) {
      add_libraries(settings.libraries, build);
    } else if (!settings.libraries.empty() && settings.compiler.log) {
      settings.compiler.log->print(
          Severity::warning,
          "tactic sources kCUBLAS_LT and kCUDNN have no effect: what the libraries choose is not "
          "for all GPUs of HardwareCompatibilityLevel::kAMPERE_PLUS");
    }
    return build;
  }

  Survey survey() const override { return cuda::survey(); }
};

}  // namespace

const Backend& backend();  // families.def
const Backend& backend() {
  static const CudaBackend backend;
  return backend;
}

}  // namespace lathe::cuda
