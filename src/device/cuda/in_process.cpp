// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "base/never_destroyed.h"
#include "device/cuda/toolchain.h"

namespace lathe::cuda {
namespace {

// One kernel at a time, because NVRTC has crashed in processes in which several threads called it (decision 0013).
std::mutex& nvrtc_turn() {
  static NeverDestroyed<std::mutex> mutex;
  return *mutex;
}

class InProcess final : public Toolchain {
 public:
  explicit InProcess(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  explicit InProcess(std::unique_ptr<const Nvrtc> nvrtc) : owned_(std::move(nvrtc)), nvrtc_(*owned_) {}

  const NvrtcInfo& nvrtc() const override { return nvrtc_; }
  Result<Compiled> compile(const CompileRequest& request) override {
    const std::lock_guard lock(nvrtc_turn());
    return compile_source(nvrtc_, request);
  }

 private:
  std::unique_ptr<const Nvrtc> owned_;
  const Nvrtc& nvrtc_;
};

}  // namespace

Result<std::unique_ptr<Toolchain>> open_in_process(const std::vector<std::string>& names) {
  if (names.empty()) {
    LATHE_ASSIGN(const Nvrtc* shared, nvrtc());
    return std::make_unique<InProcess>(*shared);
  }
  LATHE_ASSIGN(std::unique_ptr<const Nvrtc> own, open_nvrtc(names));
  return std::make_unique<InProcess>(std::move(own));
}

}  // namespace lathe::cuda
