// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/one_hot/one_hot.h"

#include <cstring>

#include "base/for_size.h"
#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

template <class T>
int64_t truncated(T value) {
  if constexpr (std::is_class_v<T>) {
    return truncated(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr T kBeyond = T(0x1p63);
    return value >= -kBeyond && value < kBeyond ? static_cast<int64_t>(value) : INT64_MIN;
  } else {
    return static_cast<int64_t>(value);
  }
}

class OneHotKernel final : public Kernel {
 public:
  explicit OneHotKernel(int axis) : axis_(axis) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override;

 private:
  template <class Index, class T>
  void set(const Launch& launch) const;

  const int axis_;
};

Result<> OneHotKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || inputs.size() > 3 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "one_hot: {} inputs and {} outputs given, 2 or 3 and 1 expected",
                inputs.size(), outputs.size());
  const TensorArg &indices = inputs[0], &values = inputs.back(), &output = outputs[0];
  if (indices.dtype == DType::boolean || values.dtype != output.dtype)
    return fail(ErrorCode::type_mismatch, "one_hot: {} of {} by {}", name_of(output.dtype), name_of(values.dtype),
                name_of(indices.dtype));
  if (axis_ >= output.rank || values.rank != 1 || values.dims[0] != 2 ||
      !same_dims(indices, without_axis(output, axis_)))
    return fail(ErrorCode::shape_mismatch, "one_hot: indices, values and result do not fit along axis {}", axis_);
  return {};
}

template <class Index, class T>
void OneHotKernel::set(const Launch& launch) const {
  const TensorArg &indices = launch.inputs[0], &values = launch.inputs.back(), &output = launch.outputs[0];
  const TensorArg to = without_axis(output, axis_);
  const LoopNest nest = make_loop_nest({&to, 1}, {&indices, 1});
  const int inner = nest.rank - 1;
  const T on = values.as<T>()[values.strides[0]];
  const int64_t depth = output.dims[axis_], along = output.strides[axis_];
  const int64_t to_step = nest.strides[0][inner], step = nest.strides[1][inner];
  constexpr int64_t kMinTaskElements = 8 << 10;
  launch.pool.parallel_for(indices.volume(), kMinTaskElements, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      int64_t offsets[2];
      nest.offsets(nest.rank, begin, offsets);
      const int64_t count = std::min(end - begin, nest.dims[inner] - begin % nest.dims[inner]);
      const Index* from = indices.as<Index>() + offsets[1];
      T* target = output.as<T>() + offsets[0];
      for (int64_t i = 0; i < count; ++i) {
        int64_t index = truncated(from[i * step]);
        if (index < 0) index += depth;
        if (index >= 0 && index < depth) target[i * to_step + index * along] = on;
      }
      begin += count;
    }
  });
}

void OneHotKernel::run(const Launch& launch) const {
  const TensorArg& output = launch.outputs[0];
  if (output.volume() == 0) return;
  uint64_t off = 0;
  std::memcpy(&off, launch.inputs.back().data, size_of(output.dtype));
  fill_tensor(output, off, launch.pool);
  dispatch(launch.inputs[0].dtype, [&](auto zero) {
    using Index = decltype(zero);
    if constexpr (!std::is_same_v<Index, bool>)
      for_size(size_of(output.dtype), [&](auto element) { set<Index, decltype(element)>(launch); });
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_one_hot(const Record& record) {
  const auto params = decode_params<OneHotParams>(record.params);
  if (record.program || !params || !is_axis(params->axis)) return refuse_params("one_hot");
  return std::make_unique<OneHotKernel>(params->axis);
}

}  // namespace lathe::cpu
