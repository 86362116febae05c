// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/normalization/normalization.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/accumulate.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/program_block.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kColumnPiece = 128;       // most columns that one task normalizes side by side
constexpr int64_t kPieceBytes = 256 << 10;  // of x in one task: it is read three times, and should stay in L2
// Most rows whose statistics are found together, for each waits for sums, a root and divisions; and their elements,
// which should stay in the first cache.
constexpr int64_t kTogether = 8, kNear = 4096;
constexpr int64_t kGather = 256;  // elements of a strided row that are copied together at a time

// Operands of the loop nest.
enum Operand { kX, kMark, kY, kScale, kBias, kFirstExtra };

// A tensor of the shape of x, or broadcast to it, with its dimension 1 cut into groups and channels of a group.
TensorArg split_channels(TensorArg tensor, int rank, int64_t groups) {
  const int channel = 1 - (rank - tensor.rank);
  if (groups == 1 || channel < 0 || channel >= tensor.rank) return tensor;
  for (int d = tensor.rank; d > channel + 1; --d) {
    tensor.dims[d] = tensor.dims[d - 1];
    tensor.strides[d] = tensor.strides[d - 1];
  }
  ++tensor.rank;
  const bool whole = tensor.dims[channel] != 1;
  tensor.dims[channel + 1] = whole ? tensor.dims[channel] / groups : 1;
  tensor.strides[channel + 1] = tensor.strides[channel];
  tensor.dims[channel] = whole ? groups : 1;
  tensor.strides[channel] *= tensor.dims[channel + 1];
  return tensor;
}

// The walk over one task: a statistic belongs to all elements of the reduced loops, for each column if the innermost
// loop is not reduced.
struct Walk {
  LoopNest nest;
  bool columns_kept;  // each column has a mean of its own
  int64_t group = 1;  // columns that share a statistic
  int column_dim;
  int row_dim = -1;     // the innermost other reduced loop
  int outer[kMaxRank];  // the further reduced loops
  int outer_count = 0;
  int kept[kMaxRank];  // loops over tasks, but for the columns
  int kept_count = 0;
  int64_t rows = 1, columns, outer_total = 1, kept_total = 1;

  explicit Walk(const LoopNest& loops);
  void merge_groups();
  int64_t statistic_elements() const { return outer_total * rows * (columns_kept ? group : columns); }
  // Columns of one task: whole groups.
  int64_t piece_columns() const;
  int64_t row_stride(int k) const { return row_dim < 0 ? 0 : nest.strides[k][row_dim]; }
  int64_t column_stride(int k) const { return nest.strides[k][column_dim]; }
  // The offset of operand k at flat index i of the given loops. Nothing is called or divided where there is one at
  // most, which would take as long as a short row.
  int64_t offset(const int* dims, int count, int64_t i, int k) const {
    return count > 1 ? offset_in_several(dims, count, i, k) : count > 0 ? i * nest.strides[k][dims[0]] : 0;
  }
  int64_t offset_in_several(const int* dims, int count, int64_t i, int k) const;
  // Calls f(offset of operand k) for each row of a task.
  template <class F>
  void for_each_row(F&& f) const {
    for (int64_t i = 0; i < outer_total; ++i)
      for (int64_t row = 0; row < rows; ++row)
        f([&](int k) { return offset(outer, outer_count, i, k) + row * row_stride(k); });
  }
};

int64_t Walk::offset_in_several(const int* dims, int count, int64_t i, int k) const {
  int64_t sum = 0;
  for (int d = count - 1; d >= 0; --d) {
    sum += i % nest.dims[dims[d]] * nest.strides[k][dims[d]];
    i /= nest.dims[dims[d]];
  }
  return sum;
}

