// SPDX-License-Identifier: Apache-2.0
#include "tuning/cut_down.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "ops/attention_inputs.h"
#include "ops/rules.h"
#include "tuning/checked_columns.h"

namespace lathe {
namespace {

// Strides that keep the old ones' order and direction, broadcasts, and gaps around what is not cut.
void set_dims(Operand& operand, Dims dims) {
  const Dims old_dims = std::exchange(operand.opt_dims, std::move(dims));
  Dims& strides = operand.opt_strides;
  std::vector<size_t> order;
  for (size_t d = 0; d < strides.size(); ++d)
    if (strides[d] != 0) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(std::abs(strides[a]), old_dims[a]) < std::pair(std::abs(strides[b]), old_dims[b]);
  });
  bool cut = false;
  int64_t next = 1;
  for (const size_t d : order) {
    if (cut) strides[d] = strides[d] < 0 ? -next : next;
    next = std::abs(strides[d]) * operand.opt_dims[d];
    cut |= operand.opt_dims[d] != old_dims[d];
  }
  operand.dims = to_shape(operand.opt_dims);
  operand.strides = to_shape(strides);
}

constexpr int64_t kSmallBatch = 2;
constexpr int64_t kSmallExtent = 14;  // covers Winograd tiles, tails and every padding of common windows
constexpr int64_t kSmallRows = 67;    // more than one tile of most matrix kernels, and a tail
constexpr int64_t kTileRows = 17;     // more than one tile of some

int64_t small_batch(const Dims& dims) { return std::min(dims[0], dims.size() == 2 ? kSmallRows : kSmallBatch); }

void cut_images(Dims& dims, const Dims& windows) {
  dims[0] = small_batch(dims);
  for (size_t d = 2; d < dims.size(); ++d)
    dims[d] = std::min(dims[d], std::max(kSmallExtent, d < windows.size() ? 2 * windows[d] : 0));
}

// Of pointwise work: every extent that nobody reads or writes in vectors.
void cut_pointwise(Problem& problem) {
  Dims dims = problem.outputs[0].opt_dims;
  const auto is_unit = [&](const Operand& operand, size_t d) { return operand.opt_strides[d] == 1; };
  for (size_t d = 0; dims.size() >= 2 && d < dims.size(); ++d) {
    bool in_vectors = std::ranges::any_of(problem.outputs, [&](const Operand& output) { return is_unit(output, d); });
    bool is_padded = false;
    for (const Operand& operand : problem.operands) {
      in_vectors |= is_unit(operand, d);
      is_padded |= operand.padding && operand.opt_dims[d] != dims[d];
    }
    if (!in_vectors && !is_padded) dims[d] = d == 0 ? small_batch(dims) : std::min(dims[d], kSmallExtent);
  }
  for (Operand& output : problem.outputs) set_dims(output, dims);
  for (Operand& operand : problem.operands) {
    Dims its_dims = dims;
    for (size_t d = 0; operand.padding && d < dims.size(); ++d) its_dims[d] = std::min(dims[d], operand.opt_dims[d]);
    set_dims(operand, std::move(its_dims));
  }
}

// Of any op: the number of images or rows, which all inputs share that have it. False where contents would have to be
// cut, too.
bool cut_batch(Problem& problem) {
  const Dims first = problem.inputs[0].opt_dims;
  if (first.size() < 2) return false;
  for (Operand& input : problem.inputs) {
    if (input.omitted || input.rank() != problem.inputs[0].rank() || input.opt_dims[0] != first[0]) continue;
    if (input.weights) return false;
    Dims dims = input.opt_dims;
    dims[0] = small_batch(first);
    set_dims(input, std::move(dims));
  }
  return true;
}

// Fewer rows of a product's operand, in the parts that they have; gives how many are left.
int64_t cut_rows(Operand& operand, int64_t most) {
  Dims dims = operand.opt_dims;
  const auto [begin, end] = parts_of(operand, opt_whole_dims(operand).size() - 2);
  int64_t left = 1;
  for (size_t d = end; d-- > begin; left *= dims[d]) dims[d] = std::min(dims[d], std::max<int64_t>(most / left, 1));
  set_dims(operand, std::move(dims));
  return left;
}

// Of a batch of matrices that share a second factor, a few.
void cut_matrices(Operand& x) {
  Dims dims = x.opt_dims;
  for (size_t d = 0; d + 2 < dims.size(); ++d) dims[d] = std::min(dims[d], kSmallBatch);
  set_dims(x, std::move(dims));
}

