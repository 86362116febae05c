// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/tensor_scatter/tensor_scatter.h"

#include <algorithm>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

// `count` slices of a batch entry, from `first` on.
TensorArg slices(TensorArg tensor, int64_t entry, int axis, int64_t first, int64_t count) {
  const int64_t offset = entry * tensor.strides[0] + first * tensor.strides[axis];
  tensor.data = static_cast<std::byte*>(tensor.data) + offset * static_cast<int64_t>(size_of(tensor.dtype));
  tensor.dims[0] = 1;
  tensor.dims[axis] = count;
  return tensor;
}

class TensorScatterKernel final : public Kernel {
 public:
  explicit TensorScatterKernel(const TensorScatterParams& params) : axis_(params.axis), circular_(params.circular) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() < 2 || inputs.size() > 3 || outputs.size() != 1)
      return fail(ErrorCode::invalid_argument, "tensor_scatter: {} inputs and {} outputs given, 2 or 3 and 1 expected",
                  inputs.size(), outputs.size());
    const TensorArg &x = inputs[0], &update = inputs[1], &y = outputs[0];
    if (x.dtype != y.dtype || update.dtype != y.dtype || (inputs.size() > 2 && !is_integer(inputs[2].dtype)))
      return fail(ErrorCode::type_mismatch, "tensor_scatter: {} into {}, or indices that are no integers",
                  name_of(update.dtype), name_of(x.dtype));
    bool fits = axis_ < x.rank && same_dims(x, y) && update.rank == x.rank;
    for (int d = 0; fits && d < x.rank; ++d) fits = d == axis_ || update.dims[d] == x.dims[d];
    if (fits && inputs.size() > 2) fits = inputs[2].rank == 1 && inputs[2].dims[0] == x.dims[0];
    return fits ? Result<>() : fail(ErrorCode::shape_mismatch, "tensor_scatter: input, update and indices do not fit");
  }

  void run(const Launch& launch) const override { (void)try_run(launch); }

  Result<> try_run(const Launch& launch) const override {
    const TensorArg &x = launch.inputs[0], &update = launch.inputs[1], &y = launch.outputs[0];
    if (!circular_) LATHE_TRY(check_places(launch));
    if (y.data != x.data) copy_tensor(y, x, launch.pool);
    if (update.volume() == 0 || y.volume() == 0) return {};
    for (int64_t entry = 0; entry < x.dims[0]; ++entry) replace(launch, entry);
    return {};
  }

 private:
  static int64_t first_of(const Launch& launch, int64_t entry) {
    return launch.inputs.size() > 2 ? integer_at(launch.inputs[2], entry * launch.inputs[2].strides[0]) : 0;
  }

  // Before anything is written: that may be a cache which the application keeps.
  Result<> check_places(const Launch& launch) const {
    const TensorArg& update = launch.inputs[1];
    const int64_t count = update.dims[axis_], extent = launch.outputs[0].dims[axis_];
    for (int64_t entry = 0; update.volume() > 0 && entry < update.dims[0]; ++entry)
      if (const int64_t first = first_of(launch, entry); first < 0 || first > extent - count)
        return fail(ErrorCode::execution_failed, "tensor_scatter: {} indices from {} on are outside [0, {}) of axis {}",
                    count, first, extent, axis_);
    return {};
  }

  void replace(const Launch& launch, int64_t entry) const {
    const TensorArg &update = launch.inputs[1], &y = launch.outputs[0];
    const int64_t extent = y.dims[axis_];
    const int64_t skipped = std::max<int64_t>(update.dims[axis_] - extent, 0);  // those behind them are written last
    const int64_t count = update.dims[axis_] - skipped;
    const int64_t first = ((first_of(launch, entry) % extent + skipped) % extent + extent) % extent;
    const int64_t ahead = std::min(count, extent - first);
    copy_tensor(slices(y, entry, axis_, first, ahead), slices(update, entry, axis_, skipped, ahead), launch.pool);
    if (ahead < count)
      copy_tensor(slices(y, entry, axis_, 0, count - ahead),
                  slices(update, entry, axis_, skipped + ahead, count - ahead), launch.pool);
  }

  const int axis_;
  const bool circular_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_tensor_scatter(const Record& record) {
  const auto params = decode_params<TensorScatterParams>(record.params);
  if (record.program || !params || !is_axis(params->axis) || params->axis == 0) return refuse_params("tensor_scatter");
  return std::make_unique<TensorScatterKernel>(*params);
}

}  // namespace lathe::cpu
