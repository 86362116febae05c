// SPDX-License-Identifier: Apache-2.0
// The headers of generation 10 have its numbers, and its functions where programs that were compiled for it look for
// them.
#include <cstdio>

#include "NvInfer.h"
#include "NvInferPlugin.h"
#include "NvOnnxParser.h"
#include "api/guest/function_order.h"
#include "api/slot_of.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvinfer1 {
namespace {

#define VALUE(enumeration, enumerator, number) \
  static_assert(static_cast<int>(enumeration::enumerator) == number, #enumeration "::" #enumerator);
#define COUNT(enumeration, number) static_assert(EnumMax<enumeration>() == number, #enumeration);
#include "api/enums_10_16.def"
#undef VALUE
#undef COUNT

static_assert(NV_TENSORRT_MAJOR == 10 && NV_TENSORRT_VERSION == 101600L);
static_assert(static_cast<int>(BuilderFlag::kWEIGHTLESS) == static_cast<int>(BuilderFlag::kSTRIP_PLAN));
static_assert(sizeof(plugin::DetectionOutputParameters) == 48 && sizeof(plugin::NMSParameters) == 32);

const Slot kSlots[] = {
#include "interface/slots_interfaces_10_16.def"
#include "interface/slots_layers_10_16.def"
#include "interface/slots_objects_10_16.def"
};

}  // namespace
}  // namespace nvinfer1

int main() {
  int wrong = 0;
  for (const nvinfer1::Slot& slot : nvinfer1::kSlots) {
    if (slot.actual == slot.expected) continue;
    std::printf("%s: slot %d, should be %d\n", slot.name, slot.actual, slot.expected);
    ++wrong;
  }
  for (const std::string& name : lathe::api::guest::misplaced_functions()) {
    std::printf("src/api/guest/functions.h: %s is elsewhere\n", name.c_str());
    ++wrong;
  }
  std::printf("%zu functions, %d in a wrong slot\n", std::size(nvinfer1::kSlots), wrong);
  return wrong == 0 ? 0 : 1;
}