// Groups of a few contiguous channels, with pixels outside of them, are better taken as columns: short rows are slow.
void Walk::merge_groups() {
  const int inner = nest.rank - 1, groups = nest.rank - 2;
  if (groups < 1 || nest.dims[inner] > kColumnPiece) return;
  bool pixels = false;
  for (int d = 0; d < groups; ++d) pixels = pixels || nest.strides[kMark][d] == 0;
  if (!pixels || nest.strides[kMark][inner] != 0 || nest.strides[kMark][groups] == 0) return;
  for (int k = 0; k < nest.operands; ++k)
    if (k != kMark && nest.strides[k][groups] != nest.strides[k][inner] * nest.dims[inner]) return;
  group = nest.dims[inner];
  nest.dims[groups] *= group;
  for (int k = 0; k < nest.operands; ++k)
    if (k != kMark) nest.strides[k][groups] = nest.strides[k][inner];
  --nest.rank;
}

int64_t Walk::piece_columns() const {
  if (!columns_kept) return columns;
  const int64_t cached = kPieceBytes / static_cast<int64_t>(sizeof(float)) / (outer_total * rows);
  const int64_t width = std::clamp<int64_t>(cached, 32, kColumnPiece);
  return std::max(width / group, int64_t{1}) * group;
}

Walk::Walk(const LoopNest& loops) : nest(loops) {
  merge_groups();
  column_dim = nest.rank - 1;
  columns = nest.dims[column_dim];
  columns_kept = nest.strides[kMark][column_dim] != 0;
  for (int d = nest.rank - 2; d >= 0; --d) {
    if (nest.strides[kMark][d] != 0)
      kept[kept_count++] = d, kept_total *= nest.dims[d];
    else if (row_dim < 0)
      row_dim = d, rows = nest.dims[d];
    else
      outer[outer_count++] = d, outer_total *= nest.dims[d];
  }
  std::reverse(kept, kept + kept_count);
  std::reverse(outer, outer + outer_count);
}

class NormalizationKernel final : public Kernel {
 public:
  NormalizationKernel(const NormalizationParams& params, const Program* program)
      : params_(params), epilogue_(program ? BlockProgram(*program) : BlockProgram()) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int threads) const override {
    return scratch_stride() * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  // A task: pointers to its first elements, and the columns it covers.
  struct Task {
    float* data[kMaxNestOperands];
    int64_t columns;
    float* scratch;
  };
  size_t scratch_stride() const { return round_up(epilogue_.scratch_bytes(), 64); }
  size_t first_extra_input() const { return 1u + params_.has_scale + params_.has_bias; }
  void accumulate(const Walk& walk, const Task& task, Accumulation kind, const float* shifts, double* totals) const;
  void statistics(const Walk& walk, std::span<const Task> tasks, float* mean, float* rstd) const;
  void finish(const Walk& walk, const Task& task, DType type, const float* mean, const float* rstd) const;
  void normalize(const Walk& walk, const Task& task, const float* mean, const float* rstd) const;
  void run_epilogue(const Walk& walk, const Task& task) const;
  void normalize_to_levels(const Walk& walk, const Task& task, DType type, const float* mean, const float* rstd) const;
  LoopNest make_nest(const Launch& launch, float** data) const;

  const NormalizationParams params_;
  const BlockProgram epilogue_;
};

Result<> NormalizationKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const size_t expected = first_extra_input() + static_cast<size_t>(epilogue_.num_inputs()) - 1;
  if (inputs.size() != expected || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "normalization: {} inputs and {} outputs given, {} and 1 expected",
                inputs.size(), outputs.size(), expected);
  const TensorArg &x = inputs[0], &y = outputs[0];
  for (const TensorArg& tensor : inputs)
    if (tensor.dtype != DType::f32)
      return fail(ErrorCode::dtype_unsupported, "normalization: an operand is {}; only f32 is supported",
                  name_of(tensor.dtype));
  if (y.dtype != DType::f32 && (!is_byte_integer(y.dtype) || epilogue_.is_identity()))
    return fail(ErrorCode::dtype_unsupported, "normalization: the output is {}; only f32 and levels are supported",
                name_of(y.dtype));
  const int rank = x.rank + (params_.groups > 1);
  if (params_.groups > 1 && (x.rank < 2 || rank > kMaxRank || x.dims[1] % params_.groups != 0))
    return fail(ErrorCode::shape_mismatch, "normalization: {} groups do not divide the channels", params_.groups);
  if (x.rank != y.rank || !std::equal(x.dims, x.dims + x.rank, y.dims) || params_.axes >> rank != 0)
    return fail(ErrorCode::shape_mismatch, "normalization: input and output differ in shape, or lack an axis");
  for (const TensorArg& operand : inputs.subspan(1))
    if (!broadcasts_to(operand, x))
      return fail(ErrorCode::shape_mismatch, "normalization: an operand does not broadcast to the input's shape");
  return {};
}