// As many rows as kMostCheckedProducts allows, but more than a tile.
int64_t small_rows(const Operand& x, const Operand& output) {
  const Dims dims = opt_whole_dims(x);
  double row = static_cast<double>(dims.back()) * static_cast<double>(opt_whole_dims(output).back());
  for (size_t d = 0; d + 2 < dims.size(); ++d) row *= static_cast<double>(dims[d]);
  return std::clamp<int64_t>(static_cast<int64_t>(kMostCheckedProducts / std::max(row, 1.0)), kTileRows, kSmallRows);
}

bool cut_rows_of_product(Problem& problem) {
  Operand &x = problem.inputs[0], &output = problem.outputs[0];
  if (x.reassociation.empty() && output.reassociation.empty() && problem.inputs[1].rank() == 2) cut_matrices(x);
  const int64_t rows = cut_rows(x, small_rows(x, output));
  if (output.reassociation.empty() || cut_rows(output, rows) == rows) return true;
  return cut_rows(x, cut_rows(output, rows)) == cut_rows(output, rows);
}

bool cut_product(Problem& problem) {
  return opt_whole_dims(problem.inputs[0]).size() >= 2 && opt_whole_dims(problem.inputs[1]).size() >= 2 &&
         !problem.attrs<MatmulAttrs>().transpose_a && cut_rows_of_product(problem);
}

// The rows' scales are cut as they are. False where the rows have parts of which those know nothing.
bool cut_scaled_product(Problem& problem) {
  if (!cut_rows_of_product(problem)) return false;
  if (!problem.has_input(2)) return true;
  Operand& scales = problem.inputs[2];
  Dims dims = opt_whole_dims(problem.inputs[0]);
  if (dims.size() != scales.opt_dims.size()) return false;
  dims.back() = scales.opt_dims.back();
  set_dims(scales, std::move(dims));
  return true;
}

// Fewer rows of what experts multiply. False where their numbers are known.
bool cut_rows_of_experts(Problem& problem) {
  Operand &x = problem.inputs[0], &ids = problem.inputs[2];
  if (x.weights || ids.weights) return false;
  Dims rows = problem.outputs[0].opt_dims;
  rows.pop_back();
  int64_t left = 1;
  for (size_t d = rows.size(); d-- > 0; left *= rows[d])
    rows[d] = std::min(rows[d], std::max<int64_t>(small_rows(x, problem.outputs[0]) / left, 1));
  const auto cut = [&](Operand& operand, size_t rank) {
    Dims dims = operand.opt_dims;
    for (size_t d = 0; d < rank; ++d) dims[d] = std::min(dims[d], rows[rows.size() - rank + d]);
    set_dims(operand, std::move(dims));
  };
  cut(x, x.dims.size() - 1);
  cut(ids, ids.dims.size());
  return true;
}

// Of a mask, sinks or distances, beside the queries that are left.
Dims cut_beside(const Problem& problem, size_t input, const Dims& before) {
  const Dims& q = problem.inputs[0].opt_dims;
  Dims dims = problem.inputs[input].opt_dims;
  if (input == attention_input::kSinks) return {q[1]};
  if (input == attention_input::kMask) {
    for (size_t d = dims.size() < 4 ? 4 - dims.size() : 0; d < 3; ++d)
      if (int64_t& dim = dims[d + dims.size() - 4]; dim == before[d]) dim = q[d];
    return dims;
  }
  return {dims[0] == before[1] ? q[1] : dims[0], dims[1] - before[2] + q[2]};
}

// Fewer heads, as many queries' heads for each as there are, and queries; all keys.
bool cut_attention(Problem& problem) {
  constexpr int64_t kSmallHeads = 2, kSmallQueries = 300;  // several tiles of queries
  const auto& inputs = problem.inputs;
  const bool is_plain =
      std::ranges::all_of(inputs, [](const Operand& x) { return x.reassociation.empty() && !x.weights; });
  if (!is_plain || inputs[1].opt_dims[1] == 0 || !problem.outputs[0].reassociation.empty()) return cut_batch(problem);
  const Dims before = inputs[0].opt_dims;
  const int64_t shared = std::min(inputs[1].opt_dims[1], kSmallHeads), group = before[1] / inputs[1].opt_dims[1];
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].omitted) continue;
    Dims dims = i < 3 ? inputs[i].opt_dims : cut_beside(problem, i, before);
    if (i < 3) {
      dims[0] = small_batch(dims);
      dims[1] = i == 0 ? shared * group : shared;
      if (i == 0) dims[2] = std::min(dims[2], kSmallQueries);
    }
    set_dims(problem.inputs[i], std::move(dims));
  }
  return true;
}

