// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/reduce_elements/reduce_elements.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/reduce/loops.h"
#include "kernels/cpu/reduce/reduce.h"

namespace lathe::cpu {
namespace {

using elementwise::kBlock;
using elementwise::kLaneBytes;
using elementwise::Lane;
using reduce::for_each_offset;
using reduce::Loops;
using reduce_elements::Number;

bool needs_doubles(Reduction op) {
  return op == Reduction::l2 || op == Reduction::log_sum || op == Reduction::log_sum_exp;
}

Number start_of(Accumulation kind, Lane lane, DType type) {
  Number number{};
  const bool lowest = kind == Accumulation::maximum;
  if (kind == Accumulation::product) {
    lane == Lane::f64 ? void(number.f64 = 1) : void(number.i64 = 1);
  } else if (kind != Accumulation::maximum && kind != Accumulation::minimum) {
    return number;
  } else if (lane == Lane::f64) {
    number.f64 = lowest ? -HUGE_VAL : HUGE_VAL;
  } else {
    dispatch(type, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T>)
        number.i64 = static_cast<int64_t>(lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
    });
  }
  return number;
}

class ReduceElementsKernel final : public Kernel {
 public:
  ReduceElementsKernel(Reduction op, uint32_t axes) : op_(op), axes_(axes) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override;

 private:
  // One run: the reduction of what lies at `data`, of one result or of `columns` that lie side by side.
  struct Task {
    const Loops& loops;
    const std::byte* data;
    DType type;
    Lane lane;
    int64_t columns;  // 0 = one result
  };

  void pass(const Task& task, Accumulation kind, const double* shifts, Number* totals) const;
  void reduce(const Task& task, Number* totals) const;
  void finish(Lane lane, int64_t count, double shift, Number& total) const;

  const Reduction op_;
  const uint32_t axes_;
};

Result<> ReduceElementsKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 1 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "reduce_elements: {} inputs and {} outputs given, 1 and 1 expected",
                inputs.size(), outputs.size());
  if (inputs[0].dtype != outputs[0].dtype)
    return fail(ErrorCode::type_mismatch, "reduce_elements: {} of {}", name_of(outputs[0].dtype),
                name_of(inputs[0].dtype));
  return reduce::check_dims(inputs[0], outputs[0], axes_);
}

void ReduceElementsKernel::pass(const Task& task, Accumulation kind, const double* shifts, Number* totals) const {
  static const auto load = LATHE_ISA_SELECT(load_elements);
  static const auto row = LATHE_ISA_SELECT(reduce_row);
  static const auto columns = LATHE_ISA_SELECT(reduce_columns);
  alignas(64) std::byte block[kBlock * kLaneBytes];
  const auto size = static_cast<int64_t>(size_of(task.type));
  const Number neutral = start_of(kind, task.lane, task.type);
  const Loops& loops = task.loops;
  std::fill_n(totals, std::max<int64_t>(task.columns, 1), neutral);
  if (task.columns) {
    for_each_offset(loops.reduced, loops.reduced_in, loops.reduced_rank, [&](int64_t offset) {
      columns(kind, task.lane, load(task.type, task.data + offset * size, 1, task.columns, task.lane, block),
              task.columns, shifts, totals);
    });
    return;
  }
  const int outer = std::max(loops.reduced_rank - 1, 0);
  const int64_t count = loops.reduced_rank ? loops.reduced[outer] : 1;
  const int64_t stride = loops.reduced_rank ? loops.reduced_in[outer] : 1;
  for_each_offset(loops.reduced, loops.reduced_in, outer, [&](int64_t offset) {
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t n = std::min<int64_t>(kBlock, count - i);
      const std::byte* from = task.data + (offset + i * stride) * size;
      row(kind, task.lane, load(task.type, from, stride, n, task.lane, block), n, neutral, shifts ? shifts[0] : 0,
          totals);
    }
  });
}

void ReduceElementsKernel::finish(Lane lane, int64_t count, double shift, Number& total) const {
  if (op_ == Reduction::mean && lane == Lane::f64)
    total.f64 /= static_cast<double>(count);
  else if (op_ == Reduction::mean && lane == Lane::u64)
    total.u64 = count ? total.u64 / static_cast<uint64_t>(count) : 0;
  else if (op_ == Reduction::mean)
    total.i64 = count ? total.i64 / count : 0;
  else if (op_ == Reduction::l2)
    total.f64 = std::sqrt(total.f64);
  else if (op_ == Reduction::log_sum)
    total.f64 = std::log(total.f64);
  else if (op_ == Reduction::log_sum_exp)
    total.f64 = std::log(total.f64) + shift;
}

void ReduceElementsKernel::reduce(const Task& task, Number* totals) const {
  const int64_t results = std::max<int64_t>(task.columns, 1);
  double shifts[kBlock] = {};
  if (op_ == Reduction::log_sum_exp) {  // of differences to the largest, so that nothing overflows
    pass(task, Accumulation::maximum, nullptr, totals);
    for (int64_t i = 0; i < results; ++i) shifts[i] = std::isfinite(totals[i].f64) ? totals[i].f64 : 0;
  }
  pass(task, reduce::accumulation_of(op_), shifts, totals);
  for (int64_t i = 0; i < results; ++i) finish(task.lane, task.loops.elements(), shifts[i], totals[i]);
}

void ReduceElementsKernel::run(const Launch& launch) const {
  static const auto store = LATHE_ISA_SELECT(store_elements);
  const TensorArg &in = launch.inputs[0], &out = launch.outputs[0];
  if (out.volume() == 0) return;
  const Loops loops(in, reduce::keep_dims(out, in, axes_), axes_);
  const Lane lane = is_floating(in.dtype) || needs_doubles(op_) ? Lane::f64
                    : in.dtype == DType::u64                    ? Lane::u64
                                                                : Lane::i64;
  const int inner = loops.columns ? loops.kept_rank - 1 : loops.kept_rank;  // loops over tasks
  const int64_t columns = loops.columns ? loops.kept[inner] : 1, pieces = ceil_div(columns, kBlock);
  const int64_t step = loops.columns ? loops.kept_out[inner] : 0, tasks = loops.results() / columns * pieces;
  const int64_t work = std::max<int64_t>(1, loops.elements()) * std::min<int64_t>(columns, kBlock);
  const auto size = static_cast<int64_t>(size_of(in.dtype));
  constexpr int64_t kMinTaskElements = 10000;  // about 5 us
  launch.pool.parallel_for(tasks, std::max<int64_t>(1, kMinTaskElements / work), [&](int64_t begin, int64_t end, int) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % pieces * kBlock, count = std::min<int64_t>(kBlock, columns - first);
      int64_t from = first, to = first * step, rest = unit / pieces;
      for (int d = inner - 1; d >= 0; --d) {
        from += rest % loops.kept[d] * loops.kept_in[d];
        to += rest % loops.kept[d] * loops.kept_out[d];
        rest /= loops.kept[d];
      }
      Number totals[kBlock];
      reduce({loops, in.as<std::byte>() + from * size, in.dtype, lane, loops.columns ? count : 0}, totals);
      store(lane, totals, count, out.dtype, out.as<std::byte>() + to * size, count == 1 ? 1 : step);
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_reduce_elements(const Record& record) {
  const auto params = decode_params<ReduceParams>(record.params);
  if (record.program || !params || !params->are_valid()) return refuse_params("reduce_elements");
  return std::make_unique<ReduceElementsKernel>(params->op, params->axes);
}

}  // namespace lathe::cpu
