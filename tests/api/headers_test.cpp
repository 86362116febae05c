// SPDX-License-Identifier: Apache-2.0
// The public headers keep their numbers and the order of their virtual functions.
#include <gtest/gtest.h>

// A program may see CUDA's own declarations, before or after ours.
typedef struct CUstream_st* cudaStream_t;
#include "NvInfer.h"
#include "NvInferImpl.h"
#include "NvInferPlugin.h"
#include "NvOnnxConfig.h"
#include "NvOnnxParser.h"
#include "api/slot_of.h"
#include "lathe.h"
typedef struct CUevent_st* cudaEvent_t;

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvinfer1 {
namespace {

#define VALUE(enumeration, enumerator, number) \
  static_assert(static_cast<int>(enumeration::enumerator) == number, #enumeration "::" #enumerator);
#define COUNT(enumeration, number) static_assert(EnumMax<enumeration>() == number, #enumeration);
#include "api/enums.def"
#undef VALUE
#undef COUNT

static_assert(sizeof(Dims) == 72 && sizeof(Weights) == 24 && sizeof(PluginField) == 24);
static_assert(sizeof(PluginTensorDesc) == 88 && sizeof(DimsExprs) == 72 && sizeof(DynamicPluginTensorDesc) == 304);
static_assert(sizeof(TimingCacheKey) == 16 && sizeof(TimingCacheValue) == 16 && sizeof(Permutation) == 32);
static_assert(sizeof(IBuilder) == 2 * sizeof(void*) && sizeof(IExecutionContext) == 2 * sizeof(void*));
static_assert(NV_TENSORRT_VERSION == 110100L && NV_ONNX_PARSER_VERSION == 100);

using nvonnxparser::IParser;

TEST(HeaderSlots, InterfacesOfTheApplication) {
  const Slot slots[] = {
#include "api/slots_interfaces.def"
  };
  for (const Slot& slot : slots) EXPECT_EQ(slot.actual, slot.expected) << slot.name;
}

TEST(HeaderSlots, Objects) {
  const Slot slots[] = {
#include "api/slots_objects.def"
  };
  for (const Slot& slot : slots) EXPECT_EQ(slot.actual, slot.expected) << slot.name;
}

TEST(HeaderSlots, Layers) {
  const Slot slots[] = {
#include "api/slots_layers.def"
  };
  for (const Slot& slot : slots) EXPECT_EQ(slot.actual, slot.expected) << slot.name;
}

TEST(HeaderTypes, LegacyDims) {
  const Dims4 dims(1, 2, 3, 4);
  EXPECT_EQ(dims.nbDims, 4);
  EXPECT_EQ(dims.d[3], 4);
  EXPECT_EQ(dims.d[7], 0);
  DimsHW window(5, 6);
  window.h() = 7;
  EXPECT_EQ(window.h(), 7);
  EXPECT_EQ(window.w(), 6);
}

struct RecordingLogger : ILogger {
  void log(Severity severity, const char* message) noexcept override { last = message; }
  const char* last = nullptr;
};

TEST(HeaderTypes, ApplicationInterfaces) {
  RecordingLogger logger;
  EXPECT_STREQ(logger.getInterfaceInfo().kind, "ILogger");
  EXPECT_EQ(logger.getAPILanguage(), APILanguage::kCPP);
  ILogger& base = logger;
  base.log(ILogger::Severity::kINFO, "hello");
  EXPECT_STREQ(logger.last, "hello");
}

}  // namespace
}  // namespace nvinfer1
