// SPDX-License-Identifier: Apache-2.0
// The enumerations that generation 10 numbers differently. Include NvInfer.h instead.
#ifndef NVINFER_NETWORK_ENUMS_10_16_H
#define NVINFER_NETWORK_ENUMS_10_16_H

#include "NvInferRuntimeBase.h"

#if NV_TENSORRT_MAJOR < 11

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

enum class CollectiveOperation : int32_t {
  kALL_REDUCE = 0,
  kALL_GATHER = 1,
  kBROADCAST = 2,
  kREDUCE = 3,
  kREDUCE_SCATTER = 4,
};
template <>
struct impl::EnumMaxImpl<CollectiveOperation> {
  static constexpr int32_t kVALUE = 5;
};

enum class BuilderFlag : int32_t {
  kFP16 TRT_DEPRECATED_ENUM = 0,  // layers may compute in half
  kINT8 TRT_DEPRECATED_ENUM = 1,  // and in int8, with the ranges of tensors
  kDEBUG = 2,                     // check for errors after every layer
  kGPU_FALLBACK = 3,              // layers that a DLA refuses run on the GPU
  kREFIT = 4,                     // weights can be replaced
  kDISABLE_TIMING_CACHE = 5,
  kTF32 = 6,            // float matrix products may use TF32; on by default
  kSPARSE_WEIGHTS = 7,  // may use 2:4 sparsity
  kSAFETY_SCOPE TRT_DEPRECATED_ENUM = 8,
  kOBEY_PRECISION_CONSTRAINTS TRT_DEPRECATED_ENUM = 9,     // the build fails where a layer cannot
  kPREFER_PRECISION_CONSTRAINTS TRT_DEPRECATED_ENUM = 10,  // a warning where a layer cannot
  kDIRECT_IO TRT_DEPRECATED_ENUM = 11,
  kREJECT_EMPTY_ALGORITHMS TRT_DEPRECATED_ENUM = 12,
  kVERSION_COMPATIBLE = 13,
  kEXCLUDE_LEAN_RUNTIME = 14,
  kFP8 TRT_DEPRECATED_ENUM = 15,     // fp8 quantization may be used
  kERROR_ON_TIMING_CACHE_MISS = 16,  // fail rather than measure
  kBF16 TRT_DEPRECATED_ENUM = 17,    // and in bf16
  kDISABLE_COMPILATION_CACHE = 18,
  kSTRIP_PLAN = 19,  // leave refittable weights out of the plan
  kWEIGHTLESS TRT_DEPRECATED_ENUM = 19,
  kREFIT_IDENTICAL = 20,           // as kREFIT, for equal values only
  kWEIGHT_STREAMING = 21,          // weights may stay in host memory
  kINT4 TRT_DEPRECATED_ENUM = 22,  // int4 weights may be used
  kREFIT_INDIVIDUAL = 23,          // only weights marked in the network
  kSTRICT_NANS = 24,               // keep NaN where a shortcut would lose it
  kMONITOR_MEMORY = 25,
  kFP4 TRT_DEPRECATED_ENUM = 26,  // fp4 quantization may be used
  kEDITABLE_TIMING_CACHE = 27,
  kDISTRIBUTIVE_INDEPENDENCE = 28,  // results do not depend on the batch size
};
template <>
struct impl::EnumMaxImpl<BuilderFlag> {
  static constexpr int32_t kVALUE = 29;
};

enum class PreviewFeature : int32_t {
  kPROFILE_SHARING_0806 TRT_DEPRECATED_ENUM = 0,  // contexts may always share a profile
  kALIASED_PLUGIN_IO_10_03 = 1,
  kRUNTIME_ACTIVATION_RESIZE_10_10 = 2,
  kMULTIDEVICE_RUNTIME_10_16 = 3,
};
template <>
struct impl::EnumMaxImpl<PreviewFeature> {
  static constexpr int32_t kVALUE = 4;
};

enum class NetworkDefinitionCreationFlag : int32_t {
  kEXPLICIT_BATCH TRT_DEPRECATED_ENUM = 0,  // ignored: all networks have it
  kSTRONGLY_TYPED = 1,                      // ignored: all networks are
  kPREFER_JIT_PYTHON_PLUGINS = 2,
  kPREFER_AOT_PYTHON_PLUGINS = 3,
};
template <>
struct impl::EnumMaxImpl<NetworkDefinitionCreationFlag> {
  static constexpr int32_t kVALUE = 4;
};

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif

#endif  // NVINFER_NETWORK_ENUMS_10_16_H
