// SPDX-License-Identifier: Apache-2.0
// Shapes on the command line: name:1x3x224x224,other:1x77.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "NvInfer.h"

namespace lathe::cli {

using ShapeMap = std::map<std::string, std::vector<int64_t>>;

// `option` is what messages call it. Throws UsageError.
ShapeMap parse_shapes(std::string_view text, std::string_view option);

// Splits name:file,other:file. Throws UsageError.
std::map<std::string, std::string> parse_files(std::string_view text, std::string_view option);

// The ranges that the command line asks for.
struct ShapeRanges {
  ShapeMap min, opt, max;

  bool empty() const { return min.empty() && opt.empty() && max.empty(); }
  static ShapeRanges exactly(const ShapeMap& shapes) { return {shapes, shapes, shapes}; }
};
// What one of them leaves out is taken from another.
ShapeRanges parse_ranges(std::string_view min, std::string_view opt, std::string_view max);

// Sets the profile's inputs, by ranges of parse_ranges() or exactly(). Throws UsageError for names that the network
// lacks and shapes that do not fit.
void fill_profile(nvinfer1::IOptimizationProfile& profile, const nvinfer1::INetworkDefinition& network,
                  const ShapeRanges& ranges);

bool is_dynamic(const nvinfer1::Dims& dims);

}  // namespace lathe::cli
