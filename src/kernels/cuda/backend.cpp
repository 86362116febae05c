// SPDX-License-Identifier: Apache-2.0
// What NVIDIA GPUs offer to builds.
#include "tuning/backend.h"

#include <algorithm>

#include "device/cuda/architecture.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/environment.h"
#include "device/cuda/family.h"
#include "device/cuda/nvrtc_compiler.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/cuda_traits.h"
#include "kernels/cuda/generic/data_dependent_ops.h"
#include "kernels/cuda/headers.h"
#include "kernels/cuda/libraries/cublaslt_tactic.h"
#include "kernels/cuda/libraries/cudnn_tactic.h"

namespace lathe::cuda {
namespace {

// A GPU here that plans for `target` run on; null when there is none, and the reason does not matter.
std::shared_ptr<Device> find_device_for(std::string_view target) {
  Result<std::shared_ptr<Device>> device = open_named("cuda");
  return device && (*device)->target() == target ? *device : nullptr;
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
    LATHE_ASSIGN(build.compiler, NvrtcCompiler::create(name, headers(), settings.compiler));
    LATHE_ASSIGN(const Architecture* architecture, parse_target(name));
    build.target = build.device ? build.device->describe() : describe(*architecture);
    build.traits = kTraits;
    build.tactics = cuda_tactics();
    build.data_dependent = data_dependent_tactics();
    build.timing_key = build.device ? build.device->timing_key() : name;
    add_libraries(settings.libraries, build);
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
