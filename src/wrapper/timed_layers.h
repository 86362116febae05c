// SPDX-License-Identifier: Apache-2.0
// Times of layers over several runs.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "NvInferRuntime.h"

namespace lathe::wrapper {

class TimedLayers final : public nvinfer1::IProfiler {
 public:
  void reportLayerTime(const char* layer, float milliseconds) noexcept override;
  void restart();
  // {"name", "runs", "layers": [{"name", "milliseconds"}]}, in the order of the first run.
  std::string json(const std::string& name) const;

 private:
  struct Sum {
    std::string layer;
    double milliseconds = 0;
    int64_t runs = 0;
  };
  mutable std::mutex mutex_;
  std::vector<Sum> sums_;
  std::map<std::string, size_t> places_;
};

}  // namespace lathe::wrapper
