// SPDX-License-Identifier: Apache-2.0
#include "tuning/problem.h"

#include <algorithm>
#include <numeric>

namespace lathe {
namespace {

template <class T>
std::vector<T> strides_in(const std::vector<T>& dims, Layout layout) {
  std::vector<size_t> order(dims.size());  // in memory, the innermost dimension last
  std::iota(order.begin(), order.end(), size_t{0});
  if (layout == Layout::channels_last && dims.size() > 2)  // N, spatial..., C
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  std::vector<T> strides(dims.size());
  T stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride = stride * dims[order[i]];
  }
  return strides;
}

template <class T>
std::vector<T> collapsed(const std::vector<T>& dims, const std::vector<size_t>& reassociation) {
  if (reassociation.empty()) return dims;
  std::vector<T> whole;
  size_t next = 0;
  for (const size_t count : reassociation) {
    T extent = 1;
    for (size_t i = 0; i < count; ++i) extent = extent * dims[next++];
    whole.push_back(extent);
  }
  return whole;
}

// Sizes that only running tells decide what matches: two layers of the same sizes while tuning, one of which has them
// for good, are different problems.
std::string open_text(const Shape& shape) {
  std::string text;
  for (const Expr& each : shape)
    if (!each.is_constant()) text += (text.empty() ? "" : ",") + each.to_string();
  return text.empty() ? text : "{" + text + "}";
}

std::string operand_text(const Operand& operand) {
  if (operand.omitted) return "_";
  std::string text(name_of(operand.dtype));
  text += to_string(to_shape(operand.opt_dims)) + open_text(operand.dims);
  if (operand.opt_strides != strides_in(operand.opt_dims, Layout::linear))
    text += "@" + to_string(to_shape(operand.opt_strides)) + open_text(operand.strides);
  constexpr int64_t kWidest = 16;  // elements of the widest access: what an offset matters to
  if (mod(operand.offset, kWidest) != Expr(0)) text += "+" + mod(operand.offset, kWidest).to_string();
  if (operand.weights) text += operand.constant ? "!" : "?";
  for (const size_t count : operand.reassociation) text += fmt::format("/{}", count);
  for (size_t d = 0; d < operand.blocks.size(); ++d)
    text += fmt::format("{}{}", d == 0 ? " by " : "x", operand.blocks[d]);
  if (operand.pages)
    text += fmt::format(" in {} blocks of {} by {}", operand.pages->blocks.opt_extent, operand.pages->opt_size,
                        operand.pages->blocks.opt_stride) +
            open_text({operand.pages->blocks.extent, operand.pages->size, operand.pages->blocks.stride}) + " of " +
            operand_text(operand.operands[0]);
  if (operand.padding) text += fmt::format(" in {} from {}", operand.padding->value, to_string(operand.padding->begin));
  return text;
}

// Products copy the tiles of one tensor to shared memory; the other operands of a program before it they repeat.
// Attentions take theirs through registers, where a program may read several.
std::optional<std::string> unsupported_prologue(const Problem& problem, const Operand& input, bool supports_any) {
  constexpr size_t kMostOperands = 7;  // beside the input
  if (!supports_any) return "a program before it";
  if (input.operands.size() > kMostOperands)
    return fmt::format("a program of {} tensors before it, {} are handled", input.operands.size() + 1,
                       kMostOperands + 1);
  const auto is_whole = [&](const Operand& operand) {  // what is repeated has a stride of 0, or fewer elements
    return operand.dims == input.dims && std::ranges::count(operand.strides, Expr(0)) == 0;
  };
  const bool is_product =
      (op_info(problem.attributes->kind()).traits & kContraction) != 0 && !problem.is(OpKind::attention);
  if (is_product && std::ranges::any_of(input.operands, is_whole))
    return "a program of several tensors before a product";
  return std::nullopt;
}

}  // namespace

void Operand::insert_dim(size_t at, const OperandDim& dim) {
  const auto place = static_cast<ptrdiff_t>(at);
  dims.insert(dims.begin() + place, dim.extent);
  strides.insert(strides.begin() + place, dim.stride);
  opt_dims.insert(opt_dims.begin() + place, dim.opt_extent);
  opt_strides.insert(opt_strides.begin() + place, dim.opt_stride);
}

OperandDim Operand::take_out_dim(size_t at) {
  const auto place = static_cast<ptrdiff_t>(at);
  OperandDim taken = dim(at);
  for (Shape* list : {&dims, &strides}) list->erase(list->begin() + place);
  for (Dims* list : {&opt_dims, &opt_strides}) list->erase(list->begin() + place);
  return taken;
}

Operand pool_of(const Operand& operand) {
  Operand pool = operand;
  const Operand::Pages& pages = *operand.pages;
  pool.dims[0] = pages.blocks.extent, pool.strides[0] = pages.blocks.stride, pool.dims[2] = pages.size;
  pool.opt_dims[0] = pages.blocks.opt_extent, pool.opt_strides[0] = pages.blocks.opt_stride;
  pool.opt_dims[2] = pages.opt_size;
  pool.pages.reset(), pool.operands.clear();
  return pool;
}

bool is_collapsed(const Operand& operand) {
  return std::ranges::any_of(operand.reassociation, [](size_t count) { return count != 1; });
}

