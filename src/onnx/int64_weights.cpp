// SPDX-License-Identifier: Apache-2.0
#include "onnx/int64_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "ir/builder.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
constexpr size_t kMostNames = 20;  // in a warning

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
  return names.size() <= kMostNames ? text : text + fmt::format(" and {} more", names.size() - kMostNames);
}

}  // namespace

Result<Tensor> Int64Weights::take(Result<Tensor> weight, std::string_view name) {
  if (!narrows_ || !weight || weight->dtype() != DType::i64) return weight;
  weights_.push_back(fmt::format("'{}'", name));
  const std::span values(weight->as<int64_t>(), static_cast<size_t>(weight->volume()));
  const auto beyond = std::ranges::count_if(values, [](int64_t value) { return value < kLeast || value > kMost; });
  if (beyond == 0) return weight;
  clamped_.push_back(fmt::format("'{}' ({})", name, beyond));
  num_clamped_ += static_cast<size_t>(beyond);
  LATHE_ASSIGN(Tensor clamped, Tensor::allocate(DType::i64, weight->dims()));
  std::ranges::transform(values, clamped.mutable_as<int64_t>(),
                         [](int64_t value) { return std::clamp(value, kLeast, kMost); });
  return clamped;
}

Result<ir::Value*> Int64Weights::add_input(ir::Graph& graph, const std::string& name, DType dtype, Shape shape) {
  if (!narrows_ || dtype != DType::i64) return graph.add_input(name, dtype, std::move(shape));
  ports_.push_back(fmt::format("'{}'", name));
  LATHE_ASSIGN(ir::Value* const given, graph.add_input(name, DType::i32, std::move(shape)));
  ir::GraphBuilder builder(graph, {name + ".int64", {name}, {}});
  ir::Value* const seen = builder.cast(given, DType::i64);
  if (builder.failed()) return fail(*builder.error());
  return seen;
}

Result<> Int64Weights::add_output(ir::Graph& graph, const std::string& name, ir::Value* value) {
  if (narrows_ && value->dtype() == DType::i64) {
    ports_.push_back(fmt::format("'{}'", name));
    ir::GraphBuilder builder(graph, {name + ".int32", {name}, {}}, nullptr, ".limit");
    ir::Value* const above = builder.binary(ElementwiseOp::max, value, builder.integer_scalar(kLeast));
    ir::Value* const within = builder.binary(ElementwiseOp::min, above, builder.integer_scalar(kMost));
    value = builder.cast(within, DType::i32);
    if (builder.failed()) return fail(*builder.error());
  }
  graph.add_output(value, name);
  return {};
}

std::string Int64Weights::warning() const {
  if (weights_.empty() && ports_.empty()) return {};
  std::string text = "INT64 becomes INT32, as setInt64AsInt32() asks";
  if (!weights_.empty()) text += fmt::format("; {} weights: {}", weights_.size(), list(weights_));
  if (!ports_.empty()) text += fmt::format("; {} inputs and outputs: {}", ports_.size(), list(ports_));
  if (num_clamped_ > 0)
    text += fmt::format("; {} values are beyond the limits of INT32 and were clamped to them: {}", num_clamped_,
                        list(clamped_));
  return text + ". Export the model again with INT32 instead of INT64";
}

}  // namespace lathe::onnx
