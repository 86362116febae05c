// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/nvrtc.h"

#include "base/own_file.h"
#include "device/cuda/shared_library.h"

namespace lathe::cuda {
namespace {

constexpr int kMinMajor = 12;

template <class F>
Result<> resolve(const SharedLibrary& library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(library.symbol(symbol));
  if (function) return {};
  return fail(ErrorCode::cuda_symbol_missing,
              "'{}' lacks the function {}, which Lathe needs: install NVRTC of CUDA 12 or 13", library.path(), symbol);
}

Result<> read_version(Nvrtc& nvrtc) {
  int count = 0;
  if (nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor) != NVRTC_SUCCESS ||
      nvrtc.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count < 1)
    return fail(ErrorCode::nvrtc_unsuitable,
                "'{}' does not tell its version and architectures: install NVRTC of CUDA 12 or 13", nvrtc.path);
  if (nvrtc.major < kMinMajor)
    return fail(ErrorCode::nvrtc_unsuitable, "'{}' is of CUDA {}.{}, and Lathe needs CUDA {} or newer", nvrtc.path,
                nvrtc.major, nvrtc.minor, kMinMajor);
  nvrtc.architectures.resize(count);
  if (nvrtc.nvrtcGetSupportedArchs(nvrtc.architectures.data()) != NVRTC_SUCCESS)
    return fail(ErrorCode::nvrtc_unsuitable, "'{}' does not tell which architectures it knows", nvrtc.path);
  return {};
}

}  // namespace

Result<std::unique_ptr<const Nvrtc>> open_nvrtc(std::span<const std::string> names) {
  Result<SharedLibrary> library = SharedLibrary::open(names, ErrorCode::nvrtc_missing);
  if (!library)
    return fail(ErrorCode::nvrtc_missing,
                "NVRTC, which compiles kernels, cannot be loaded ({}): install it (pip install nvidia-cuda-nvrtc), or "
                "set LATHE_NVRTC to its path; running engines does not need it",
                library.error().message);
  auto nvrtc = std::make_unique<Nvrtc>();
  nvrtc->path = library->path();
#define LATHE_NVRTC_FUNCTION(name, parameters) LATHE_TRY(resolve(*library, #name, nvrtc->name));
#include "device/cuda/nvrtc.def"
#undef LATHE_NVRTC_FUNCTION
  if (std::string file = file_of(reinterpret_cast<const void*>(nvrtc->nvrtcVersion)); !file.empty())
    nvrtc->path = std::move(file);  // a name such as libnvrtc.so.13 may lead to another file tomorrow
  LATHE_TRY(read_version(*nvrtc));
  return nvrtc;
}

}  // namespace lathe::cuda
