// SPDX-License-Identifier: Apache-2.0
// Reductions over known axes, and pooling by one window over everything.
#include <numeric>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/row_shapes.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

std::string_view device_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "Sum";
    case ReduceOp::prod:
      return "Product";
    case ReduceOp::max:
      return "Largest";
    case ReduceOp::min:
      return "Smallest";
    case ReduceOp::mean:
      return "Mean";
    case ReduceOp::l1:
      return "AbsoluteSum";
    case ReduceOp::l2:
      return "EuclideanNorm";
    case ReduceOp::log_sum:
      return "LogSum";
    case ReduceOp::log_sum_exp:
      return "LogSumExp";
    case ReduceOp::sum_square:
      break;
  }
  return "SquareSum";
}

// Pooling by one window over everything is a reduction.
bool is_global_pooling(const Problem& problem) {
  if (!problem.is(OpKind::pooling) || problem.outputs.size() > 1) return false;
  const auto& attrs = problem.attrs<PoolingAttrs>();
  const Operand& x = problem.inputs[0];
  const size_t lead = x.dims.size() - attrs.window.size();
  if (attrs.op == PoolingOp::lp && attrs.p > 2) return false;
  for (const int64_t pad : attrs.pads_begin)
    if (pad != 0) return false;
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    if (x.dims[lead + i] != Expr(attrs.window[i]) || problem.outputs[0].dims[lead + i] != Expr(1)) return false;
    if (i < attrs.dilation.size() && attrs.dilation[i] != 1) return false;
    if (i < attrs.pads_end.size() && attrs.pads_end[i] != 0) return false;
  }
  return true;
}

ReduceOp op_of(const Problem& problem) {
  if (problem.is(OpKind::reduce)) return problem.attrs<ReduceAttrs>().op;
  const auto& attrs = problem.attrs<PoolingAttrs>();
  if (attrs.op == PoolingOp::lp) return attrs.p == 1 ? ReduceOp::l1 : ReduceOp::l2;
  return attrs.op == PoolingOp::max ? ReduceOp::max : ReduceOp::mean;
}

// The type that is computed with.
std::string_view value_type(const Problem& problem) {
  const DType dtype = problem.inputs[0].dtype;
  const ReduceOp op = op_of(problem);
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) return "float";
  if (dtype == DType::f64 || op == ReduceOp::l2 || op == ReduceOp::log_sum || op == ReduceOp::log_sum_exp)
    return "double";
  return dtype == DType::u64 ? "uint64" : "int64";
}

// The reduced dims; nothing when the input stays as it is.
std::vector<size_t> reduced_dims(const Problem& problem) {
  if (problem.is(OpKind::pooling)) {
    std::vector<size_t> dims(problem.attrs<PoolingAttrs>().window.size());
    std::iota(dims.begin(), dims.end(), problem.inputs[0].dims.size() - dims.size());
    return dims;
  }
  const auto& attrs = problem.attrs<ReduceAttrs>();
  const int64_t rank = problem.inputs[0].rank();
  Ints axes = attrs.axes;
  if (problem.inputs.size() > 1 && problem.inputs[1].constant) {
    axes.clear();
    for (int64_t i = 0; i < problem.inputs[1].constant->volume(); ++i)
      axes.push_back(problem.inputs[1].constant->at(i));
  }
  if (axes.empty() && !attrs.noop_with_empty_axes)
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  std::vector<size_t> dims;
  for (const int64_t axis : axes) dims.push_back(static_cast<size_t>(axis < 0 ? axis + rank : axis));
  return dims;
}

// Tensor 0 is x, 1 is y; the program's operands follow.
IndexSpace space_of(const Problem& problem) {
  IndexSpace space(problem.inputs[0]);
  for (const size_t dim : reduced_dims(problem)) space.reduce(dim);
  const bool keeps = problem.is(OpKind::pooling) || problem.attrs<ReduceAttrs>().keepdims;
  const auto add = [&](const Operand& operand) { keeps ? space.add(operand) : space.add_kept(operand); };
  add(problem.outputs[0]);
  for (const Operand& operand : problem.operands) add(operand);
  space.simplify();
  return space;
}

// Writes the launches of one reduction.
class Writer {
 public:
  Writer(const Problem& problem, const IndexSpace& space, const RowShape& shape)
      : problem_(problem), space_(space), shape_(shape) {
    columns_ = shape.kind == RowShape::columns || shape.kind == RowShape::strips;
    const std::string_view value = value_type(problem);
    const ReduceOp op = op_of(problem);
    type_ = fmt::format("{}<{}>", device_name(op), value);
    state_bytes_ = (value == "float" ? 4 : 8) * (op == ReduceOp::log_sum_exp ? 2 : 1);
  }

  uint32_t state_bytes() const { return state_bytes_; }
  Expr workspace() const { return shape_.splits == 1 ? Expr(0) : space_.rows() * shape_.splits * state_bytes_; }

