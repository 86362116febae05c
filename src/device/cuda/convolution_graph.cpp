// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/convolution_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lathe::cuda::convolution {
namespace {

Result<cudnnDataType_t> data_type(int64_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return fail(ErrorCode::launch_refused, "cudnn.convolution does not know the element type {}", dtype);
  }
}

struct TensorInfo {
  int64_t name = 0;
  int64_t dtype = 0;
  int64_t alignment = 16;
  std::array<int64_t, 5> dims{}, strides{};  // N C D H W
  bool is_virtual = false;
};

class GraphMaker {
 public:
  GraphMaker(const CudnnHandle& handle, const Values& values) : handle_(handle), v_(values) {}

  Result<std::unique_ptr<Assembly>> make() {
    LATHE_TRY(add_convolution());
    for (size_t stage = 0; stage < num_stages(); ++stage) LATHE_TRY(add_stage(stage));
    LATHE_ASSIGN(CudnnDescriptor graph, create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    LATHE_TRY(graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle_.get()));
    LATHE_TRY(graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        std::span<const cudnnBackendDescriptor_t>(operations_)));
    LATHE_TRY(keep(std::move(graph)));
    return declined_ ? nullptr : std::make_unique<Assembly>(Assembly{std::move(parts_)});
  }

 private:
  size_t num_stages() const { return static_cast<size_t>(v_[kNumStages]); }
  int64_t stage_field(size_t stage, StageField field) const { return v_[kStages + stage * kStageFields + field]; }
  Result<CudnnDescriptor> create(cudnnBackendDescriptorType_t type) { return CudnnDescriptor::create(handle_, type); }

  // Finalizes a part of the graph. What the library declines makes the graph none.
  Result<cudnnBackendDescriptor_t> keep(CudnnDescriptor part) {
    LATHE_ASSIGN(const bool accepted, part.try_finalize());
    declined_ |= !accepted;
    parts_.push_back(std::move(part));
    return parts_.back().get();
  }
  static Result<> set(CudnnDescriptor& descriptor, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
    return descriptor.set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value);
  }

  // The dimensions that the library is told: N, C and the last spatial ones.
  std::vector<int64_t> told(const std::array<int64_t, 5>& values) const {
    std::vector<int64_t> result = {values[0], values[1]};
    result.insert(result.end(), values.end() - v_[kSpatial], values.end());
    return result;
  }
  std::vector<int64_t> told_spatial(ConvolutionArg first) const {
    return {v_.begin() + static_cast<ptrdiff_t>(first) + 3 - v_[kSpatial],
            v_.begin() + static_cast<ptrdiff_t>(first) + 3};
  }

  Result<cudnnBackendDescriptor_t> add_tensor(const TensorInfo& info) {
    LATHE_ASSIGN(CudnnDescriptor tensor, create(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    LATHE_ASSIGN(const cudnnDataType_t type, data_type(info.dtype));
    const std::vector<int64_t> dims = told(info.dims), strides = told(info.strides);
    LATHE_TRY(tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type));
    LATHE_TRY(tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::span<const int64_t>(dims)));
    LATHE_TRY(tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::span<const int64_t>(strides)));
    LATHE_TRY(tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, info.name));
    LATHE_TRY(tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, info.alignment));
    LATHE_TRY(tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, info.is_virtual));
    return keep(std::move(tensor));
  }

  std::array<int64_t, 5> five(ConvolutionArg first) const {
    std::array<int64_t, 5> values{};
    std::copy_n(v_.begin() + static_cast<ptrdiff_t>(first), 5, values.begin());
    return values;
  }

  // What comes after the convolution and `done` stages: y, or a value that is in no memory, in f32.
  Result<cudnnBackendDescriptor_t> add_result(size_t done) {
    TensorInfo info{kYName, v_[kOutputDtype], v_[kYAlignment], {}, five(kYStrides), false};
    info.dims = {v_[kXDims], v_[kFilters], v_[kYExtents], v_[kYExtents + 1], v_[kYExtents + 2]};
    if (done < num_stages()) {
      info.name = kFirstVirtualName + static_cast<int64_t>(done);
      info.dtype = static_cast<int64_t>(DType::f32);
      info.alignment = 16;
      info.is_virtual = true;
    }
    return add_tensor(info);
  }

  Result<cudnnBackendDescriptor_t> add_weights() {
    const int64_t c = v_[kChannels], d = v_[kTaps], h = v_[kTaps + 1], w = v_[kTaps + 2];
    return add_tensor(
        {kWeightsName, v_[kDtype], 16, {v_[kFilters], c, d, h, w}, {d * h * w * c, 1, h * w * c, w * c, c}});
  }

  Result<cudnnBackendDescriptor_t> describe_window() {
    LATHE_ASSIGN(CudnnDescriptor window, create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
    LATHE_TRY(window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
    LATHE_TRY(window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION));
    LATHE_TRY(window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, v_[kSpatial]));
    constexpr std::pair<cudnnBackendAttributeName_t, ConvolutionArg> kLists[] = {
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, kDilations},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, kStrides},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, kPadBegin},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, kPadEnd}};
    for (const auto& [name, first] : kLists) {
      const std::vector<int64_t> values = told_spatial(first);
      LATHE_TRY(window.set(name, CUDNN_TYPE_INT64, std::span<const int64_t>(values)));
    }
    return keep(std::move(window));
  }

  Result<> add_convolution() {
    LATHE_ASSIGN(const cudnnBackendDescriptor_t x,
                 add_tensor({kXName, v_[kDtype], v_[kXAlignment], five(kXDims), five(kXStrides)}));
    LATHE_ASSIGN(const cudnnBackendDescriptor_t w, add_weights());
    LATHE_ASSIGN(value_, add_result(0));
    LATHE_ASSIGN(const cudnnBackendDescriptor_t window, describe_window());
    LATHE_ASSIGN(CudnnDescriptor operation, create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR));
    LATHE_TRY(set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, window));
    LATHE_TRY(set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x));
    LATHE_TRY(set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w));
    LATHE_TRY(set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, value_));
    LATHE_TRY(operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f));
    LATHE_TRY(operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f));
    return add_operation(std::move(operation));
  }

  Result<> add_operation(CudnnDescriptor operation) {
    LATHE_ASSIGN(const cudnnBackendDescriptor_t added, keep(std::move(operation)));
    operations_.push_back(added);
    return {};
  }

  Result<cudnnBackendDescriptor_t> describe_stage(size_t stage) {
    LATHE_ASSIGN(CudnnDescriptor pointwise, create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
    const auto mode = static_cast<cudnnPointwiseMode_t>(stage_field(stage, kMode));
    LATHE_TRY(pointwise.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode));
    LATHE_TRY(pointwise.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
    const auto number = [&](StageField field) -> double {
      return std::bit_cast<float>(static_cast<uint32_t>(stage_field(stage, field)));
    };
    if (mode == CUDNN_POINTWISE_ELU_FWD)
      LATHE_TRY(pointwise.set(CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE, number(kFirstFloat)));
    if (mode == CUDNN_POINTWISE_RELU_FWD) {  // slope below zero, and the upper limit
      const double slope = number(kFirstFloat), limit = number(kSecondFloat);
      if (slope != 0) LATHE_TRY(pointwise.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, slope));
      if (std::isfinite(limit))
        LATHE_TRY(pointwise.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, limit));
    }
    return keep(std::move(pointwise));
  }

  Result<> add_stage(size_t stage) {
    LATHE_ASSIGN(const cudnnBackendDescriptor_t pointwise, describe_stage(stage));
    LATHE_ASSIGN(CudnnDescriptor operation, create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
    LATHE_TRY(set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise));
    LATHE_TRY(set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, value_));
    if (stage_field(stage, kHasOperand)) {
      const int64_t k = v_[kFilters];
      LATHE_ASSIGN(const cudnnBackendDescriptor_t operand, add_tensor({kFirstOperandName + static_cast<int64_t>(stage),
                                                                       stage_field(stage, kOperandDtype),
                                                                       16,
                                                                       {1, k, 1, 1, 1},
                                                                       {k, 1, k, k, k}}));
      LATHE_TRY(set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, operand));
    }
    LATHE_ASSIGN(value_, add_result(stage + 1));
    LATHE_TRY(set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, value_));
    return add_operation(std::move(operation));
  }

  const CudnnHandle& handle_;
  const Values& v_;
  bool declined_ = false;
  std::vector<CudnnDescriptor> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  cudnnBackendDescriptor_t value_ = nullptr;  // what the next stage takes
};

