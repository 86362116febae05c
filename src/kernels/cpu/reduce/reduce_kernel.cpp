// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/reduce/reduce.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/accumulate.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/program_block.h"
#include "kernels/cpu/reduce/loops.h"

namespace lathe::cpu {
namespace {

using namespace reduce;

constexpr int64_t kMinTaskElements = 40000;  // about 5 us of reading
constexpr int64_t kColumnPiece = 256;        // columns whose totals one task keeps
constexpr int64_t kGather = 512;             // elements of a strided row that are copied together at a time

class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(Reduction op, uint32_t axes, const Program* program)
      : op_(op), axes_(axes), epilogue_(program ? BlockProgram(*program) : BlockProgram()) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int threads) const override {
    return epilogue_.scratch_bytes();
  }
  void run(const Launch& launch) const override;

 private:
  double finish(double total, double maximum, int64_t count) const;
  float reduce_one(const Loops& loops, const float* data) const;
  void reduce_columns(const Loops& loops, const float* data, int64_t columns, float* totals) const;
  void run_rows(const Launch& launch, const Loops& loops, float* out) const;
  void run_columns(const Launch& launch, const Loops& loops, float* out) const;
  void run_epilogue(const Launch& launch) const;

  const Reduction op_;
  const uint32_t axes_;
  const BlockProgram epilogue_;
};

Result<> ReduceKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != static_cast<size_t>(epilogue_.num_inputs()) || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "reduce: {} inputs and {} outputs given, {} and 1 expected", inputs.size(),
                outputs.size(), epilogue_.num_inputs());
  for (const std::span<const TensorArg> tensors : {inputs, outputs})
    for (const TensorArg& tensor : tensors)
      if (tensor.dtype != DType::f32)
        return fail(ErrorCode::dtype_unsupported, "reduce: an operand is {}; only f32 is supported",
                    name_of(tensor.dtype));
  LATHE_TRY(check_dims(inputs[0], outputs[0], axes_));
  for (const TensorArg& operand : inputs.subspan(1))
    if (!broadcasts_to(operand, outputs[0]))
      return fail(ErrorCode::shape_mismatch, "reduce: an operand of the epilogue does not broadcast to the output");
  return {};
}

double ReduceKernel::finish(double total, double maximum, int64_t count) const {
  switch (op_) {
    case Reduction::mean:
      return total / static_cast<double>(count);
    case Reduction::l2:
      return std::sqrt(total);
    case Reduction::log_sum:
      return std::log(total);
    case Reduction::log_sum_exp:
      return std::log(total) + maximum;
    default:
      return total;
  }
}

// The shift of a sum of exponentials: inf - inf would be NaN.
float finite_shift(double maximum) { return std::isfinite(maximum) ? static_cast<float>(maximum) : 0.0f; }

float ReduceKernel::reduce_one(const Loops& loops, const float* data) const {
  static const auto accumulate = LATHE_ISA_SELECT(accumulate_row);
  const int outer = loops.reduced_rank - 1;
  const int64_t n = outer < 0 ? 1 : loops.reduced[outer], step = outer < 0 ? 1 : loops.reduced_in[outer];
  const auto pass = [&](Accumulation kind, float shift) {
    double total = start_of(kind);
    for_each_offset(loops.reduced, loops.reduced_in, std::max(outer, 0), [&](int64_t offset) {
      if (step == 1) {
        total = accumulate(kind, total, data + offset, n, shift);
        return;
      }
      float gathered[kGather];
      for (int64_t i = 0; i < n; i += kGather) {
        const int64_t count = std::min(kGather, n - i);
        for (int64_t k = 0; k < count; ++k) gathered[k] = data[offset + (i + k) * step];
        total = accumulate(kind, total, gathered, count, shift);
      }
    });
    return total;
  };
  const double maximum = op_ == Reduction::log_sum_exp ? finite_shift(pass(Accumulation::maximum, 0)) : 0;
  return static_cast<float>(finish(pass(accumulation_of(op_), static_cast<float>(maximum)), maximum, loops.elements()));
}

// Results that lie side by side; columns <= kColumnPiece.
void ReduceKernel::reduce_columns(const Loops& loops, const float* data, int64_t columns, float* totals) const {
  static const auto accumulate = LATHE_ISA_SELECT(accumulate_columns);
  const int outer = loops.reduced_rank - 1;
  const int64_t rows = outer < 0 ? 1 : loops.reduced[outer], stride = outer < 0 ? 0 : loops.reduced_in[outer];
  const auto pass = [&](Accumulation kind, const float* shifts) {
    std::fill_n(totals, columns, start_of(kind));
    for_each_offset(loops.reduced, loops.reduced_in, std::max(outer, 0),
                    [&](int64_t offset) { accumulate(kind, totals, shifts, data + offset, rows, stride, columns); });
  };
  float maxima[kColumnPiece] = {};
  if (op_ == Reduction::log_sum_exp) {
    pass(Accumulation::maximum, nullptr);
    for (int64_t c = 0; c < columns; ++c) maxima[c] = finite_shift(totals[c]);
  }
  pass(accumulation_of(op_), maxima);
  for (int64_t c = 0; c < columns; ++c) totals[c] = static_cast<float>(finish(totals[c], maxima[c], loops.elements()));
}

