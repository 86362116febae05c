// SPDX-License-Identifier: Apache-2.0
// Enumerations of the runtime side. Include NvInferRuntime.h instead.
#ifndef NVINFER_RUNTIME_ENUMS_H
#define NVINFER_RUNTIME_ENUMS_H

#include "NvInferRuntimeBase.h"

namespace nvinfer1 {

enum class EngineCapability : int32_t {
  kSTANDARD = 0,  // no restriction
  kSAFETY = 1,
  kDLA_STANDALONE = 2,
};
template <>
struct impl::EnumMaxImpl<EngineCapability> {
  static constexpr int32_t kVALUE = 3;
};

// What weights are to their layer.
enum class WeightsRole : int32_t {
  kKERNEL = 0,
  kBIAS = 1,
  kSHIFT = 2,
  kSCALE = 3,
  kCONSTANT = 4,
  kANY = 5,
};
template <>
struct impl::EnumMaxImpl<WeightsRole> {
  static constexpr int32_t kVALUE = 6;
};

enum class DeviceType : int32_t {
  kGPU = 0,
  kDLA = 1,
};
template <>
struct impl::EnumMaxImpl<DeviceType> {
  static constexpr int32_t kVALUE = 2;
};

enum class TempfileControlFlag : int32_t {
  kALLOW_IN_MEMORY_FILES = 0,
  kALLOW_TEMPORARY_FILES = 1,
};
template <>
struct impl::EnumMaxImpl<TempfileControlFlag> {
  static constexpr int32_t kVALUE = 2;
};
using TempfileControlFlags = uint32_t;

enum class OptProfileSelector : int32_t {
  kMIN = 0,  // least sizes
  kOPT = 1,  // sizes to tune for
  kMAX = 2,  // largest sizes
};
template <>
struct impl::EnumMaxImpl<OptProfileSelector> {
  static constexpr int32_t kVALUE = 3;
};

#if NV_TENSORRT_MAJOR >= 11
enum class TacticSource : int32_t {
  kEDGE_MASK_CONVOLUTIONS = 0,
  kJIT_CONVOLUTIONS = 1,
};
template <>
struct impl::EnumMaxImpl<TacticSource> {
  static constexpr int32_t kVALUE = 2;
};
#else
enum class TacticSource : int32_t {
  kCUBLAS TRT_DEPRECATED_ENUM = 0,
  kCUBLAS_LT TRT_DEPRECATED_ENUM = 1,
  kCUDNN TRT_DEPRECATED_ENUM = 2,
  kEDGE_MASK_CONVOLUTIONS = 3,
  kJIT_CONVOLUTIONS = 4,
};
template <>
struct impl::EnumMaxImpl<TacticSource> {
  static constexpr int32_t kVALUE = 5;
};
#endif
using TacticSources = uint32_t;

enum class ProfilingVerbosity : int32_t {
  kLAYER_NAMES_ONLY = 0,
  kNONE = 1,
  kDETAILED = 2,
};
template <>
struct impl::EnumMaxImpl<ProfilingVerbosity> {
  static constexpr int32_t kVALUE = 3;
};

enum class SerializationFlag : int32_t {
  kEXCLUDE_WEIGHTS = 0,  // leave refittable weights out
  kEXCLUDE_LEAN_RUNTIME = 1,
  kINCLUDE_REFIT = 2,  // the result stays refittable
};
template <>
struct impl::EnumMaxImpl<SerializationFlag> {
  static constexpr int32_t kVALUE = 3;
};
using SerializationFlags = uint32_t;

// How a context gets its scratch memory.
enum class ExecutionContextAllocationStrategy : int32_t {
  kSTATIC = 0,             // for the largest of all profiles, at creation: enqueueV3() allocates none
  kON_PROFILE_CHANGE = 1,  // for the chosen profile, when it is chosen
  kUSER_MANAGED = 2,       // the application gives it
};
template <>
struct impl::EnumMaxImpl<ExecutionContextAllocationStrategy> {
  static constexpr int32_t kVALUE = 3;
};

// What becomes of kernels for open sizes when a context is run with sizes that it has not seen yet.
enum class DynamicShapesKernelSpecializationStrategy : int32_t {
  kLAZY = 0,   // a kernel for these sizes is compiled in the background, and runs from a later run on
  kEAGER = 1,  // it is compiled at once, before the run
  kNONE = 2,   // the kernel for open sizes always runs
};
template <>
struct impl::EnumMaxImpl<DynamicShapesKernelSpecializationStrategy> {
  static constexpr int32_t kVALUE = 3;
};

// Whether a context replays its work as a CUDA graph that it captures by itself.
enum class CudaGraphStrategy : int32_t {
  kDISABLED = 0,
  kWHOLE_GRAPH_CAPTURE = 1,
};
template <>
struct impl::EnumMaxImpl<CudaGraphStrategy> {
  static constexpr int32_t kVALUE = 2;
};

// Sizes in bytes.
enum class EngineStat : int32_t {
  kTOTAL_WEIGHTS_SIZE = 0,
  kSTRIPPED_WEIGHTS_SIZE = 1,  // of a plan without weights
};
template <>
struct impl::EnumMaxImpl<EngineStat> {
  static constexpr int32_t kVALUE = 2;
};

enum class LayerInformationFormat : int32_t {
  kONELINE = 0,
  kJSON = 1,
};
template <>
struct impl::EnumMaxImpl<LayerInformationFormat> {
  static constexpr int32_t kVALUE = 2;
};

}  // namespace nvinfer1

#endif  // NVINFER_RUNTIME_ENUMS_H
