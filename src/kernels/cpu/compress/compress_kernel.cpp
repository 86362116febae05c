// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/compress/compress.h"

#include "kernels/cpu/gather/gather.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

// x, as a list where the axis is -1.
TensorArg flat_or_not(TensorArg x, int axis) {
  if (axis >= 0) return x;
  x.dims[0] = x.volume();
  x.strides[0] = 1;
  x.rank = 1;
  return x;
}

class ListKernel final : public Kernel {
 public:
  explicit ListKernel(int axis) : axis_(axis) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() != 2 || outputs.size() != 1 || axis_ >= inputs[0].rank || inputs[1].dtype != DType::boolean ||
        inputs[1].rank != 1 || outputs[0].dtype != DType::i64 || outputs[0].rank != 1 ||
        outputs[0].dims[0] != inputs[1].dims[0] + 1 || !is_dense(outputs[0]))
      return fail(ErrorCode::invalid_argument, "compress: these are not a tensor, a condition and a list");
    return {};
  }

  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override {
    const TensorArg& condition = launch.inputs[1];
    const int64_t length = condition.dims[0], step = condition.strides[0];
    const auto* selects = condition.as<uint8_t>();
    auto* const list = launch.outputs[0].as<int64_t>();
    int64_t count = 0;
    for (int64_t i = 0; i < length; ++i) {
      list[count] = i;
      count += selects[i * step] != 0;
    }
    list[length] = count;
    const int64_t extent = axis_ < 0 ? launch.inputs[0].volume() : launch.inputs[0].dims[axis_];
    if (count > 0 && list[count - 1] >= extent)
      return fail(ErrorCode::execution_failed,
                  "compress: the condition selects position {}, but the axis has {} elements", list[count - 1], extent);
    return {};
  }

 private:
  const int axis_;
};

class WriteKernel final : public Kernel {
 public:
  explicit WriteKernel(int axis) : axis_(axis) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() != 2 || outputs.size() != 1 || axis_ >= inputs[0].rank || inputs[0].dtype != outputs[0].dtype ||
        inputs[1].dtype != DType::i64 || inputs[1].rank != 1 || (axis_ < 0 && !is_dense(inputs[0])))
      return fail(ErrorCode::invalid_argument, "compress: these are not a tensor, a list and what it selects");
    const TensorArg x = flat_or_not(inputs[0], axis_);
    const int axis = axis_ < 0 ? 0 : axis_;
    if (outputs[0].rank != x.rank || !same_dims(without_axis(x, axis), without_axis(outputs[0], axis)) ||
        outputs[0].dims[axis] >= inputs[1].dims[0])
      return fail(ErrorCode::shape_mismatch, "compress: input, list and result do not fit along axis {}", axis_);
    return {};
  }

  void run(const Launch& launch) const override {
    const int axis = axis_ < 0 ? 0 : axis_;
    TensorArg list = launch.inputs[1];
    list.dims[0] = launch.outputs[0].dims[axis];
    gather_along_axis(flat_or_not(launch.inputs[0], axis_), list, launch.outputs[0], axis, launch.pool);
  }

 private:
  const int axis_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_compress(const Record& record) {
  const auto params = decode_params<CompressParams>(record.params);
  if (record.program || !params || params->axis < -1 || params->axis >= kMaxRank) return refuse_params("compress");
  if (params->writes) return std::make_unique<WriteKernel>(params->axis);
  return std::make_unique<ListKernel>(params->axis);
}

}  // namespace lathe::cpu
