// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/arg_reduce/arg_reduce.h"

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/order_keys.h"
#include "kernels/cpu/without_axis.h"
#include "shape/expr.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kBlock = 256;

struct Choice {
  KeyOrder order;
  bool last;
};

// Elements along an axis.
struct Row {
  DType type;
  const std::byte* first;
  int64_t stride, extent;

  const void* at(int64_t i) const { return first + i * stride * static_cast<int64_t>(size_of(type)); }
};

// Finds the block that holds the best key first, and then the key in it: most blocks are only searched for their
// greatest key, which needs no positions.
template <class Key>
int64_t find(const Row& row, const Choice& choice) {
  static const auto order_keys = LATHE_ISA_SELECT(order_keys);
  static const auto greatest_key = LATHE_ISA_SELECT(greatest_key);
  alignas(64) Key keys[kBlock];
  int64_t best = 0, where = 0, loaded = 0;
  const auto load = [&](int64_t begin) {
    loaded = begin;
    const int64_t count = std::min(kBlock, row.extent - begin);
    order_keys(row.type, row.at(begin), row.stride, count, choice.order, keys);
    return count;
  };
  for (int64_t begin = 0; begin < row.extent; begin += kBlock) {
    const int64_t greatest = greatest_key(sizeof(Key) == 8, keys, load(begin));
    if (begin > 0 && (choice.last ? greatest < best : greatest <= best)) continue;
    best = greatest;
    where = begin;
  }
  const int64_t count = loaded == where ? std::min(kBlock, row.extent - where) : load(where);
  int64_t i = choice.last ? count - 1 : 0;
  while (keys[i] != best) i += choice.last ? -1 : 1;
  return where + i;
}

// Rows side by side, `step` apart.
template <class Key>
void find_several(const Row& first, int64_t step, int64_t rows, const Choice& choice, int64_t* to, int64_t to_step) {
  static const auto order_keys = LATHE_ISA_SELECT(order_keys);
  static const auto keep_greater = LATHE_ISA_SELECT(keep_greater);
  alignas(64) Key keys[kBlock], best[kBlock], positions[kBlock] = {};
  order_keys(first.type, first.first, step, rows, choice.order, best);
  for (int64_t i = 1; i < first.extent; ++i) {
    order_keys(first.type, first.at(i), step, rows, choice.order, keys);
    keep_greater(sizeof(Key) == 8, keys, rows, i, choice.last, best, positions);
  }
  for (int64_t r = 0; r < rows; ++r) to[r * to_step] = positions[r];
}

class ArgReduceKernel final : public Kernel {
 public:
  ArgReduceKernel(int axis, bool largest, bool last) : axis_(axis), choice_{{largest, true}, last} {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override {
    if (launch.outputs[0].volume() == 0) return;
    has_wide_keys(launch.inputs[0].dtype) ? reduce<int64_t>(launch) : reduce<int32_t>(launch);
  }

 private:
  TensorArg kept(const TensorArg& output, const TensorArg& x) const {
    return output.rank == x.rank ? without_axis(output, axis_) : output;
  }
  template <class Key>
  void reduce(const Launch& launch) const;

  const int axis_;
  const Choice choice_;
};

Result<> ArgReduceKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 1 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "arg_reduce: {} inputs and {} outputs given, 1 and 1 expected",
                inputs.size(), outputs.size());
  const TensorArg &x = inputs[0], &output = outputs[0];
  if (x.dtype == DType::boolean || output.dtype != DType::i64)
    return fail(ErrorCode::type_mismatch, "arg_reduce: {} of {}", name_of(output.dtype), name_of(x.dtype));
  const bool keeps = output.rank == x.rank;
  if (axis_ >= x.rank || (keeps && output.dims[axis_] != 1) || (!keeps && output.rank != x.rank - 1) ||
      !same_dims(kept(output, x), without_axis(x, axis_)) || x.dims[axis_] > INT32_MAX)
    return fail(ErrorCode::shape_mismatch, "arg_reduce: input and result do not fit along axis {}", axis_);
  if (x.dims[axis_] == 0)
    return fail(ErrorCode::shape_mismatch, "input of shape {} is empty along axis {}, so that no element is the {}",
                to_string(to_shape(Dims(x.dims, x.dims + x.rank))), axis_,
                choice_.order.largest ? "largest" : "smallest");
  return {};
}

template <class Key>
void ArgReduceKernel::reduce(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], output = kept(launch.outputs[0], x), rows = without_axis(x, axis_);
  const LoopNest nest = make_loop_nest({&output, 1}, {&rows, 1});
  const int inner = nest.rank - 1;
  const int64_t length = nest.dims[inner], step = nest.strides[1][inner], extent = x.dims[axis_];
  // Rows that lie side by side are searched together.
  constexpr int64_t kFew = 8;
  const int64_t side = x.strides[axis_] <= step || length < kFew ? 1 : std::min(kBlock, length);
  const int64_t pieces = ceil_div(length, side);
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  constexpr int64_t kMinTaskElements = 32 << 10;
  launch.pool.parallel_for(
      output.volume() / length * pieces, kMinTaskElements / (side * extent) + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t offsets[2];
          nest.offsets(inner, i / pieces, offsets);
          const int64_t first = i % pieces * side;
          int64_t* to = output.as<int64_t>() + offsets[0] + first * nest.strides[0][inner];
          const Row row{x.dtype, x.as<std::byte>() + (offsets[1] + first * step) * size, x.strides[axis_], extent};
          if (side == 1)
            *to = find<Key>(row, choice_);
          else
            find_several<Key>(row, step, std::min(side, length - first), choice_, to, nest.strides[0][inner]);
        }
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_arg_reduce(const Record& record) {
  const auto params = decode_params<ArgReduceParams>(record.params);
  if (record.program || !params || !is_axis(params->axis)) return refuse_params("arg_reduce");
  return std::make_unique<ArgReduceKernel>(params->axis, params->largest, params->last);
}

}  // namespace lathe::cpu
