// SPDX-License-Identifier: Apache-2.0
// What an application's progress monitor is told.
#pragma once

#include <string>
#include <string_view>

#include "NvInfer.h"

namespace lathe::api {

namespace nv = nvinfer1;

// Tells an IProgressMonitor of one phase after the other, in percent.
class ProgressAdapter {
 public:
  explicit ProgressAdapter(nv::IProgressMonitor* monitor) : monitor_(monitor) {}
  ~ProgressAdapter() { finish(); }
  ProgressAdapter(const ProgressAdapter&) = delete;
  ProgressAdapter& operator=(const ProgressAdapter&) = delete;

  // False: the application wants no more of it.
  bool operator()(std::string_view phase, double fraction) {
    if (!monitor_) return true;
    if (phase != phase_) {
      finish();
      phase_ = phase;
      monitor_->phaseStart(phase_.c_str(), nullptr, kSteps);
    }
    return monitor_->stepComplete(phase_.c_str(), static_cast<int32_t>(fraction * (kSteps - 1)));
  }

 private:
  static constexpr int32_t kSteps = 100;
  void finish() {
    if (monitor_ && !phase_.empty()) monitor_->phaseFinish(phase_.c_str());
    phase_.clear();
  }

  nv::IProgressMonitor* monitor_;
  std::string phase_;
};

}  // namespace lathe::api