Shape whole_dims(const Operand& operand) { return collapsed(operand.dims, operand.reassociation); }
Dims opt_whole_dims(const Operand& operand) { return collapsed(operand.opt_dims, operand.reassociation); }

std::vector<const Operand*> tensors_of(const Problem& problem) {
  std::vector<const Operand*> tensors;
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    for (const Operand& operand : *list) tensors.push_back(&operand);
  for (const Operand& input : problem.inputs)
    for (const Operand& operand : input.operands) tensors.push_back(&operand);
  for (const InlinedStep& step : problem.inlined) {
    const std::vector<const Operand*> own = tensors_of(step.problem);
    tensors.insert(tensors.end(), own.begin(), own.end());
  }
  return tensors;
}

std::optional<std::string> unsupported_feature(const Problem& problem, const Features& supported) {
  const auto has = [](uint32_t set, size_t input) { return input < 32 && (set >> input & 1) != 0; };
  const bool has_packed = problem.inputs.size() > 1 && problem.inputs[1].is_scaled_by_blocks();
  if (has_packed != supported.packed_weights)
    return has_packed ? "weights that are dequantised as they are read" : "weights that are not packed";
  for (const Operand* tensor : tensors_of(problem))
    if (is_storage_only(tensor->dtype) && !has_packed && !(supported.float8 && is_factor_float8(tensor->dtype)))
      return fmt::format("elements of {}, which no kernel computes with", name_of(tensor->dtype));
  if (!problem.inlined.empty() && !supported.inlined) return "steps before it that its kernel would do";
  if (problem.pairs && !supported.pairs) return "columns that are finished in pairs";
  if (problem.result_normalization()) return "a result whose rows are normalised";
  const bool has_further = problem.attributes && problem.program.outputs.size() > 1;
  if (has_further && !supported.further_program_results) return "further results of its program";
  if (problem.outputs.size() > 1 && !has_further && !supported.further_results) return "further results";
  if (problem.attributes && !problem.outputs[0].reassociation.empty() && !supported.reassociated_result)
    return "a result in another order";
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    if (problem.inputs[i].reassociation.empty() || has(supported.reassociated_inputs, i)) continue;
    if (!has(supported.permuted_inputs, i)) return "an input in another order";
    if (is_collapsed(problem.inputs[i])) return "an input in another order, with dimensions of several axes";
  }
  for (size_t i = 1; problem.attributes && i < problem.inputs.size() && !supported.mixed_factors && !has_packed; ++i)
    if (is_factor(op_info(problem.attributes->kind()), i) && problem.inputs[i].dtype != problem.inputs[0].dtype)
      return "factors of two types";
  for (const Operand& operand : problem.operands)
    if (operand.padding && !supported.fill) return "an operand with padding";
  for (size_t i = 0; i < problem.inputs.size(); ++i)
    if (problem.inputs[i].pages && !has(supported.pages, i)) return "an input in blocks that a table names";
  for (size_t i = 0; i < problem.inputs.size(); ++i)
    if (problem.inputs[i].normalization && !supported.normalized_rows)
      return "rows that are normalised as they are read";
  for (size_t i = 0; i < problem.inputs.size(); ++i)
    if (problem.inputs[i].is_computed() && !(has_packed && i == 1))
      if (auto reason = unsupported_prologue(problem, problem.inputs[i], has(supported.prologues, i))) return reason;
  return std::nullopt;
}

Shape dense_strides(const Shape& dims, Layout layout) { return strides_in(dims, layout); }
Dims dense_strides(const Dims& dims, Layout layout) { return strides_in(dims, layout); }

bool is_dense(const Shape& dims, const Shape& strides, Layout layout) {
  const Shape expected = dense_strides(dims, layout);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != Expr(1) && strides[i] != expected[i]) return false;
  return true;
}

std::string to_text(const Problem& problem) {
  std::string text = problem.attributes
                         ? std::string(op_info(problem.attributes->kind()).name) + to_text(*problem.attributes)
                         : "pointwise";
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs}) {
    text += list == &problem.outputs ? " -> " : " (";
    for (const Operand& operand : *list) text += operand_text(operand) + ",";
    if (list != &problem.outputs) text += ')';
  }
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const Attributes* normalization = problem.inputs[i].normalization;
    if (!problem.inputs[i].is_computed() && !normalization) continue;
    text += fmt::format(" after {}={{{}}} (", i,
                        normalization ? std::string(op_info(normalization->kind()).name) + to_text(*normalization)
                                      : to_text(problem.inputs[i].program));
    for (const Operand& operand : problem.inputs[i].operands) text += operand_text(operand) + ",";
    text += ')';
  }
  if (const Attributes* normalization = problem.result_normalization())
    text += fmt::format(" before {}{}", op_info(normalization->kind()).name, to_text(*normalization));
  text += " {" + to_text(problem.program) + "} threads=" + std::to_string(problem.target.least_cores);
  if (problem.pairs) text += " pairs";
  if (problem.in_place) text += " in place";
  if (problem.sparse) text += " sparse";
  for (const InlinedStep& step : problem.inlined)
    text += fmt::format(" doing {}=[{}]", step.input, to_text(step.problem));
  return problem.tf32 ? text + " tf32" : text;
}

}  // namespace lathe