constexpr float kOne = 1, kZero = 0;

// Loops over x in its memory order. The mark is a dense tensor over the dimensions that have a statistic each.
LoopNest NormalizationKernel::make_nest(const Launch& launch, float** data) const {
  const int rank = launch.inputs[0].rank;
  const TensorArg x = split_channels(launch.inputs[0], rank, params_.groups);
  TensorArg tensors[kMaxNestOperands];
  TensorArg &mark = tensors[kMark - 1], &y = tensors[kY - 1], &scale = tensors[kScale - 1], &bias = tensors[kBias - 1];
  mark = x;
  int64_t stride = 1;
  for (int d = x.rank - 1; d >= 0; --d) {
    const bool reduced = params_.axes >> d & 1;
    mark.strides[d] = reduced ? 0 : stride;
    if (!reduced) stride *= x.dims[d];
  }
  y = launch.outputs[0];
  scale.data = const_cast<float*>(&kOne);
  bias.data = const_cast<float*>(&kZero);
  if (params_.has_scale) scale = launch.inputs[1];
  if (params_.has_bias) bias = launch.inputs[1u + params_.has_scale];
  size_t count = kFirstExtra - 1;
  for (const TensorArg& extra : launch.inputs.subspan(first_extra_input())) tensors[count++] = extra;
  for (TensorArg* tensor = &y; tensor != tensors + count; ++tensor)
    *tensor = split_channels(*tensor, rank, params_.groups);
  data[0] = x.as<float>();
  for (size_t i = 0; i < count; ++i) data[i + 1] = tensors[i].as<float>();
  return make_loop_nest({&x, 1}, {tensors, count});
}

// Down the columns when each has a statistic, else over everything into totals[0].
void NormalizationKernel::accumulate(const Walk& walk, const Task& task, Accumulation kind, const float* shifts,
                                     double* totals) const {
  static const auto along_row = LATHE_ISA_SELECT(accumulate_row);
  static const auto down_columns = LATHE_ISA_SELECT(accumulate_columns);
  const int64_t step = walk.column_stride(kX);
  if (walk.columns_kept && step == 1) {
    float sums[kColumnPiece] = {};
    for (int64_t i = 0; i < walk.outer_total; ++i)
      down_columns(kind, sums, shifts, task.data[kX] + walk.offset(walk.outer, walk.outer_count, i, kX), walk.rows,
                   walk.row_stride(kX), task.columns);
    for (int64_t c = 0; c < task.columns; ++c) totals[c] = sums[c];
    return;
  }
  std::fill_n(totals, walk.columns_kept ? task.columns : 1, 0.0);
  walk.for_each_row([&](auto&& offset) {
    const float* row = task.data[kX] + offset(kX);
    if (walk.columns_kept) {
      for (int64_t c = 0; c < task.columns; ++c) totals[c] = along_row(kind, totals[c], row + c * step, 1, shifts[c]);
    } else if (step == 1) {
      totals[0] = along_row(kind, totals[0], row, task.columns, shifts[0]);
    } else {
      float gathered[kGather];
      for (int64_t c = 0; c < task.columns; c += kGather) {
        const int64_t count = std::min(kGather, task.columns - c);
        for (int64_t k = 0; k < count; ++k) gathered[k] = row[(c + k) * step];
        totals[0] = along_row(kind, totals[0], gathered, count, shifts[0]);
      }
    }
  });
}

// Gives each column the total of its group.
void share_in_groups(double* totals, int64_t columns, int64_t group) {
  for (int64_t first = 0; group > 1 && first < columns; first += group) {
    double sum = 0;
    for (int64_t c = first; c < first + group; ++c) sum += totals[c];
    std::fill_n(totals + first, group, sum);
  }
}

