// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/divide.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace lathe::cpu {

namespace {

// Functions of formulas that take dozens of instructions; "math::exp" is "math::expm1", too.
constexpr std::string_view kLongFunctions[] = {"math::exp",     "math::log",      "math::erf",     "math::sin",
                                               "math::cos",     "math::tanh",     "math::silu",    "math::mish",
                                               "math::sigmoid", "math::softplus", "math::gelu_erf"};

constexpr bool is_long(std::string_view formula) {
  for (const std::string_view function : kLongFunctions)
    if (formula.find(function) != formula.npos) return true;
  return false;
}

double estimated_ns(StepOp op) {
  constexpr double kPower = 15, kLong = 0.5, kShort = 0.06;
  if (op == StepOp::pow) return kPower;  // through libm, one by one
  switch (op) {
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) \
  case StepOp::name:                                                   \
    return is_long(#formula) ? kLong : kShort;
#define LATHE_ROUNDING(...)
#include "base/scalars.def"
    default:
      return kShort;
  }
}

}  // namespace

double estimated_ns_per_element(const BlockProgram& program) {
  double ns = 0.1 * (program.num_inputs() + program.num_outputs());
  for (const BlockStep& step : program.steps()) ns += estimated_ns(step.op);
  return ns;
}

namespace {

constexpr double kMinTaskNs = 5000;  // smaller pieces are not worth another thread

class PointwiseKernel final : public Kernel {
 public:
  explicit PointwiseKernel(const Program& program)
      : program_(program), grain_(static_cast<int64_t>(kMinTaskNs / estimated_ns_per_element(program_))) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int threads) const override {
    return scratch_stride() * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  size_t scratch_stride() const { return round_up(program_.scratch_bytes(), 64); }

  const BlockProgram program_;
  const int64_t grain_;  // elements
};

Result<> PointwiseKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != static_cast<size_t>(program_.num_inputs()) ||
      outputs.size() != static_cast<size_t>(program_.num_outputs()))
    return fail(ErrorCode::invalid_argument, "pointwise: {} inputs and {} outputs given; the program has {} and {}",
                inputs.size(), outputs.size(), program_.num_inputs(), program_.num_outputs());
  for (const std::span<const TensorArg> tensors : {inputs, outputs})
    for (const TensorArg& tensor : tensors)
      if (tensor.dtype != DType::f32 && tensor.dtype != DType::u8 && tensor.dtype != DType::i8)
        return fail(ErrorCode::dtype_unsupported, "pointwise: an operand is {}; f32, u8 and i8 are supported",
                    name_of(tensor.dtype));
  for (const TensorArg& output : outputs)
    for (int d = 0; d < output.rank; ++d)
      if (output.rank != outputs[0].rank || output.dims[d] != outputs[0].dims[d] ||
          (output.strides[d] == 0 && output.dims[d] > 1 && output.volume() > 0))
        return fail(ErrorCode::shape_mismatch, "pointwise: outputs must have one shape and no stride of 0");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!broadcasts_to(inputs[i], outputs[0]))
      return fail(ErrorCode::shape_mismatch, "pointwise: input {} does not broadcast to the output's shape", i);
  return {};
}

// A part of the walk: whole rows of the two inner loops, or a range of columns of single rows.
struct Walk {
  LoopNest nest;
  int64_t rows;             // of the second loop from the inside
  int64_t columns;          // of the innermost loop
  int64_t total_rows;       // with all outer loops
  int64_t pieces;           // per row; 1 = rows are not divided
  int row_dim, column_dim;  // -1: none
};

void swap_loops(LoopNest& nest, int a, int b) {
  std::swap(nest.dims[a], nest.dims[b]);
  for (auto& strides : nest.strides) std::swap(strides[a], strides[b]);
}

// Where the innermost loop is too short for vectors, as along the channels of a picture, the next one goes inside.
void lengthen_columns(LoopNest& nest) {
  const int column = nest.rank - 1, row = nest.rank - 2;
  if (row < 0 || nest.dims[column] >= kMaxLanes || nest.dims[row] < 2 * kMaxLanes) return;
  swap_loops(nest, row, column);
}

