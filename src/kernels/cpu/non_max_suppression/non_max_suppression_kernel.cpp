// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/non_max_suppression/non_max_suppression.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

struct Box {
  float low[2], high[2];
};

// Boxes that are kept, by coordinates. Overlaps are compared in f32, each operation rounded, as PyTorch does.
struct Kept {
  static constexpr int64_t kNumbers = 5;
  float *low[2], *high[2], *area;
  int64_t count = 0;

  Kept(float* memory, int64_t length)
      : low{memory, memory + length}, high{memory + 2 * length, memory + 3 * length}, area(memory + 4 * length) {}

  void add(const Box& box) {
    for (int d = 0; d < 2; ++d) low[d][count] = box.low[d], high[d][count] = box.high[d];
    area[count++] = area_of(box);
  }
  bool overlaps(const Box& box, float threshold) const {
    constexpr int64_t kBlock = 32;
    const float own = area_of(box);
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t end = std::min(count, begin + kBlock);
      int any = 0;
      for (int64_t i = begin; i < end; ++i) {
        const float width = std::min(high[0][i], box.high[0]) - std::max(low[0][i], box.low[0]);
        const float height = std::min(high[1][i], box.high[1]) - std::max(low[1][i], box.low[1]);
        const float shared = width * height, all = area[i] + own - shared;
        any |= static_cast<int>(width > 0) & static_cast<int>(height > 0) & static_cast<int>(shared > 0) &
               static_cast<int>(all > 0) & static_cast<int>(shared / all > threshold);
      }
      if (any) return true;
    }
    return false;
  }
  static float area_of(const Box& box) { return (box.high[0] - box.low[0]) * (box.high[1] - box.low[1]); }
};

// Lower keys are better: by score, then by index.
uint64_t key_of(float score, int64_t index) {
  auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 equals 0
  bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
  return uint64_t{~bits} << 32 | static_cast<uint32_t>(index);
}

float number_or(const TensorArg& tensor, float otherwise) { return tensor.data ? *tensor.as<float>() : otherwise; }

int64_t most_of(const TensorArg& tensor) {
  if (!tensor.data) return 0;
  return tensor.dtype == DType::i64 ? *tensor.as<int64_t>() : *tensor.as<int32_t>();
}

