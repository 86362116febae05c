// SPDX-License-Identifier: Apache-2.0
#include "layers.h"

#include <fmt/core.h>

namespace lathe::bench {
namespace {

const char* const kBias = "in=2; r2=add r0 r1; out r2";
const char* const kRelu = "in=2; r2=add r0 r1; r3=relu r2; out r3";
const char* const kRelu6 = "in=2; r2=add r0 r1; r3=clip r2 0 6; out r3";
const char* const kSilu = "in=2; r2=add r0 r1; r3=silu r2; out r3";
const char* const kSum = "in=3; r3=add r0 r1; r4=add r3 r2; out r4";
const char* const kSumRelu = "in=3; r3=add r0 r1; r4=add r3 r2; r5=relu r4; out r5";

struct Row {
  Layer::Kind kind;
  int64_t channels, out_channels, kernel, stride, in_size;
  int count;
  const char* program;
};
constexpr auto C = Layer::conv, S = Layer::stem, D = Layer::depthwise;

const Row kResNet50[] = {
    {S, 3, 64, 7, 2, 224, 1, kRelu},    {C, 64, 64, 1, 1, 56, 1, kRelu},       {C, 256, 64, 1, 1, 56, 2, kRelu},
    {C, 64, 64, 3, 1, 56, 3, kRelu},    {C, 64, 256, 1, 1, 56, 3, kSumRelu},   {C, 64, 256, 1, 1, 56, 1, kBias},
    {C, 256, 128, 1, 1, 56, 1, kRelu},  {C, 128, 128, 3, 2, 56, 1, kRelu},     {C, 512, 128, 1, 1, 28, 3, kRelu},
    {C, 128, 128, 3, 1, 28, 3, kRelu},  {C, 128, 512, 1, 1, 28, 4, kSumRelu},  {C, 256, 512, 1, 2, 56, 1, kBias},
    {C, 512, 256, 1, 1, 28, 1, kRelu},  {C, 256, 256, 3, 2, 28, 1, kRelu},     {C, 1024, 256, 1, 1, 14, 5, kRelu},
    {C, 256, 256, 3, 1, 14, 5, kRelu},  {C, 256, 1024, 1, 1, 14, 6, kSumRelu}, {C, 512, 1024, 1, 2, 28, 1, kBias},
    {C, 1024, 512, 1, 1, 14, 1, kRelu}, {C, 512, 512, 3, 2, 14, 1, kRelu},     {C, 2048, 512, 1, 1, 7, 2, kRelu},
    {C, 512, 512, 3, 1, 7, 2, kRelu},   {C, 512, 2048, 1, 1, 7, 3, kSumRelu},  {C, 1024, 2048, 1, 2, 14, 1, kBias},
    {C, 2048, 1000, 1, 1, 1, 1, kBias},
};
const Row kMobileNetV2[] = {
    {S, 3, 32, 3, 2, 224, 1, kRelu6},   {D, 32, 32, 3, 1, 112, 1, kRelu6},  {C, 32, 16, 1, 1, 112, 1, kBias},
    {C, 16, 96, 1, 1, 112, 1, kRelu6},  {D, 96, 96, 3, 2, 112, 1, kRelu6},  {C, 96, 24, 1, 1, 56, 1, kBias},
    {C, 24, 144, 1, 1, 56, 2, kRelu6},  {D, 144, 144, 3, 1, 56, 1, kRelu6}, {C, 144, 24, 1, 1, 56, 1, kSum},
    {D, 144, 144, 3, 2, 56, 1, kRelu6}, {C, 144, 32, 1, 1, 28, 1, kBias},   {C, 32, 192, 1, 1, 28, 3, kRelu6},
    {D, 192, 192, 3, 1, 28, 2, kRelu6}, {C, 192, 32, 1, 1, 28, 2, kSum},    {D, 192, 192, 3, 2, 28, 1, kRelu6},
    {C, 192, 64, 1, 1, 14, 1, kBias},   {C, 64, 384, 1, 1, 14, 4, kRelu6},  {D, 384, 384, 3, 1, 14, 4, kRelu6},
    {C, 384, 64, 1, 1, 14, 3, kSum},    {C, 384, 96, 1, 1, 14, 1, kBias},   {C, 96, 576, 1, 1, 14, 3, kRelu6},
    {D, 576, 576, 3, 1, 14, 2, kRelu6}, {C, 576, 96, 1, 1, 14, 2, kSum},    {D, 576, 576, 3, 2, 14, 1, kRelu6},
    {C, 576, 160, 1, 1, 7, 1, kBias},   {C, 160, 960, 1, 1, 7, 3, kRelu6},  {D, 960, 960, 3, 1, 7, 3, kRelu6},
    {C, 960, 160, 1, 1, 7, 2, kSum},    {C, 960, 320, 1, 1, 7, 1, kBias},   {C, 320, 1280, 1, 1, 7, 1, kRelu6},
    {C, 1280, 1000, 1, 1, 1, 1, kBias},
};
// Without the squeeze-and-excitation blocks' small layers.
const Row kEfficientNetB0[] = {
    {S, 3, 32, 3, 2, 224, 1, kSilu},    {D, 32, 32, 3, 1, 112, 1, kSilu},  {C, 32, 16, 1, 1, 112, 1, kBias},
    {C, 16, 96, 1, 1, 112, 1, kSilu},   {D, 96, 96, 3, 2, 112, 1, kSilu},  {C, 96, 24, 1, 1, 56, 1, kBias},
    {C, 24, 144, 1, 1, 56, 2, kSilu},   {D, 144, 144, 3, 1, 56, 1, kSilu}, {C, 144, 24, 1, 1, 56, 1, kSum},
    {D, 144, 144, 5, 2, 56, 1, kSilu},  {C, 144, 40, 1, 1, 28, 1, kBias},  {C, 40, 240, 1, 1, 28, 2, kSilu},
    {D, 240, 240, 5, 1, 28, 1, kSilu},  {C, 240, 40, 1, 1, 28, 1, kSum},   {D, 240, 240, 3, 2, 28, 1, kSilu},
    {C, 240, 80, 1, 1, 14, 1, kBias},   {C, 80, 480, 1, 1, 14, 3, kSilu},  {D, 480, 480, 3, 1, 14, 2, kSilu},
    {C, 480, 80, 1, 1, 14, 2, kSum},    {D, 480, 480, 5, 1, 14, 1, kSilu}, {C, 480, 112, 1, 1, 14, 1, kBias},
    {C, 112, 672, 1, 1, 14, 3, kSilu},  {D, 672, 672, 5, 1, 14, 2, kSilu}, {C, 672, 112, 1, 1, 14, 2, kSum},
    {D, 672, 672, 5, 2, 14, 1, kSilu},  {C, 672, 192, 1, 1, 7, 1, kBias},  {C, 192, 1152, 1, 1, 7, 4, kSilu},
    {D, 1152, 1152, 5, 1, 7, 3, kSilu}, {C, 1152, 192, 1, 1, 7, 3, kSum},  {D, 1152, 1152, 3, 1, 7, 1, kSilu},
    {C, 1152, 320, 1, 1, 7, 1, kBias},  {C, 320, 1280, 1, 1, 7, 1, kSilu}, {C, 1280, 1000, 1, 1, 1, 1, kBias},
};
const Row kYoloV8n[] = {
    {S, 3, 16, 3, 2, 640, 1, kSilu},   {C, 16, 32, 3, 2, 320, 1, kSilu},  {C, 32, 32, 1, 1, 160, 1, kSilu},
    {C, 16, 16, 3, 1, 160, 2, kSilu},  {C, 48, 32, 1, 1, 160, 1, kSilu},  {C, 32, 64, 3, 2, 160, 1, kSilu},
    {C, 64, 64, 1, 1, 80, 1, kSilu},   {C, 32, 32, 3, 1, 80, 6, kSilu},   {C, 128, 64, 1, 1, 80, 1, kSilu},
    {C, 64, 128, 3, 2, 80, 1, kSilu},  {C, 128, 128, 1, 1, 40, 1, kSilu}, {C, 64, 64, 3, 1, 40, 8, kSilu},
    {C, 256, 128, 1, 1, 40, 1, kSilu}, {C, 128, 256, 3, 2, 40, 1, kSilu}, {C, 256, 256, 1, 1, 20, 1, kSilu},
    {C, 128, 128, 3, 1, 20, 4, kSilu}, {C, 384, 256, 1, 1, 20, 3, kSilu}, {C, 256, 128, 1, 1, 20, 1, kSilu},
    {C, 512, 256, 1, 1, 20, 1, kSilu}, {C, 384, 128, 1, 1, 40, 1, kSilu}, {C, 192, 128, 1, 1, 40, 3, kSilu},
    {C, 192, 64, 1, 1, 80, 1, kSilu},  {C, 96, 64, 1, 1, 80, 1, kSilu},   {C, 64, 64, 3, 2, 80, 1, kSilu},
    {C, 128, 128, 3, 2, 40, 1, kSilu}, {C, 64, 64, 3, 1, 80, 2, kSilu},   {C, 64, 80, 3, 1, 80, 1, kSilu},
    {C, 80, 80, 3, 1, 80, 1, kSilu},   {C, 128, 64, 3, 1, 40, 1, kSilu},  {C, 64, 64, 3, 1, 40, 1, kSilu},
    {C, 128, 80, 3, 1, 40, 1, kSilu},  {C, 80, 80, 3, 1, 40, 1, kSilu},   {C, 256, 64, 3, 1, 20, 1, kSilu},
    {C, 64, 64, 3, 1, 20, 1, kSilu},   {C, 256, 80, 3, 1, 20, 1, kSilu},  {C, 80, 80, 3, 1, 20, 1, kSilu},
};

template <size_t kCount>
void append(std::vector<Layer>& all, const char* network, const Row (&rows)[kCount]) {
  for (const Row& row : rows)
    all.push_back({network, row.kind, row.channels, row.out_channels, row.kernel, row.stride, row.in_size, row.count,
                   row.program});
}

}  // namespace

std::string Layer::text() const {
  const char* const names[] = {"conv", "stem", "depthwise"};
  return fmt::format("{} {} -> {} {}x{}/{} @{}", names[kind], channels, out_channels, kernel, kernel, stride, in_size);
}

std::vector<Layer> layers() {
  std::vector<Layer> all;
  append(all, "resnet50", kResNet50);
  append(all, "mobilenet_v2", kMobileNetV2);
  append(all, "efficientnet_b0", kEfficientNetB0);
  append(all, "yolov8n", kYoloV8n);
  return all;
}

}  // namespace lathe::bench
