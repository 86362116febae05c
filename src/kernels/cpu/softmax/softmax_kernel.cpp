// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/program_block.h"
#include "kernels/cpu/softmax/softmax.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskElements = 8000;  // about 5 us
constexpr int64_t kColumnPiece = 64;

class SoftmaxKernel final : public Kernel {
 public:
  SoftmaxKernel(int axis, bool log, const Program* program)
      : axis_(axis), log_(log), epilogue_(program ? BlockProgram(*program) : BlockProgram()) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg>, int threads) const override {
    return (row_bytes(inputs[0]) + scratch_bytes()) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  // One row for each thread, for rows that are not contiguous.
  size_t row_bytes(const TensorArg& in) const {
    return (static_cast<size_t>(in.dims[axis_]) * sizeof(float) + 63) / 64 * 64;
  }
  size_t scratch_bytes() const { return round_up(epilogue_.scratch_bytes(), 64); }
  // A thread's own row, and behind it the scratch of the epilogue.
  float* row_of(const Launch& launch, int worker) const {
    const size_t bytes = row_bytes(launch.inputs[0]) + scratch_bytes();
    return reinterpret_cast<float*>(launch.workspace + bytes * static_cast<size_t>(worker));
  }
  void run_epilogue(const Launch& launch, int worker, float* data, int64_t row_stride, int64_t rows,
                    int64_t columns) const;
  void write_levels(const Launch& launch, int worker, int64_t offset) const;
  void run_columns(const Launch& launch, const LoopNest& nest) const;
  void run_rows(const Launch& launch, const LoopNest& nest) const;

  const int axis_;
  const bool log_;
  const BlockProgram epilogue_;
};

Result<> SoftmaxKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 1 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "softmax: {} inputs and {} outputs given, 1 and 1 expected", inputs.size(),
                outputs.size());
  const TensorArg &in = inputs[0], &out = outputs[0];
  const bool gives_levels = is_byte_integer(out.dtype) && !epilogue_.is_identity();
  if (in.dtype != DType::f32 || (out.dtype != DType::f32 && !gives_levels))
    return fail(ErrorCode::dtype_unsupported, "softmax: {} to {}; only f32, and levels of it, are supported",
                name_of(in.dtype), name_of(out.dtype));
  if (in.rank != out.rank || axis_ >= in.rank || !std::equal(in.dims, in.dims + in.rank, out.dims))
    return fail(ErrorCode::shape_mismatch, "softmax: shapes differ, or lack axis {}", axis_);
  return {};
}

void SoftmaxKernel::run_epilogue(const Launch& launch, int worker, float* data, int64_t row_stride, int64_t rows,
                                 int64_t columns) const {
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  if (epilogue_.is_identity()) return;
  const BlockInput input{data, row_stride, 1};
  const BlockOutput output{data, row_stride};
  float* scratch = row_of(launch, worker) + row_bytes(launch.inputs[0]) / sizeof(float);
  run_block(epilogue_, rows, columns, &input, &output, scratch);
}

// The worker's row, of which the program makes levels.
void SoftmaxKernel::write_levels(const Launch& launch, int worker, int64_t offset) const {
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  const TensorArg& out = launch.outputs[0];
  float* row = row_of(launch, worker);
  const BlockInput input{row, 0, 1};
  const BlockOutput output{out.as<std::byte>() + offset, 0, out.strides[axis_], out.dtype};
  run_block(epilogue_, 1, out.dims[axis_], &input, &output, row + row_bytes(launch.inputs[0]) / sizeof(float));
}

