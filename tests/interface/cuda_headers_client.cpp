// SPDX-License-Identifier: Apache-2.0
// Programs for TensorRT rely on what its headers include: CUDA's runtime where it is installed, limits of integers,
// sizes of earlier versions, the logger, and what bindings for Python need.
#include "NvInferRuntimeCommon.h"

namespace {

static_assert(CUDART_VERSION == 12000 && INT_MAX > 0);
[[maybe_unused]] cudaEvent_t g_event = nullptr;
[[maybe_unused]] nvinfer1::ILogger* g_logger = nullptr;

}  // namespace

#include "NvInferRuntime.h"
#include "impl/NvInferPythonPlugin.h"

namespace {

[[maybe_unused]] const nvinfer1::Dims g_sizes[] = {nvinfer1::Dims2(1, 2), nvinfer1::Dims3(1, 2, 3),
                                                   nvinfer1::Dims4(1, 2, 3, 4), nvinfer1::DimsHW(1, 2)};
[[maybe_unused]] nvinfer1::IPluginCreatorV3Quick* g_creator = nullptr;

}  // namespace
