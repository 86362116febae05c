// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_sample.h"

#include <limits>

#include "api/deprecation.h"
#include "api/network/network_add.h"
#include "api/network/operand_checks.h"
#include "compose/grid_sample.h"
#include "compose/reverse_sequence.h"
#include "compose/rotary_embedding.h"

namespace lathe::api {
bool GridSampleLayer::setSampleMode(nv::SampleMode mode) noexcept {
  return guarded(entry(), "IGridSampleLayer::setSampleMode", [&]() -> Result<> {
    if (mode != nv::SampleMode::kFILL && mode != nv::SampleMode::kCLAMP && mode != nv::SampleMode::kREFLECT)
      return in_layer({ErrorCode::invalid_argument, "the sample mode is kFILL, kCLAMP or kREFLECT", {}});
    outside_ = mode, touch();
    return {};
  });
}

Result<std::vector<ir::Value*>> GridSampleLayer::lower(LayerLowering& lowering) {
  ir::Value *x = in(0), *grid = in(1);
  LATHE_TRY(check_floats(x));
  LATHE_TRY(check_floats(grid));
  if (x->rank() != 4 || grid->rank() != 4 || grid->shape()[3] != Expr(2))
    return fail(ErrorCode::shape_mismatch, "it samples images [n, c, h, w] at [n, h, w, 2], but has {} and {}",
                to_string(x->shape()), to_string(grid->shape()));
  GridSample how;
  how.mode = mode_ == nv::InterpolationMode::kNEAREST  ? GridSample::Mode::nearest
             : mode_ == nv::InterpolationMode::kLINEAR ? GridSample::Mode::linear
                                                       : GridSample::Mode::cubic;
  how.outside = outside_ == nv::SampleMode::kFILL    ? GridSample::Outside::zeros
                : outside_ == nv::SampleMode::kCLAMP ? GridSample::Outside::border
                                                     : GridSample::Outside::reflection;
  how.aligns_corners = aligns_corners_;
  return std::vector{grid_sample(lowering, x, grid, how)};
}

Result<std::vector<ir::Value*>> ReverseSequenceLayer::lower(LayerLowering& lowering) {
  ir::Value *x = in(0), *lengths = in(1);
  LATHE_TRY(check_integers(lengths, "lengths of sequences"));
  const int rank = x->rank();
  if (batch_axis_ < 0 || batch_axis_ >= rank || sequence_axis_ < 0 || sequence_axis_ >= rank ||
      batch_axis_ == sequence_axis_)
    return fail(ErrorCode::invalid_argument, "batch axis {} and sequence axis {} are not two of {} dimensions",
                batch_axis_, sequence_axis_, rank);
  const Expr& batch = x->shape()[static_cast<size_t>(batch_axis_)];
  if (lengths->rank() != 1 ||
      (lengths->shape()[0].is_constant() && batch.is_constant() && lengths->shape()[0] != batch))
    return fail(ErrorCode::shape_mismatch, "there is a length for each index along axis {} of {}, but '{}' is {}",
                batch_axis_, to_string(x->shape()), lengths->name(), to_string(lengths->shape()));
  return std::vector{reverse_sequence(lowering, x, lengths, batch_axis_, sequence_axis_)};
}

bool NMSLayer::setIndicesType(nv::DataType type) noexcept {
  return guarded(entry(), "INMSLayer::setIndicesType", [&]() -> Result<> {
    LATHE_TRY(to_index_type(type));
    indices_ = type, touch();
    return {};
  });
}

Result<> NMSLayer::check_inputs() const {
  const ir::Value &boxes = *in(0), &scores = *in(1);
  LATHE_TRY(check_floats(&boxes));
  LATHE_TRY(check_floats(&scores));
  LATHE_TRY(check_integers(in(2), "the most boxes of a class"));
  const int rank = boxes.rank();
  if (scores.rank() != 3 || rank < 3 || rank > 4 || boxes.shape().back() != Expr(4))
    return fail(
        ErrorCode::shape_mismatch,
        "boxes are [n, boxes, 4] or [n, boxes, classes, 4] and scores [n, boxes, classes], but they are {} and {}",
        to_string(boxes.shape()), to_string(scores.shape()));
  if (rank == 4 && boxes.shape()[2] != Expr(1) && boxes.shape()[2] != scores.shape()[2])
    return fail(ErrorCode::shape_mismatch, "boxes are of {} classes, scores of {}", boxes.shape()[2].to_string(),
                scores.shape()[2].to_string());
  for (size_t i = 2; i < 5; ++i)
    if (has(i) && in(i)->rank() != 0)
      return fail(ErrorCode::shape_mismatch, "input {} has no dimensions, but '{}' is {}", i, in(i)->name(),
                  to_string(in(i)->shape()));
  if (most_boxes_ < 1) return fail(ErrorCode::invalid_argument, "the limit of boxes is {}", most_boxes_);
  return {};
}

// Scores [n, classes, boxes], of which only the highest of each row count.
ir::Value* NMSLayer::limited(LayerLowering& lowering, ir::Value* scores) const {
  if (const std::optional<int64_t> count = scores->shape()[2].as_constant(); count && *count <= most_boxes_)
    return scores;
  ir::Value* most = lowering.binary(ElementwiseOp::min, lowering.shape_of(scores, 2, 3), lowering.ints({most_boxes_}));
  ir::Value* best = lowering.add_all(TopkAttrs(), {scores, most}, 2)[0];
  ir::Value* least = lowering.slice(best, 2, -1, INT64_MAX);
  ir::Value* none = lowering.scalar_like(-std::numeric_limits<double>::infinity(), scores);
  return lowering.select(lowering.binary(ElementwiseOp::greater_equal, scores, least), scores, none);
}

Result<std::vector<ir::Value*>> NMSLayer::lower(LayerLowering& lowering) {
  LATHE_TRY(check_inputs());
  LATHE_ASSIGN(const DType type, to_index_type(indices_));
  ir::Value *boxes = in(0), *scores = limited(lowering, lowering.transpose(in(1), {0, 2, 1}));
  const bool by_class = boxes->rank() == 4 && boxes->shape()[2] != Expr(1);
  if (by_class) {  // each class is an image of its own, with one class
    ir::Value* dims = lowering.shape_of(scores);
    ir::Value* rows = lowering.reshape(lowering.mul(lowering.gather(dims, lowering.integer_scalar(0), 0),
                                                    lowering.gather(dims, lowering.integer_scalar(1), 0)),
                                       Ints{1});
    ir::Value* count = lowering.shape_of(scores, 2, 3);
    boxes = lowering.transpose(boxes, {0, 2, 1, 3});
    boxes = lowering.reshape(boxes, lowering.concat({rows, count, lowering.ints({4})}, 0), true);
    scores = lowering.reshape(scores, lowering.concat({rows, lowering.ints({1}), count}, 0), true);
  } else if (boxes->rank() == 4) {
    boxes = lowering.squeeze(boxes, {2});
  }
  NonMaxSuppressionAttrs attributes;
  attributes.center_point_box = format_ == nv::BoundingBoxFormat::kCENTER_SIZES;
  const auto threshold = [&](size_t i) {
    ir::Value* given = has(i) ? lowering.cast(in(i), DType::f32) : lowering.scalar(0, DType::f32);
    return lowering.reshape(given, Ints{1});
  };
  ir::Value* most = lowering.reshape(lowering.cast(in(2), DType::i64), Ints{1});
  ir::Value* picked = lowering.add(attributes, {boxes, scores, most, threshold(3), threshold(4)});
  if (by_class) {
    ir::Value* classes = lowering.shape_of(in(1), 2, 3);
    ir::Value *row = lowering.slice(picked, 1, 0, 1), *box = lowering.slice(picked, 1, 2, 3);
    picked =
        lowering.concat({lowering.divide(row, classes), lowering.binary(ElementwiseOp::mod, row, classes), box}, 1);
  }
  ir::Value* count = lowering.squeeze(lowering.shape_of(picked, 0, 1), {0});
  return std::vector{lowering.cast(picked, type), lowering.cast(count, DType::i32)};
}

bool RotaryEmbeddingLayer::setRotaryEmbeddingDim(int32_t rotaryEmbeddingDim) noexcept {
  return guarded(entry(), "IRotaryEmbeddingLayer::setRotaryEmbeddingDim", [&]() -> Result<> {
    if (rotaryEmbeddingDim < 0 || rotaryEmbeddingDim % 2 != 0)
      return in_layer({ErrorCode::invalid_argument, "pairs of elements turn: give an even number, or 0 for all", {}});
    size_ = rotaryEmbeddingDim, touch();
    return {};
  });
}

Result<std::vector<ir::Value*>> RotaryEmbeddingLayer::lower(LayerLowering& lowering) {
  ir::Value *x = in(0), *cosines = in(1), *sines = in(2);
  LATHE_TRY(check_floats(x));
  const std::optional<int64_t> head = x->rank() == 4 ? x->shape()[3].as_constant() : std::nullopt;
  if (!head)
    return fail(ErrorCode::shape_mismatch,
                "the input is [batch, heads, sequence, head size], the last known, but is {}", to_string(x->shape()));
  const int64_t size = size_ == 0 ? *head : size_;
  if (size > *head || size % 2 != 0)
    return fail(ErrorCode::invalid_argument, "{} of the {} elements of a head cannot turn in pairs", size, *head);
  const int rank = has(3) ? 2 : 3;  // of the caches
  for (const ir::Value* cache : {cosines, sines})
    if (cache->dtype() != x->dtype() || cache->rank() != rank || cache->shape().back() != Expr(size / 2))
      return fail(
          ErrorCode::shape_mismatch,
          "caches are {} of [positions, {}] with positions as input 3, else [batch, sequence, {}], but '{}' is {}{}",
          name_of(x->dtype()), size / 2, size / 2, cache->name(), name_of(cache->dtype()), to_string(cache->shape()));
  if (has(3)) {
    LATHE_TRY(check_integers(in(3), "positions"));
    if (in(3)->rank() != 2)
      return fail(ErrorCode::shape_mismatch, "positions are [batch, sequence], but '{}' is {}", in(3)->name(),
                  to_string(in(3)->shape()));
    cosines = lowering.gather(cosines, in(3), 0), sines = lowering.gather(sines, in(3), 0);
  }
  return std::vector{rotary_embedding(lowering, x, cosines, sines, {interleaved_, size})};
}

// Rows beyond their bound do not count: their results are 0.
Result<std::vector<ir::Value*>> RaggedSoftMaxLayer::lower(LayerLowering& lowering) {
  ir::Value *x = in(0), *bounds = in(1);
  LATHE_TRY(check_floats(x));
  LATHE_TRY(check_integers(bounds, "bounds"));
  if (x->rank() < 2 || bounds->rank() != x->rank() || bounds->shape().back() != Expr(1))
    return fail(ErrorCode::shape_mismatch,
                "bounds have the dimensions of the input but for the last, which is 1: {} and {}",
                to_string(x->shape()), to_string(bounds->shape()));
  ir::Value* extent = lowering.squeeze(lowering.shape_of(x, x->rank() - 1), {0});
  ir::Value* steps = lowering.add(RangeAttrs(), {lowering.integer_scalar(0), extent, lowering.integer_scalar(1)});
  ir::Value* counts = lowering.binary(ElementwiseOp::less, steps, lowering.cast(bounds, DType::i64));
  ir::Value* none = lowering.scalar_like(-std::numeric_limits<double>::infinity(), x);
  ir::Value* y = lowering.softmax(lowering.select(counts, x, none), -1);
  return std::vector{lowering.select(counts, y, lowering.scalar_like(0, x))};
}

nv::IGridSampleLayer* NetworkDefinition::addGridSample(nv::ITensor& input, nv::ITensor& grid) noexcept {
  return add<GridSampleLayer>("INetworkDefinition::addGridSample", {&input, &grid});
}

nv::IReverseSequenceLayer* NetworkDefinition::addReverseSequence(nv::ITensor& input,
                                                                 nv::ITensor& sequenceLens) noexcept {
  return add<ReverseSequenceLayer>("INetworkDefinition::addReverseSequence", {&input, &sequenceLens});
}

nv::INMSLayer* NetworkDefinition::addNMS(nv::ITensor& boxes, nv::ITensor& scores,
                                         nv::ITensor& maxOutputBoxesPerClass) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addNMS", "addNMS() with a type of indices");
  deprecation.tell(reporter());
  return addNMSV2(boxes, scores, maxOutputBoxesPerClass, nv::DataType::kINT32);
}

nv::INMSLayer* NetworkDefinition::addNMSV2(nv::ITensor& boxes, nv::ITensor& scores, nv::ITensor& maxOutputBoxesPerClass,
                                           nv::DataType indicesType) noexcept {
  return add<NMSLayer>("INetworkDefinition::addNMS", {&boxes, &scores, &maxOutputBoxesPerClass}, indicesType);
}

nv::IRotaryEmbeddingLayer* NetworkDefinition::addRotaryEmbedding(nv::ITensor& input, nv::ITensor& cosCache,
                                                                 nv::ITensor& sinCache, bool interleaved,
                                                                 int32_t rotaryEmbeddingDim) noexcept {
  return add<RotaryEmbeddingLayer>("INetworkDefinition::addRotaryEmbedding", {&input, &cosCache, &sinCache},
                                   interleaved, rotaryEmbeddingDim);
}

nv::IRaggedSoftMaxLayer* NetworkDefinition::addRaggedSoftMax(nv::ITensor& input, nv::ITensor& bounds) noexcept {
  return add<RaggedSoftMaxLayer>("INetworkDefinition::addRaggedSoftMax", {&input, &bounds});
}

}  // namespace lathe::api
