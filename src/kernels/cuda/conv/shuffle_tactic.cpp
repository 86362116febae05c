// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/shuffle_tactic.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/gemm/epilogue_tactic.h"

namespace lathe::cuda::conv {
namespace {

// Of channels that consist of these extents, the one at `unit` going last.
std::vector<int64_t> order_of(const Dims& extents, size_t unit) {
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < extents.size(); ++i)
    if (i != unit) (i < unit ? outer : inner) *= extents[i];
  std::vector<int64_t> order;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t u = 0; u < extents[unit]; ++u) order.push_back((o * extents[unit] + u) * inner + i);
  return order;
}

// Whether it has an element for each channel, in their order, that all pixels share.
bool is_of_channels(const Operand& operand, const Operand& output, size_t first, size_t channel_dims) {
  Expr stride = 1;
  for (size_t d = operand.dims.size(); d-- > 0;) {
    const bool of_channels = d >= first && d < first + channel_dims;
    if (output.dims[d] != Expr(1) && operand.strides[d] != (of_channels ? stride : Expr(0))) return false;
    if (of_channels) stride *= output.dims[d];
  }
  return operand.constant && Expr(operand.constant->volume()) == stride;
}

// Makes `unit`, one of the channels' dimensions, their last one.
void put_last(Shuffle& shuffle, size_t first, size_t unit) {
  const auto last = static_cast<size_t>(shuffle.dimension);
  Operand& output = shuffle.problem.outputs[0];
  Dims extents;
  for (size_t d = first; d <= last; ++d) extents.push_back(output.dims[d].as_constant().value_or(0));
  shuffle.order = order_of(extents, unit - first);
  for (size_t i = 0; i < shuffle.problem.operands.size(); ++i) {
    Operand& operand = shuffle.problem.operands[i];
    shuffle.packed[i] = is_of_channels(operand, output, first, shuffle.channel_dims);
    operand.insert_dim(last, operand.take_out_dim(unit));
  }
  output.insert_dim(last, output.take_out_dim(unit));
  for (size_t i = 0; i < shuffle.problem.operands.size(); ++i) {
    if (!shuffle.packed[i]) continue;
    Operand& operand = shuffle.problem.operands[i];
    int64_t stride = 1;
    for (size_t d = last + 1; d-- > first; stride *= operand.opt_dims[d])
      operand.strides[d] = operand.opt_strides[d] = stride;
  }
}

// Neighbouring threads store neighbouring channels: scattered stores cost more than a pass over the result.
bool fills_vectors(const Operand& output, size_t first, size_t last) {
  constexpr int64_t kLeastRun = 16;  // bytes
  int64_t run = 1;
  for (size_t d = last + 1; d-- > first && output.strides[d] == Expr(run);) run *= output.opt_dims[d];
  return gemm::stores_vectors(output, static_cast<int>(last), last + 1 - first) &&
         run * static_cast<int64_t>(size_of(output.dtype)) >= kLeastRun;
}

Operand without_dims(Operand tensor) {
  tensor.dims.clear(), tensor.strides.clear();
  tensor.opt_dims.clear(), tensor.opt_strides.clear();
  tensor.reassociation.clear();
  return tensor;
}

// Gives the views one more dimension of the tensors, or makes their last one longer where all step over both at once.
void append_or_lengthen(std::vector<Operand>& views, const std::vector<Operand>& tensors, size_t dim) {
  bool lengthens = !views[0].dims.empty();
  for (size_t k = 0; k < views.size() && lengthens; ++k)
    lengthens = views[k].strides.back() == tensors[k].strides[dim] * tensors[0].dims[dim];
  for (size_t k = 0; k < views.size(); ++k) {
    OperandDim added = tensors[k].dim(dim);
    if (lengthens) {
      const OperandDim outer = views[k].take_out_dim(views[k].dims.size() - 1);
      added.extent *= outer.extent, added.opt_extent *= outer.opt_extent;
    }
    views[k].append_dim(added);
  }
}

}  // namespace

std::optional<std::string> describe_shuffle(const Problem& problem, Shuffle& out) {
  out.problem = problem;
  out.packed.assign(problem.operands.size(), false);
  Operand& output = out.problem.outputs[0];
  if (output.reassociation.empty()) return std::nullopt;
  if (problem.attrs<ConvolutionAttrs>().groups > 1) return "collapsed channels of groups";
  const size_t first = output.reassociation[0];
  out.channel_dims = output.reassociation[1];
  if (out.channel_dims == 0) return "a result without a dimension of channels";
  const size_t last = first + out.channel_dims - 1;
  out.dimension = static_cast<int>(last);
  const auto unit = static_cast<size_t>(std::max(unit_dim(output), 0));
  if (unit < first || unit > last) return "channels that are no neighbours in the result";
  for (Operand& operand : out.problem.operands) operand = broadcast(operand, output);
  if (unit != last) put_last(out, first, unit);
  if (!fills_vectors(output, first, last)) return "channels in runs that no vector fits";
  return std::nullopt;
}

void merge_pixels(Shuffle& shuffle) {
  std::vector<Operand> tensors = {shuffle.problem.outputs[0]};
  for (const Operand& operand : shuffle.problem.operands) {
    if (operand.padding) return;
    tensors.push_back(broadcast(operand, tensors[0]));
  }
  const auto last = static_cast<size_t>(shuffle.dimension), first = last + 1 - shuffle.channel_dims;
  const auto is_pixel = [&](size_t d) { return d < first || d > last; };
  std::vector<Operand> views;
  for (const Operand& tensor : tensors) views.push_back(without_dims(tensor));
  for (size_t d = 0; d < tensors[0].dims.size(); ++d)
    if (is_pixel(d) && tensors[0].dims[d] != Expr(1)) append_or_lengthen(views, tensors, d);
  if (views[0].dims.empty())
    for (Operand& view : views) view.append_dim({});
  for (size_t d = first; d <= last; ++d)
    for (size_t k = 0; k < views.size(); ++k) views[k].append_dim(tensors[k].dim(d));
  shuffle.dimension = views[0].rank() - 1;
  shuffle.problem.outputs[0] = std::move(views[0]);
  std::move(views.begin() + 1, views.end(), shuffle.problem.operands.begin());
}

Result<Tensor> in_order(const Tensor& weights, const std::vector<int64_t>& order) {
  if (order.empty()) return weights;
  LATHE_ASSIGN(Tensor result, Tensor::allocate(weights.dtype(), weights.dims()));
  const size_t row = weights.bytes() / order.size();
  const auto* from = static_cast<const std::byte*>(weights.data());
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (size_t i = 0; i < order.size(); ++i) std::memcpy(to + i * row, from + static_cast<size_t>(order[i]) * row, row);
  return result;
}

Result<> add_operands(const Shuffle& shuffle, Emission& emission) {
  for (size_t i = 0; i < shuffle.problem.operands.size(); ++i) {
    StepInput input{StepInput::operand, i};
    if (shuffle.packed[i]) {
      input = {StepInput::packed, emission.packed.size()};
      LATHE_ASSIGN(emission.packed.emplace_back(), in_order(*shuffle.problem.operands[i].constant, shuffle.order));
    }
    emission.inputs.push_back(input);
  }
  return {};
}

}  // namespace lathe::cuda::conv