// Of several tasks, which have one each, or of one.
void NormalizationKernel::statistics(const Walk& walk, std::span<const Task> tasks, float* mean, float* rstd) const {
  const int64_t each = walk.columns_kept ? tasks[0].columns : 1, count = each * std::ssize(tasks);
  const auto n = static_cast<double>(walk.statistic_elements());
  double totals[kColumnPiece];
  const auto sum_up = [&](Accumulation kind) {
    for (int64_t t = 0; t < std::ssize(tasks); ++t)
      accumulate(walk, tasks[static_cast<size_t>(t)], kind, mean + t * each, totals + t * each);
    share_in_groups(totals, count, walk.group);
  };
  std::fill_n(mean, count, 0.0f);
  if (params_.subtract_mean) {
    sum_up(Accumulation::sum);
    for (int64_t c = 0; c < count; ++c) mean[c] = static_cast<float>(totals[c] / n);
  }
  sum_up(Accumulation::sum_squares);
  for (int64_t c = 0; c < count; ++c)
    rstd[c] = static_cast<float>(1 / std::sqrt(totals[c] / n + static_cast<double>(params_.epsilon)));
}

void NormalizationKernel::normalize(const Walk& walk, const Task& task, const float* mean, const float* rstd) const {
  static const auto row_function = LATHE_ISA_SELECT(normalize_row);
  const int64_t xs = walk.column_stride(kX), ys = walk.column_stride(kY);
  const int64_t ss = walk.column_stride(kScale), bs = walk.column_stride(kBias);
  const bool contiguous = xs == 1 && ys == 1 && (ss == 0 || ss == 1) && (bs == 0 || bs == 1);
  const int step = walk.columns_kept ? 1 : 0;
  walk.for_each_row([&](auto&& offset) {
    const auto at = [&](int k) { return task.data[k] + offset(k); };
    const float *x = at(kX), *scale = at(kScale), *bias = at(kBias);
    float* y = at(kY);
    if (contiguous) {
      row_function(x, y, task.columns, {mean, step}, {rstd, step}, {scale, static_cast<int>(ss)},
                   {bias, static_cast<int>(bs)});
    } else {
      for (int64_t c = 0; c < task.columns; ++c)
        y[c * ys] = (x[c * xs] - mean[c * step]) * rstd[c * step] * scale[c * ss] + bias[c * bs];
    }
  });
}

void NormalizationKernel::run_epilogue(const Walk& walk, const Task& task) const {
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  for (int64_t i = 0; i < walk.outer_total; ++i) {
    BlockInput inputs[kMaxProgramInputs];
    for (int k = 0; k < epilogue_.num_inputs(); ++k) {
      const int operand = k == 0 ? kY : kFirstExtra + k - 1;
      inputs[k] = {task.data[operand] + walk.offset(walk.outer, walk.outer_count, i, operand), walk.row_stride(operand),
                   walk.column_stride(operand)};
    }
    const BlockOutput output{const_cast<void*>(inputs[0].data), inputs[0].row_stride, inputs[0].column_stride};
    run_block(epilogue_, walk.rows, task.columns, inputs, &output, task.scratch);
  }
}

