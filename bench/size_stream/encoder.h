// SPDX-License-Identifier: Apache-2.0
// An encoder as BERT's, with random weights, of sequences of open length.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "NvInfer.h"

namespace lathe::bench {

struct EncoderSizes {
  int64_t layers = 12, width = 768, heads = 12, hidden = 3072;
  int64_t least = 16, usual = 128, most = 512;  // tokens
};

// The plan, in f16 on GPUs and f32 on CPUs; null = the reason was logged. `seconds` of tuning.
std::unique_ptr<nvinfer1::IHostMemory> build_encoder(const EncoderSizes& sizes, const std::string& target,
                                                     double seconds, nvinfer1::ILogger& log);

}  // namespace lathe::bench
