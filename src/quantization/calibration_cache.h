// SPDX-License-Identifier: Apache-2.0
// The text in which applications keep what a calibration found, as TensorRT writes it:
//   TRT-101600-EntropyCalibration2
//   input: 3c010a14
// The first line names version and method, each other one a tensor and the bits of its scale, an f32.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lathe {

// What an 8-bit level stands for, by the names of tensors; 0 = the tensor has no range.
using TensorScales = std::map<std::string, float>;

struct CalibrationCache {
  std::string method;  // "EntropyCalibration2"
  TensorScales scales;
};

// `version` is the interface's, 101600 for 10.16.0.
std::string to_text(const CalibrationCache& cache, int version);
// Of any version. Fails, naming the line, where the text is something else.
Result<CalibrationCache> parse_calibration_cache(std::string_view text);

}  // namespace lathe
