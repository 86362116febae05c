// SPDX-License-Identifier: Apache-2.0
// Tactic sources of lathe.h that are libraries, by the names that plans have for them.
#pragma once

#include "device/launch.h"
#include "lathe.h"

namespace lathe::api {

struct LibrarySource {
  nvinfer1::TacticSource source;
  std::string_view library;  // Launch::library
};
inline constexpr LibrarySource kLibrarySources[] = {{kCUBLAS_LT, kCublasLtName}, {kCUDNN, kCudnnName}};

}  // namespace lathe::api