void SoftmaxKernel::run_columns(const Launch& launch, const LoopNest& nest) const {
  static const auto softmax = LATHE_ISA_SELECT(softmax_columns);
  const TensorArg &in = launch.inputs[0], &out = launch.outputs[0];
  const int inner = nest.rank - 1;
  const int64_t n = in.dims[axis_], columns = nest.dims[inner], pieces = ceil_div(columns, kColumnPiece);
  int64_t rows = 1;
  for (int d = 0; d < inner; ++d) rows *= nest.dims[d];
  const int64_t grain = std::max<int64_t>(1, kMinTaskElements / (n * kColumnPiece));
  launch.pool.parallel_for(rows * pieces, grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t offsets[2];
      nest.offsets(inner, unit / pieces, offsets);
      const int64_t first = unit % pieces * kColumnPiece;
      float* target = out.as<float>() + offsets[0] + first;
      const int64_t count = std::min(kColumnPiece, columns - first);
      softmax(in.as<float>() + offsets[1] + first, in.strides[axis_], target, out.strides[axis_], n, count, log_);
      run_epilogue(launch, worker, target, out.strides[axis_], n, count);
    }
  });
}

void SoftmaxKernel::run_rows(const Launch& launch, const LoopNest& nest) const {
  static const auto softmax = LATHE_ISA_SELECT(softmax_row);
  const TensorArg &in = launch.inputs[0], &out = launch.outputs[0];
  const int64_t n = in.dims[axis_], in_stride = in.strides[axis_], out_stride = out.strides[axis_];
  const int64_t grain = std::max<int64_t>(1, kMinTaskElements / n);
  // Starting a program takes as long as a short row: rows that lie one behind the other share it.
  const bool is_dense = nest.rank == 1 && nest.strides[0][0] == n;
  const int64_t most = is_dense ? std::max<int64_t>(1, 4 * kBlockFloats / n) : 1;
  launch.pool.parallel_for(in.volume() / n, grain, [&](int64_t begin, int64_t end, int worker) {
    float* row = row_of(launch, worker);
    int64_t waiting = 0;  // rows for the epilogue
    for (int64_t i = begin; i < end; ++i) {
      int64_t offsets[2];
      nest.offsets(nest.rank, i, offsets);
      const float* source = in.as<float>() + offsets[1];
      float* target = out.as<float>() + offsets[0];
      const bool gives_levels = out.dtype != DType::f32;
      if (in_stride == 1 && gives_levels) {
        softmax(source, row, n, log_);
        write_levels(launch, worker, offsets[0]);
        continue;
      }
      if (in_stride == 1 && out_stride == 1) {
        softmax(source, target, n, log_);
        if (++waiting < most && i + 1 < end) continue;
        run_epilogue(launch, worker, target - (waiting - 1) * n, n, waiting, n);
        waiting = 0;
        continue;
      }
      for (int64_t k = 0; k < n; ++k) row[k] = source[k * in_stride];
      softmax(row, row, n, log_);
      if (gives_levels) {
        write_levels(launch, worker, offsets[0]);
        continue;
      }
      run_epilogue(launch, worker, row, 0, 1, n);
      for (int64_t k = 0; k < n; ++k) target[k * out_stride] = row[k];
    }
  });
}

void SoftmaxKernel::run(const Launch& launch) const {
  const TensorArg &in = launch.inputs[0], &out = launch.outputs[0];
  if (in.volume() == 0) return;
  // The loops over all rows: the tensors without the axis.
  TensorArg heads[2] = {out, in};
  for (TensorArg& head : heads) head.dims[axis_] = 1;
  const LoopNest nest = make_loop_nest({heads, 1}, {heads + 1, 1});
  const int inner = nest.rank - 1;
  const bool rows = in.strides[axis_] == 1 && out.strides[axis_] == 1;
  const bool columns = nest.strides[0][inner] == 1 && nest.strides[1][inner] == 1 && nest.dims[inner] > 1;
  !rows&& columns&& out.dtype == DType::f32 ? run_columns(launch, nest) : run_rows(launch, nest);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_softmax(const Record& record) {
  const std::optional<SoftmaxParams> p = decode_params<SoftmaxParams>(record.params);
  if (!p || p->axis < 0 || p->axis >= kMaxRank)
    return fail(ErrorCode::plan_malformed, "softmax: the parameters of the record are not valid");
  if (record.program && (record.program->num_inputs != 1 || record.program->outputs.size() != 1))
    return fail(ErrorCode::plan_malformed, "softmax: the epilogue must have one input and one output");
  return std::make_unique<SoftmaxKernel>(p->axis, p->log, record.program);
}

}  // namespace lathe::cpu