class FindKernel final : public Kernel {
 public:
  explicit FindKernel(bool center) : center_(center) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() != 5 || outputs.size() != 1)
      return fail(ErrorCode::invalid_argument, "non_max_suppression: {} inputs and {} outputs given, 5 and 1 expected",
                  inputs.size(), outputs.size());
    const TensorArg &boxes = inputs[0], &scores = inputs[1];
    if (boxes.dtype != DType::f32 || scores.dtype != DType::f32 || outputs[0].dtype != DType::i64)
      return fail(ErrorCode::dtype_unsupported,
                  "non_max_suppression: boxes are {} and scores {}; only f32 is supported", name_of(boxes.dtype),
                  name_of(scores.dtype));
    if (boxes.rank != 3 || scores.rank != 3 || boxes.dims[2] != 4 || boxes.dims[0] != scores.dims[0] ||
        boxes.dims[1] != scores.dims[2] || scores.dims[2] > UINT32_MAX)
      return fail(ErrorCode::shape_mismatch,
                  "non_max_suppression: {} x {} boxes of {} numbers and scores of {} images, {} classes and {} boxes",
                  boxes.dims[0], boxes.dims[1], boxes.dims[2], scores.dims[0], scores.dims[1], scores.dims[2]);
    const int64_t slots = scores.dims[0] * scores.dims[1], entries = outputs[0].dims[0] - slots - 1;
    if (outputs[0].rank != 1 || !is_dense(outputs[0]) || entries < 0 ||
        (slots == 0 ? entries != 0 : entries % slots != 0))
      return fail(ErrorCode::shape_mismatch, "non_max_suppression: {} places for what {} classes keep",
                  outputs[0].dims[0], slots);
    return {};
  }

  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return worker_bytes(inputs[1].dims[2], length_of(inputs[1], outputs[0])) * static_cast<size_t>(threads);
  }

  void run(const Launch& launch) const override {
    const TensorArg& scores = launch.inputs[1];
    const int64_t slots = scores.dims[0] * scores.dims[1], length = length_of(scores, launch.outputs[0]);
    auto* const list = launch.outputs[0].as<int64_t>();
    int64_t* const counts = list + slots * length;
    launch.pool.parallel_for(slots, 1, [&](int64_t begin, int64_t end, int worker) {
      std::byte* own = launch.workspace + worker_bytes(scores.dims[2], length) * static_cast<size_t>(worker);
      for (int64_t slot = begin; slot < end; ++slot)
        counts[slot] = suppress(launch, slot, length, own, list + slot * length);
    });
    int64_t sum = 0;
    for (int64_t slot = 0; slot < slots; ++slot) {
      const int64_t own = counts[slot];
      counts[slot] = sum;
      sum += own;
    }
    counts[slots] = sum;
  }

 private:
  static int64_t length_of(const TensorArg& scores, const TensorArg& found) {
    const int64_t slots = scores.dims[0] * scores.dims[1];
    return slots == 0 ? 0 : (found.dims[0] - slots - 1) / slots;
  }
  static size_t worker_bytes(int64_t boxes, int64_t length) {
    const size_t needed =
        static_cast<size_t>(boxes) * sizeof(uint64_t) + static_cast<size_t>(length * Kept::kNumbers) * sizeof(float);
    return round_up(needed, 64);
  }

  Box box_at(const TensorArg& boxes, int64_t image, int64_t index) const {
    const float* from = boxes.as<float>() + image * boxes.strides[0] + index * boxes.strides[1];
    Box box;
    for (int d = 0; d < 2; ++d) {
      const float first = from[d * boxes.strides[2]], second = from[(d + 2) * boxes.strides[2]], half = second / 2;
      box.low[d] = center_ ? first - half : std::min(first, second);
      box.high[d] = center_ ? first + half : std::max(first, second);
    }
    return box;
  }

  // The boxes that one class of one image keeps, and how many they are.
  int64_t suppress(const Launch& launch, int64_t slot, int64_t length, std::byte* memory, int64_t* list) const {
    const TensorArg &boxes = launch.inputs[0], &scores = launch.inputs[1];
    const int64_t image = slot / scores.dims[1], count = scores.dims[2];
    const float* from = scores.as<float>() + image * scores.strides[0] + slot % scores.dims[1] * scores.strides[1];
    const float threshold = number_or(launch.inputs[4], 0), iou = number_or(launch.inputs[3], 0);
    const int64_t most = std::min(most_of(launch.inputs[2]), length);
    auto* const keys = reinterpret_cast<uint64_t*>(memory);
    int64_t candidates = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float score = from[i * scores.strides[2]];
      if (launch.inputs[4].data ? score > threshold : !std::isnan(score)) keys[candidates++] = key_of(score, i);
    }
    std::sort(keys, keys + candidates);
    Kept kept(reinterpret_cast<float*>(keys + count), length);
    for (int64_t i = 0; i < candidates && kept.count < most; ++i) {
      const auto index = static_cast<int64_t>(keys[i] & UINT32_MAX);
      const Box box = box_at(boxes, image, index);
      if (kept.overlaps(box, iou)) continue;
      list[kept.count] = index;
      kept.add(box);
    }
    return kept.count;
  }

  const bool center_;
};

class WriteKernel final : public Kernel {
 public:
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() != 2 || outputs.size() != 1 || inputs[0].rank != 3 || inputs[1].rank != 1 ||
        inputs[1].dtype != DType::i64 || !is_dense(inputs[1]) || outputs[0].dtype != DType::i64 ||
        outputs[0].rank != 2 || outputs[0].dims[1] != 3)
      return fail(ErrorCode::invalid_argument, "non_max_suppression: these are not scores, a list and its boxes");
    const int64_t slots = inputs[0].dims[0] * inputs[0].dims[1], entries = inputs[1].dims[0] - slots - 1;
    if (entries < 0 || outputs[0].dims[0] > entries || (slots > 0 && entries % slots != 0))
      return fail(ErrorCode::shape_mismatch, "non_max_suppression: {} boxes of {} entries for {} classes",
                  outputs[0].dims[0], inputs[1].dims[0], slots);
    return {};
  }

  void run(const Launch& launch) const override {
    const int64_t classes = launch.inputs[0].dims[1], slots = launch.inputs[0].dims[0] * classes;
    const TensorArg& y = launch.outputs[0];
    const auto* list = launch.inputs[1].as<int64_t>();
    const int64_t entries = launch.inputs[1].dims[0] - slots - 1, length = slots > 0 ? entries / slots : 0;
    const int64_t* begins = list + entries;
    for (int64_t slot = 0; slot < slots; ++slot)
      for (int64_t row = begins[slot]; row < std::min(begins[slot + 1], y.dims[0]); ++row) {
        int64_t* to = y.as<int64_t>() + row * y.strides[0];
        to[0] = slot / classes;
        to[y.strides[1]] = slot % classes;
        to[2 * y.strides[1]] = list[slot * length + (row - begins[slot])];
      }
  }
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_non_max_suppression(const Record& record) {
  const auto params = decode_params<NonMaxSuppressionParams>(record.params);
  if (record.program || !params) return refuse_params("non_max_suppression");
  if (params->writes) return std::make_unique<WriteKernel>();
  return std::make_unique<FindKernel>(params->centered);
}

}  // namespace lathe::cpu