// Whether the engine's numbers are those that were asked for: f32 is not rounded unless TF32 is allowed, sums are f32,
// and each run gives the same bits.
Result<bool> is_precise(const CudnnDescriptor& engine, const Values& v) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  LATHE_ASSIGN(const int64_t count, engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                std::span<cudnnBackendNumericalNote_t>(notes)));
  const bool full = static_cast<DType>(v[kDtype]) == DType::f32 && v[kTf32] == 0;
  for (int64_t i = 0; i < std::min<int64_t>(count, notes.size()); ++i) {
    const cudnnBackendNumericalNote_t note = notes[static_cast<size_t>(i)];
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
      return false;
    if (full && (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
      return false;
  }
  return true;
}

Result<CudnnDescriptor> engine_of(const CudnnDescriptor& config) {
  LATHE_ASSIGN(std::vector<CudnnDescriptor> engines,
               config.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1));
  LATHE_CHECK(!engines.empty());
  return std::move(engines[0]);
}

}  // namespace

bool is_empty(const Values& v) {
  return v[kXDims] == 0 || v[kFilters] == 0 || v[kYExtents] == 0 || v[kYExtents + 1] == 0 || v[kYExtents + 2] == 0;
}

Result<> check(const Values& v) {
  const auto in = [](int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; };
  if (in(v[kSpatial], 2, 3) && in(v[kNumStages], 0, kMaxStages) && in(v[kNumKnobs], 0, kMaxKnobs)) return {};
  return fail(ErrorCode::launch_refused,
              "cudnn.convolution: {} spatial dimensions, {} stages and {} knobs; 2 to 3, up to {} and up to {} are "
              "possible",
              v[kSpatial], v[kNumStages], v[kNumKnobs], kMaxStages, kMaxKnobs);
}

