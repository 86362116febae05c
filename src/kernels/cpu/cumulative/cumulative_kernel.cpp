// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/cumulative/cumulative.h"

#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

class CumulativeKernel final : public Kernel {
 public:
  explicit CumulativeKernel(cumulative::Scan how) : how_(how) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  void scan_rows(const Launch& launch, int axis) const;

  const cumulative::Scan how_;
};

Result<> CumulativeKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 2 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "cumulative: {} inputs and {} outputs given, 2 and 1 expected",
                inputs.size(), outputs.size());
  const TensorArg &x = inputs[0], &output = outputs[0];
  if (x.dtype == DType::boolean || output.dtype != x.dtype || !is_integer(inputs[1].dtype))
    return fail(ErrorCode::type_mismatch, "cumulative: {} of {} along an axis of {}", name_of(output.dtype),
                name_of(x.dtype), name_of(inputs[1].dtype));
  if (!same_dims(x, output) || inputs[1].volume() != 1)
    return fail(ErrorCode::shape_mismatch, "cumulative: input, axis and result do not fit");
  return {};
}

void CumulativeKernel::scan_rows(const Launch& launch, int axis) const {
  static const auto scan = LATHE_ISA_SELECT(scan_elements);
  const TensorArg &x = launch.inputs[0], &y = launch.outputs[0];
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  const TensorArg to = without_axis(y, axis), from = without_axis(x, axis);
  const LoopNest nest = make_loop_nest({&to, 1}, {&from, 1});
  const int inner = nest.rank - 1;
  // Of rows that lie one behind the other only a few go together, so that what they read stays in the cache; their sums
  // do not wait for each other, as those of floats would.
  const int64_t length = nest.dims[inner], extent = x.dims[axis];
  const int64_t side = std::min<int64_t>(
      length, x.strides[axis] < nest.strides[1][inner] ? (is_floating(x.dtype) ? 8 : 1) : cumulative::kSide);
  const int64_t pieces = ceil_div(length, side);
  constexpr int64_t kMinTaskElements = 16 << 10;
  launch.pool.parallel_for(
      to.volume() / length * pieces, kMinTaskElements / (side * extent) + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t offsets[2];
          nest.offsets(inner, i / pieces, offsets);
          const int64_t first = i % pieces * side, to_step = nest.strides[0][inner], from_step = nest.strides[1][inner];
          scan(x.dtype,
               {x.as<std::byte>() + (offsets[1] + first * from_step) * size,
                y.as<std::byte>() + (offsets[0] + first * to_step) * size, x.strides[axis], y.strides[axis], from_step,
                to_step, extent, std::min(side, length - first)},
               how_);
        }
      });
}

Result<> CumulativeKernel::try_run(const Launch& launch) const {
  const int64_t rank = launch.inputs[0].rank, axis = integer_at(launch.inputs[1], 0);
  if (axis < -rank || axis >= rank)
    return fail(ErrorCode::attribute_invalid, "axis is {}, but must lie in [{}, {}] for a tensor of rank {}", axis,
                -rank, rank - 1, rank);
  if (launch.outputs[0].volume() == 0) return {};
  scan_rows(launch, static_cast<int>(axis < 0 ? axis + rank : axis));
  return {};
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_cumulative(const Record& record) {
  const auto params = decode_params<cumulative::Scan>(record.params);
  if (record.program || !params) return refuse_params("cumulative");
  return std::make_unique<CumulativeKernel>(*params);
}

}  // namespace lathe::cpu
