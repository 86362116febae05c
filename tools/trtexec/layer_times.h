// SPDX-License-Identifier: Apache-2.0
// Times of layers: --dumpProfile and --exportProfile.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "trtexec/log.h"

namespace lathe::trtexec {

class LayerTimes final : public nvinfer1::IProfiler {
 public:
  void reportLayerTime(const char* layer, float milliseconds) noexcept override;
  size_t iterations() const;
  void print(TrtexecLog& log) const;
  std::string json() const;

 private:
  struct Row {
    std::string name;
    std::vector<double> milliseconds;  // of each iteration
    double sum() const;
    double median() const;
  };
  double total() const;

  std::vector<Row> rows_;  // in the engine's order
  std::map<std::string, size_t> index_;
};

}  // namespace lathe::trtexec
