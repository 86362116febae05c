// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/rules.h"

namespace lathe {
namespace {

Result<> require_one_number(InferContext& context, size_t input, std::string_view what) {
  if (!context.has(input) || context.assume_equal(volume(context.shape(input)), 1)) return {};
  return fail(ErrorCode::shape_mismatch, "non_max_suppression: {} must be one number, but has shape {}", what,
              to_string(context.shape(input)));
}

Result<> require_at_most_f32(const InferContext& context, size_t input, std::string_view what) {
  if (!context.has(input)) return {};
  LATHE_TRY(require_floating(context, input));
  if (context.dtype(input) != DType::f64) return {};
  return fail(ErrorCode::type_mismatch, "non_max_suppression: {} are f64, but overlaps are compared in f32; cast them",
              what);
}

struct Box {
  float low[2], high[2];
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Box box_at(const std::vector<double>& boxes, int64_t index, bool center) {
  float v[4];
  for (int64_t i = 0; i < 4; ++i) v[i] = static_cast<float>(boxes[static_cast<size_t>(index * 4 + i)]);
  Box box;
  for (int d = 0; d < 2; ++d) {
    const float half = v[d + 2] / 2;
    box.low[d] = center ? v[d] - half : std::min(v[d], v[d + 2]);
    box.high[d] = center ? v[d] + half : std::max(v[d], v[d + 2]);
  }
  return box;
}

// Whether the two share more of their union than the threshold. In f32, each operation rounded, as PyTorch and ONNX
// Runtime do: an overlap of 0.7 is not above the threshold 0.7f.
bool overlap(const Box& a, const Box& b, float threshold) {
  float extent[2];
  for (int d = 0; d < 2; ++d) {
    extent[d] = std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]);
    if (!(extent[d] > 0)) return false;
  }
  const float shared = extent[0] * extent[1];
  const float all = a.area() + b.area() - shared;
  return shared > 0 && all > 0 && shared / all > threshold;
}

// The candidates of one class, best first; of equals the one with the lower index. NaN is no score, and no score is
// above it.
Ints ranked(const double* scores, int64_t count, std::optional<double> threshold) {
  Ints candidates;
  for (int64_t i = 0; i < count; ++i)
    if (threshold ? scores[i] > *threshold : !std::isnan(scores[i])) candidates.push_back(i);
  std::stable_sort(candidates.begin(), candidates.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  return candidates;
}

}  // namespace

Result<> infer_non_max_suppression(InferContext& context) {
  for (size_t i = 0; i < 2; ++i) {
    LATHE_TRY(require_at_most_f32(context, i, i == 0 ? "boxes" : "scores"));
    LATHE_TRY(require_rank(context, i, 3, 3));
  }
  const Shape &boxes = context.shape(0), &scores = context.shape(1);
  if (!context.assume_equal(boxes[2], 4))
    return fail(ErrorCode::shape_mismatch,
                "non_max_suppression: boxes have shape {}, but [batches, boxes, 4] is needed: a box is 4 numbers",
                to_string(boxes));
  if (!context.assume_equal(boxes[0], scores[0]) || !context.assume_equal(boxes[1], scores[2]))
    return fail(
        ErrorCode::shape_mismatch,
        "non_max_suppression: boxes have shape {} and scores {}, but [batches, boxes, 4] and [batches, classes, "
        "boxes] with the same batches and boxes are needed",
        to_string(boxes), to_string(scores));
  if (context.has(2)) LATHE_TRY(require_integer(context, 2));
  LATHE_TRY(require_one_number(context, 2, "the largest number of boxes per class"));
  for (size_t i = 3; i < 5; ++i) {
    const std::string_view what = i == 3 ? "the IoU threshold" : "the score threshold";
    LATHE_TRY(require_at_most_f32(context, i, what));
    LATHE_TRY(require_one_number(context, i, what));
  }
  const Tensor* iou = context.constant(3);
  if (iou && iou->volume() == 1 && !(iou->at_double(0) >= 0 && iou->at_double(0) <= 1))
    return fail(ErrorCode::shape_mismatch, "non_max_suppression: the IoU threshold is {}, expected 0 to 1",
                iou->at_double(0));
  const Expr count = context.new_symbol("selected_boxes");
  const std::optional<Ints> most = context.constant_elements(2);  // per class
  context.assume(Relation::at_most, count, scores[0] * scores[1] * (most ? min(scores[2], (*most)[0]) : scores[2]));
  context.set(0, DType::i64, {count, 3});
  return {};
}

Result<> eval_non_max_suppression(EvalContext& context) {
  const bool center = context.attrs<NonMaxSuppressionAttrs>().center_point_box;
  const std::vector<double> boxes = to_doubles(context.input(0)), scores = to_doubles(context.input(1));
  const Dims& dims = context.input(1).dims();
  const int64_t batches = dims[0], classes = dims[1], count = dims[2];
  const int64_t most = context.has(2) ? context.input(2).at(0) : 0;
  const float iou = context.has(3) ? static_cast<float>(context.input(3).at_double(0)) : 0;
  const auto threshold = context.has(4) ? std::optional(context.input(4).at_double(0)) : std::nullopt;
  Ints selected;
  for (int64_t n = 0; n < batches; ++n)
    for (int64_t c = 0; c < classes; ++c) {
      std::vector<Box> kept;
      for (const int64_t i : ranked(scores.data() + (n * classes + c) * count, count, threshold)) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const Box box = box_at(boxes, n * count + i, center);
        if (std::any_of(kept.begin(), kept.end(), [&](const Box& other) { return overlap(other, box, iou); })) continue;
        kept.push_back(box);
        selected.insert(selected.end(), {n, c, i});
      }
    }
  LATHE_TRY(context.allocate(0, {static_cast<int64_t>(selected.size()) / 3, 3}));
  from_ints(selected, context.output(0));
  return {};
}

}  // namespace lathe