// Where the two inner loops do not fill a block, as the halves of a head whose positions are rotary, the longest of the
// others goes inside: blocks cost as much as dozens of elements.
void lengthen_rows(LoopNest& nest) {
  const int row = nest.rank - 2;
  if (row < 1 || nest.dims[row] * nest.dims[nest.rank - 1] >= kBlockFloats) return;
  const auto longest = static_cast<int>(std::max_element(nest.dims, nest.dims + row) - nest.dims);
  if (nest.dims[longest] > nest.dims[row]) swap_loops(nest, longest, row);
}

Walk make_walk(LoopNest nest, int threads, int64_t grain) {
  lengthen_columns(nest);
  lengthen_rows(nest);
  Walk walk{nest, 1, nest.dims[nest.rank - 1], 1, 1, nest.rank - 2, nest.rank - 1};
  if (walk.row_dim >= 0) walk.rows = nest.dims[walk.row_dim];
  for (int d = 0; d < nest.rank - 1; ++d) walk.total_rows *= nest.dims[d];
  if (walk.total_rows < 4 * threads && walk.columns >= 2 * kBlockFloats) {
    const int64_t piece = std::max<int64_t>(grain, kBlockFloats);
    walk.pieces = ceil_div(walk.columns, piece);
  }
  return walk;
}

void PointwiseKernel::run(const Launch& launch) const {
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  const int num_outputs = program_.num_outputs(), num_inputs = program_.num_inputs();
  const int64_t volume = launch.outputs[0].volume();
  if (volume == 0) return;
  const Walk walk = make_walk(make_loop_nest(launch.outputs, launch.inputs), launch.pool.size(), grain_);
  const LoopNest& nest = walk.nest;

  const auto block = [&](int64_t row, int64_t rows, int64_t column, int64_t columns, float* scratch) {
    int64_t offsets[kMaxNestOperands];
    nest.offsets(nest.rank - 1, row, offsets);
    BlockInput in[kMaxProgramInputs];
    BlockOutput out[kMaxProgramOutputs];
    for (int k = 0; k < num_outputs + num_inputs; ++k) {
      const int64_t column_stride = nest.strides[k][walk.column_dim];
      const int64_t row_stride = walk.row_dim < 0 ? 0 : nest.strides[k][walk.row_dim];
      const TensorArg& tensor = k < num_outputs ? launch.outputs[static_cast<size_t>(k)]
                                                : launch.inputs[static_cast<size_t>(k - num_outputs)];
      void* data = element_at(tensor.data, offsets[k] + column * column_stride, size_of(tensor.dtype));
      if (k < num_outputs)
        out[k] = {data, row_stride, column_stride, tensor.dtype};
      else
        in[k - num_outputs] = {data, row_stride, column_stride, tensor.dtype};
    }
    run_block(program_, rows, columns, in, out, scratch);
  };

  const int64_t units = walk.total_rows * walk.pieces;
  const int64_t unit_grain = std::max<int64_t>(1, grain_ * units / volume);
  launch.pool.parallel_for(units, unit_grain, [&](int64_t begin, int64_t end, int worker) {
    auto* scratch = reinterpret_cast<float*>(launch.workspace + scratch_stride() * static_cast<size_t>(worker));
    const auto column_at = [&](int64_t piece) { return walk.columns * piece / walk.pieces; };
    for (int64_t unit = begin; unit < end;) {
      const int64_t row = unit / walk.pieces, piece = unit % walk.pieces;
      if (walk.pieces > 1) {
        const int64_t last = std::min(walk.pieces, piece + end - unit);
        block(row, 1, column_at(piece), column_at(last) - column_at(piece), scratch);
        unit += last - piece;
      } else {
        const int64_t rows = std::min(walk.rows - row % walk.rows, end - unit);
        block(row, rows, 0, walk.columns, scratch);
        unit += rows;
      }
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_pointwise(const Record& record) {
  if (!record.params.empty() || !record.program)
    return fail(ErrorCode::plan_malformed, "pointwise: the record must hold a program and no parameters");
  return std::make_unique<PointwiseKernel>(*record.program);
}

}  // namespace lathe::cpu