bool cut_inputs(Problem& problem) {
  Operand& x = problem.inputs[0];
  Dims dims = x.opt_dims;
  if (problem.is(OpKind::matmul)) return cut_product(problem);
  if (problem.is(OpKind::scaled_matmul)) return cut_scaled_product(problem);
  if (problem.is(OpKind::expert_matmul)) return cut_rows_of_experts(problem);
  if (problem.is(OpKind::attention)) return cut_attention(problem);
  if (problem.is(OpKind::convolution) || problem.is(OpKind::deconvolution) || problem.is(OpKind::pooling)) {
    const bool has_window = problem.inputs.size() > 1 && problem.inputs[1].rank() == x.rank();
    cut_images(dims, has_window ? problem.inputs[1].opt_dims : Dims());
  } else {
    return cut_batch(problem);
  }
  set_dims(x, std::move(dims));
  return true;
}

// Of what the op reads. A factor that a program computes, such as an f32 image that is cast as it is read, has the type
// of the other factor, for the op takes no other.
DType type_of(const Problem& problem, size_t input) {
  const Operand& own = problem.inputs[input];
  if (!own.is_computed() || problem.inputs.size() < 2 || input > 1 ||
      !is_factor(op_info(problem.attributes->kind()), input))
    return own.dtype;
  const Operand& other = problem.inputs[1 - input];
  return other.is_computed() ? DType::f32 : other.dtype;
}

// Runs the root's shape rule on the inputs. Nothing where it refuses them or the result is not to be known.
std::optional<Dims> result_dims(const Problem& problem) {
  std::vector<ValueType> types;
  std::vector<InferContext::Input> inputs;
  for (size_t i = 0; i < problem.inputs.size(); ++i)
    types.push_back({type_of(problem, i), to_shape(opt_whole_dims(problem.inputs[i]))});
  for (size_t i = 0; i < types.size(); ++i)
    inputs.push_back({problem.inputs[i].omitted ? nullptr : &types[i], problem.inputs[i].constant, nullptr});
  InferContext infer(*problem.attributes, inputs, 1, [](std::string_view, size_t) { return Expr::invalid(); });
  if (!infer_op(op_info(problem.attributes->kind()), infer)) return std::nullopt;
  return as_constant(infer.outputs()[0].type.shape);
}

// False where a dimension that has several parts differs.
bool set_whole_dims(Operand& output, const Dims& whole) {
  Dims dims = output.opt_dims;
  for (size_t d = 0; d < whole.size(); ++d) {
    const auto [begin, end] = parts_of(output, d);
    if (end == begin + 1) dims[begin] = whole[d];
  }
  set_dims(output, std::move(dims));
  return opt_whole_dims(output) == whole;
}

// False = it cannot be cut, and may have been changed in part.
bool shrink(Problem& problem) {
  if (!problem.attributes) return cut_pointwise(problem), true;
  if (problem.inputs.empty() || !cut_inputs(problem)) return false;
  std::optional<Dims> dims = result_dims(problem);
  Operand& output = problem.outputs[0];
  if (problem.pairs && dims && !dims->empty()) dims->back() /= 2;
  if (!dims || dims->empty() || dims->size() != opt_whole_dims(output).size()) return false;
  // An extent that the attributes state does not follow the input's, and one that is reduced is kept.
  if (!problem.is(OpKind::matmul) && (*dims)[0] != problem.inputs[0].opt_dims[0]) return false;
  if (!set_whole_dims(output, *dims)) return false;
  for (size_t i = 1; i < problem.outputs.size(); ++i) set_dims(problem.outputs[i], output.opt_dims);
  // The program's operands are beside the result; behind them are the vectors that normalise its rows.
  const size_t beside =
      problem.result_normalization() ? problem.program.num_inputs - problem.accumulators() : problem.operands.size();
  for (size_t i = 0; i < beside; ++i) set_dims(problem.operands[i], output.opt_dims);
  for (Operand& input : problem.inputs)
    for (Operand& operand : input.operands)
      if (input.pages && &operand == &input.operands[0])
        set_dims(operand, {input.opt_dims[0], operand.opt_dims[1]});
      else if (operand.blocks.empty() && !input.normalization)
        set_dims(operand, input.opt_dims);
  return true;
}

}  // namespace

Problem cut_down(const Problem& problem) {
  Problem small = problem;
  return shrink(small) ? small : problem;
}

}  // namespace lathe
