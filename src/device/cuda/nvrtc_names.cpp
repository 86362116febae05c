// SPDX-License-Identifier: Apache-2.0
// Which NVRTC this process uses.
#include <algorithm>
#include <mutex>

#include "device/cuda/driver.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/shared_library.h"

namespace lathe::cuda {

std::vector<std::string> nvrtc_names() {
  std::vector<std::string> files = {"libnvrtc.so.13", "libnvrtc.so.12"};
  // A driver loads cubins made by compilers of its own major version and of older ones.
  const Result<const Driver*> running = driver();
  if (running && (*running)->version / 1000 == 12) std::swap(files[0], files[1]);
  files.emplace_back("libnvrtc.so");
  std::vector<std::string> names = toolkit_names("LATHE_NVRTC", files);
  if (std::optional<std::string> loaded = SharedLibrary::find_loaded(names)) names.insert(names.begin(), *loaded);
  return names;
}

Result<const Nvrtc*> nvrtc() {
  static std::mutex mutex;
  static const Nvrtc* opened = nullptr;  // lives as long as the process
  const std::lock_guard lock(mutex);
  if (opened) return opened;
  LATHE_ASSIGN(std::unique_ptr<const Nvrtc> nvrtc, open_nvrtc(nvrtc_names()));
  return opened = nvrtc.release();
}

}  // namespace lathe::cuda