  std::vector<SourceLaunch> launches() const {
    std::vector<SourceLaunch> launches;
    launches.push_back(columns_ ? strips() : shape_.kind == RowShape::parts ? row_parts() : rows());
    if (shape_.splits > 1) launches.push_back(columns_ ? strip_states() : row_states());
    return launches;
  }

 private:
  int kept() const { return space_.kept(); }
  int width() const { return chunk_width(space_); }
  std::array<Expr, 3> grid() const { return {row_blocks(space_, shape_), shape_.splits, 1}; }

  // What the launch that writes the results needs.
  void add_results(Source& source) const {
    source.output(0, space_.kept_view(1), "Y");
    Problem view;
    view.attributes = problem_.attributes;
    view.program = problem_.program;
    view.outputs = {space_.kept_view(1)};
    for (size_t i = 0; i < problem_.operands.size(); ++i) view.operands.push_back(space_.kept_view(2 + i));
    source.fusion(view, 1);
  }
  Source begin() const {
    Source source("reduce/reduce.cuh");
    source.input(0, space_.view(0), "X");
    return source;
  }
  SourceLaunch finish(Source& source, std::string_view call) const {
    return source.finish(call, grid(), static_cast<uint32_t>(shape_.threads()),
                         row_shared_bytes(space_, shape_, state_bytes_));
  }

  SourceLaunch rows() const {
    Source source = begin();
    add_results(source);
    return finish(source, fmt::format("reduce_rows<{}, {}, {}, {}, {}>(X_, Y_, {}{{}}, fusion_);", kept(), shape_.lanes,
                                      shape_.rows_per_block, width(), shape_.unroll, type_));
  }
  SourceLaunch row_parts() const {
    Source source = begin();
    source.workspace("states", 0, type_ + "::State");
    return finish(source, fmt::format("reduce_row_parts<{}, {}, {}, {}, {}>(X_, states, {}{{}});", kept(), shape_.lanes,
                                      width(), shape_.unroll, shape_.splits, type_));
  }
  SourceLaunch row_states() const {
    constexpr uint32_t kThreads = 128;
    Source source = begin();
    source.workspace("states", 0, type_ + "::State");
    add_results(source);
    const std::string call = fmt::format("reduce_row_states<{}, {}, {}>(X_, Y_, states, {}{{}}, fusion_);", kept(),
                                         kThreads, shape_.splits, type_);
    return source.finish(call, {space_.rows(), 1, 1}, kThreads, kThreads / 32 * state_bytes_);
  }
  SourceLaunch strips() const {
    Source source = begin();
    if (shape_.splits > 1) source.workspace("states", 0, type_ + "::State");
    if (shape_.splits == 1) add_results(source);
    const std::string arguments =
        fmt::format("{}, {}, {}, {}, {}", kept(), shape_.tx(), shape_.ty, width(), shape_.unroll);
    return finish(source,
                  shape_.splits == 1
                      ? fmt::format("reduce_columns_whole<{}>(X_, Y_, {}{{}}, fusion_);", arguments, type_)
                      : fmt::format("reduce_strips<{}, {}>(X_, states, {}{{}});", arguments, shape_.splits, type_));
  }
  SourceLaunch strip_states() const {
    constexpr int64_t kColumns = 32, kShares = 8;
    Source source = begin();
    source.workspace("states", 0, type_ + "::State");
    add_results(source);
    const std::string call = fmt::format("reduce_strip_states<{}, {}, {}, {}>(X_, Y_, states, {}{{}}, fusion_);",
                                         kept(), kColumns, kShares, shape_.splits, type_);
    Expr blocks = ceildiv(space_.extent(kept() - 1), kColumns);
    for (int i = 0; i + 1 < kept(); ++i) blocks *= space_.extent(i);
    return source.finish(call, {blocks, 1, 1}, kColumns * kShares, kColumns * kShares * state_bytes_);
  }

  const Problem& problem_;
  const IndexSpace& space_;
  RowShape shape_;
  bool columns_ = false;
  std::string type_;
  uint32_t state_bytes_ = 4;
};

class ReduceTactic final : public Tactic {
 public:
  std::string_view name() const override { return "reduce"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::reduce) && !is_global_pooling(problem)) return "not a reduction";
    if (problem.inputs[0].rank() == 0) return "a scalar";
    if (problem.inputs.size() > 1 && !problem.inputs[1].omitted && !problem.inputs[1].constant)
      return "its axes are not constant";
    if (reduced_dims(problem).empty()) return "its axes leave the input as it is";
    if (value_type(problem) != "float" && !problem.program.is_identity()) return "a program behind doubles or integers";
    if (value_type(problem) != "float" && problem.inputs[0].dtype != problem.outputs[0].dtype)
      return "its result is of another type";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override {
    const IndexSpace space = space_of(problem);
    return row_configs(space, false, Writer(problem, space, {}).state_bytes());
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const IndexSpace space = space_of(problem);
    const Writer writer(problem, space, RowShape::of(config));
    Emission emission;
    emission.inputs = {{StepInput::input, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    emission.launches = writer.launches();
    emission.workspace = writer.workspace();
    return emission;
  }
};

}  // namespace

const Tactic& reduce_tactic() {
  static const ReduceTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
