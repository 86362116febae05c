// SPDX-License-Identifier: Apache-2.0
// The convolution layers of four image networks at batch 1, as the kernels see them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lathe::bench {

struct Layer {
  std::string network;
  enum Kind { conv, stem, depthwise } kind;
  int64_t channels, out_channels, kernel, stride, in_size;
  int count;            // how often the network has it
  std::string program;  // epilogue

  int64_t pad() const { return kernel / 2; }
  int64_t out_size() const { return (in_size + 2 * pad() - kernel) / stride + 1; }
  double flops() const {
    const double inputs = kind == depthwise ? 1 : static_cast<double>(channels);
    return 2.0 * static_cast<double>(out_channels * out_size() * out_size() * kernel * kernel) * inputs;
  }
  std::string text() const;
};

std::vector<Layer> layers();

}  // namespace lathe::bench