// A piece of a row at a time, which the program makes levels of.
void NormalizationKernel::normalize_to_levels(const Walk& walk, const Task& task, DType type, const float* mean,
                                              const float* rstd) const {
  static const auto row_function = LATHE_ISA_SELECT(normalize_row);
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  const int step = walk.columns_kept ? 1 : 0;
  const bool contiguous = walk.column_stride(kX) == 1 && walk.column_stride(kScale) <= 1 &&
                          walk.column_stride(kBias) <= 1 && walk.column_stride(kScale) >= 0 &&
                          walk.column_stride(kBias) >= 0;
  constexpr int64_t kPiece = 4 * kBlockFloats;
  float piece[kPiece];
  walk.for_each_row([&](auto&& offset_of_row) {
    for (int64_t c = 0; c < task.columns; c += kPiece) {
      const int64_t count = std::min(kPiece, task.columns - c);
      const auto offset = [&](int k) { return offset_of_row(k) + c * walk.column_stride(k); };
      const float *x = task.data[kX] + offset(kX), *scale = task.data[kScale] + offset(kScale),
                  *bias = task.data[kBias] + offset(kBias), *m = mean + c * step, *r = rstd + c * step;
      const int64_t xs = walk.column_stride(kX), ss = walk.column_stride(kScale), bs = walk.column_stride(kBias);
      if (contiguous)
        row_function(x, piece, count, {m, step}, {r, step}, {scale, static_cast<int>(ss)},
                     {bias, static_cast<int>(bs)});
      else
        for (int64_t k = 0; k < count; ++k)
          piece[k] = (x[k * xs] - m[k * step]) * r[k * step] * scale[k * ss] + bias[k * bs];
      BlockInput inputs[kMaxProgramInputs] = {{piece, 0, 1}};
      for (int k = 1; k < epilogue_.num_inputs(); ++k) {
        const int operand = kFirstExtra + k - 1;
        inputs[k] = {task.data[operand] + offset(operand), 0, walk.column_stride(operand)};
      }
      const BlockOutput output{element_at(task.data[kY], offset(kY), size_of(type)), 0, walk.column_stride(kY), type};
      run_block(epilogue_, 1, count, inputs, &output, task.scratch);
    }
  });
}

void NormalizationKernel::finish(const Walk& walk, const Task& task, DType type, const float* mean,
                                 const float* rstd) const {
  if (type != DType::f32) return normalize_to_levels(walk, task, type, mean, rstd);
  normalize(walk, task, mean, rstd);
  if (!epilogue_.is_identity()) run_epilogue(walk, task);
}

void NormalizationKernel::run(const Launch& launch) const {
  if (launch.outputs[0].volume() == 0) return;
  const DType type = launch.outputs[0].dtype;
  float* data[kMaxNestOperands];
  const Walk walk(make_nest(launch, data));
  const int64_t width = walk.piece_columns(), pieces = ceil_div(walk.columns, width);
  const int64_t work = walk.outer_total * walk.rows * std::min(width, walk.columns);
  constexpr int64_t kMinTaskElements = 10000;  // about 5 us
  const int64_t grain = std::max<int64_t>(1, kMinTaskElements / work);
  const int64_t together = walk.columns_kept ? 1 : std::clamp<int64_t>(kNear / work, 1, kTogether);
  launch.pool.parallel_for(walk.kept_total * pieces, grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin, count; unit < end; unit += count) {
      count = std::min(together, end - unit);
      Task tasks[kTogether];
      for (int64_t t = 0; t < count; ++t) {
        const int64_t kept = pieces == 1 ? unit + t : unit / pieces, first = (unit + t - kept * pieces) * width;
        Task& task = tasks[t];
        task.columns = std::min(walk.columns, first + width) - first;
        task.scratch = reinterpret_cast<float*>(launch.workspace + scratch_stride() * static_cast<size_t>(worker));
        for (int k = 0; k < walk.nest.operands; ++k)
          task.data[k] =
              element_at(data[k], walk.offset(walk.kept, walk.kept_count, kept, k) + first * walk.column_stride(k),
                         k == kY ? size_of(type) : sizeof(float));
      }
      float mean[kColumnPiece], rstd[kColumnPiece];
      statistics(walk, {tasks, static_cast<size_t>(count)}, mean, rstd);
      for (int64_t t = 0; t < count; ++t) finish(walk, tasks[t], type, mean + t, rstd + t);
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_normalization(const Record& record) {
  const auto params = decode_params<NormalizationParams>(record.params);
  if (!params || params->axes >> kMaxRank != 0 || params->groups < 1) return refuse_params("normalization");
  if (record.program && (record.program->num_inputs < 1 || record.program->outputs.size() != 1))
    return fail(ErrorCode::plan_malformed, "normalization: the epilogue must have an input and one output");
  return std::make_unique<NormalizationKernel>(*params, record.program);
}

}  // namespace lathe::cpu