Result<std::unique_ptr<Assembly>> make_graph(const CudnnHandle& handle, const Values& values) {
  return GraphMaker(handle, values).make();
}

Result<std::vector<Assembly>> ask(const CudnnHandle& handle, const CudnnDescriptor& graph, const Values& values,
                                  size_t count) {
  constexpr size_t kAsked = 16;  // some of which are not precise
  std::vector<Assembly> configs;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    LATHE_ASSIGN(CudnnDescriptor heuristic, CudnnDescriptor::create(handle, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
    LATHE_TRY(heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
    LATHE_TRY(heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode));
    LATHE_ASSIGN(const bool accepted, heuristic.try_finalize());
    if (!accepted) continue;
    LATHE_ASSIGN(std::vector<CudnnDescriptor> found,
                 heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kAsked));
    for (CudnnDescriptor& config : found) {
      LATHE_ASSIGN(const CudnnDescriptor engine, engine_of(config));
      LATHE_ASSIGN(const bool precise, is_precise(engine, values));
      if (!precise || configs.size() == count) continue;
      configs.emplace_back().descriptors.push_back(std::move(config));
    }
    if (configs.size() == count) break;
  }
  return configs;
}

Result<std::unique_ptr<Assembly>> stored(const CudnnHandle& handle, const CudnnDescriptor& graph, const Values& v) {
  auto assembly = std::make_unique<Assembly>();
  // False where the library declines the part.
  const auto keep = [&](CudnnDescriptor part) -> Result<bool> {
    LATHE_ASSIGN(const bool accepted, part.try_finalize());
    assembly->descriptors.push_back(std::move(part));
    return accepted;
  };
  LATHE_ASSIGN(CudnnDescriptor engine, CudnnDescriptor::create(handle, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  const cudnnBackendDescriptor_t raw_engine = engine.get();
  LATHE_TRY(engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
  LATHE_TRY(engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, v[kEngine]));
  LATHE_ASSIGN(bool accepted, keep(std::move(engine)));
  std::vector<cudnnBackendDescriptor_t> choices;
  for (size_t i = 0; accepted && i < static_cast<size_t>(v[kNumKnobs]); ++i) {
    LATHE_ASSIGN(CudnnDescriptor choice, CudnnDescriptor::create(handle, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    choices.push_back(choice.get());
    const auto type = static_cast<int32_t>(v[kKnobs + i] >> 32);
    const int64_t value = v[kKnobs + i] & 0xffffffff;
    LATHE_TRY(choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, type));
    LATHE_TRY(choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, value));
    LATHE_ASSIGN(accepted, keep(std::move(choice)));
  }
  if (!accepted) return nullptr;
  LATHE_ASSIGN(CudnnDescriptor config, CudnnDescriptor::create(handle, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  LATHE_TRY(config.set(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw_engine));
  if (!choices.empty())
    LATHE_TRY(config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         std::span<const cudnnBackendDescriptor_t>(choices)));
  LATHE_ASSIGN(accepted, keep(std::move(config)));
  return accepted ? std::move(assembly) : nullptr;
}

Result<CudnnEngine> describe(const CudnnHandle& handle, const CudnnDescriptor& config) {
  CudnnEngine found;
  LATHE_ASSIGN(const CudnnDescriptor engine, engine_of(config));
  LATHE_TRY(engine.read(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::span(&found.index, 1)));
  found.text = fmt::format("engine={}", found.index);
  LATHE_ASSIGN(const std::vector<CudnnDescriptor> choices,
               config.read(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kMaxKnobs));
  for (const CudnnDescriptor& choice : choices) {
    int32_t type = 0;
    int64_t value = 0;
    LATHE_TRY(choice.read(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, std::span(&type, 1)));
    LATHE_TRY(choice.read(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, std::span(&value, 1)));
    found.knobs.push_back((int64_t{type} << 32) | (value & 0xffffffff));
    found.text += fmt::format(" k{}={}", type, value);
  }
  return found;
}

}  // namespace lathe::cuda::convolution