void ReduceKernel::run_rows(const Launch& launch, const Loops& loops, float* out) const {
  const float* in = launch.inputs[0].as<float>();
  const int64_t grain = std::max<int64_t>(1, kMinTaskElements / std::max<int64_t>(1, loops.elements()));
  launch.pool.parallel_for(loops.results(), grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t from = 0, to = 0, rest = i;
      for (int d = loops.kept_rank - 1; d >= 0; --d) {
        from += rest % loops.kept[d] * loops.kept_in[d];
        to += rest % loops.kept[d] * loops.kept_out[d];
        rest /= loops.kept[d];
      }
      out[to] = reduce_one(loops, in + from);
    }
  });
}

void ReduceKernel::run_columns(const Launch& launch, const Loops& loops, float* out) const {
  const float* in = launch.inputs[0].as<float>();
  const int inner = loops.kept_rank - 1;
  const int64_t columns = loops.kept[inner], rows = loops.results() / columns;
  // Wide pieces when there are enough of them, else pieces of a few cache lines.
  const int64_t width = rows * columns >= 4 * kColumnPiece * launch.pool.size() ? kColumnPiece : kColumnPiece / 4;
  const int64_t pieces = ceil_div(columns, width);
  const int64_t work = std::max<int64_t>(1, loops.elements()) * std::min(width, columns);
  launch.pool.parallel_for(rows * pieces, std::max<int64_t>(1, kMinTaskElements / work),
                           [&](int64_t begin, int64_t end, int) {
                             for (int64_t unit = begin; unit < end; ++unit) {
                               const int64_t first = unit % pieces * width, count = std::min(width, columns - first);
                               int64_t from = first, to = first * loops.kept_out[inner], rest = unit / pieces;
                               for (int d = inner - 1; d >= 0; --d) {
                                 from += rest % loops.kept[d] * loops.kept_in[d];
                                 to += rest % loops.kept[d] * loops.kept_out[d];
                                 rest /= loops.kept[d];
                               }
                               float totals[kColumnPiece];
                               reduce_columns(loops, in + from, count, totals);
                               for (int64_t c = 0; c < count; ++c) out[to + c * loops.kept_out[inner]] = totals[c];
                             }
                           });
}

// The results are few; one thread applies the program to them in place.
void ReduceKernel::run_epilogue(const Launch& launch) const {
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  const LoopNest nest = make_loop_nest(launch.outputs, launch.inputs.subspan(1));
  const int inner = nest.rank - 1;
  for (int64_t row = 0; row < launch.outputs[0].volume() / nest.dims[inner]; ++row) {
    int64_t offsets[kMaxNestOperands];
    nest.offsets(inner, row, offsets);
    float* data = launch.outputs[0].as<float>() + offsets[0];
    BlockInput inputs[kMaxProgramInputs];
    inputs[0] = {data, 0, nest.strides[0][inner]};
    for (size_t i = 1; i < launch.inputs.size(); ++i)
      inputs[i] = {launch.inputs[i].as<float>() + offsets[i], 0, nest.strides[i][inner]};
    const BlockOutput output{data, 0, nest.strides[0][inner]};
    run_block(epilogue_, 1, nest.dims[inner], inputs, &output, reinterpret_cast<float*>(launch.workspace));
  }
}

void ReduceKernel::run(const Launch& launch) const {
  const TensorArg &in = launch.inputs[0], &out = launch.outputs[0];
  if (out.volume() == 0) return;
  const Loops loops(in, keep_dims(out, in, axes_), axes_);
  loops.columns ? run_columns(launch, loops, out.as<float>()) : run_rows(launch, loops, out.as<float>());
  if (!epilogue_.is_identity()) run_epilogue(launch);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_reduce(const Record& record) {
  const auto params = decode_params<ReduceParams>(record.params);
  if (!params || !params->are_valid()) return refuse_params("reduce");
  if (record.program && (record.program->num_inputs < 1 || record.program->outputs.size() != 1))
    return fail(ErrorCode::plan_malformed, "reduce: the epilogue must have an input and one output");
  return std::make_unique<ReduceKernel>(params->op, params->axes, record.program);
}

}  // namespace lathe::cpu
