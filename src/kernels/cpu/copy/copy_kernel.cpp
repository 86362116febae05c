// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu {
namespace {

bool same_shape(const TensorArg& a, const TensorArg& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

// The part [begin, begin + size) of a tensor along `axis`.
TensorArg part_of(TensorArg tensor, int axis, int64_t begin, int64_t size) {
  tensor.data =
      static_cast<std::byte*>(tensor.data) + begin * tensor.strides[axis] * static_cast<int64_t>(size_of(tensor.dtype));
  tensor.dims[axis] = size;
  return tensor;
}

class CopyKernel final : public Kernel {
 public:
  CopyKernel(CopyMode mode, std::span<const int64_t> params) : mode_(mode), params_(params.begin(), params.end()) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override;

 private:
  Result<> check_shapes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const;
  Result<> check_parts(const TensorArg& whole, std::span<const TensorArg> parts) const;
  void pad(const Launch& launch) const;
  int axis() const { return static_cast<int>(params_[0]); }

  const CopyMode mode_;
  const std::vector<int64_t> params_;  // without the mode
};

Result<> CopyKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const size_t least_inputs = mode_ == CopyMode::fill ? 0 : 1;
  const bool many_inputs = mode_ == CopyMode::concat, many_outputs = mode_ == CopyMode::split;
  if (inputs.size() < least_inputs || (inputs.size() > least_inputs && !many_inputs) || outputs.empty() ||
      (outputs.size() > 1 && !many_outputs))
    return fail(ErrorCode::invalid_argument, "copy: {} inputs and {} outputs do not fit mode {}", inputs.size(),
                outputs.size(), static_cast<int64_t>(mode_));
  for (const std::span<const TensorArg> tensors : {inputs, outputs})
    for (const TensorArg& tensor : tensors)
      if (size_of(tensor.dtype) != size_of(outputs[0].dtype))
        return fail(ErrorCode::type_mismatch, "copy: {} and {} have different element sizes", name_of(tensor.dtype),
                    name_of(outputs[0].dtype));
  return check_shapes(inputs, outputs);
}

Result<> CopyKernel::check_shapes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  switch (mode_) {
    case CopyMode::fill:
      return {};
    case CopyMode::concat:
      return check_parts(outputs[0], inputs);
    case CopyMode::split:
      return check_parts(inputs[0], outputs);
    case CopyMode::copy:
      if (!broadcasts_to(inputs[0], outputs[0]))
        return fail(ErrorCode::shape_mismatch, "copy: the input does not broadcast to the output's shape");
      return {};
    case CopyMode::pad:
      break;
  }
  const auto rank = static_cast<size_t>(outputs[0].rank);
  if (inputs[0].rank != outputs[0].rank || params_.size() != rank + 1)
    return fail(ErrorCode::shape_mismatch, "copy: padding rank {} to rank {} with {} offsets", inputs[0].rank, rank,
                params_.size() - 1);
  return {};
}

Result<> CopyKernel::check_parts(const TensorArg& whole, std::span<const TensorArg> parts) const {
  if (axis() >= whole.rank)
    return fail(ErrorCode::shape_mismatch, "copy: axis {} of a tensor of rank {}", axis(), whole.rank);
  int64_t sum = 0;
  for (const TensorArg& part : parts) {
    TensorArg expected = whole;
    expected.dims[axis()] = part.rank == whole.rank ? part.dims[axis()] : 0;
    if (!same_shape(expected, part))
      return fail(ErrorCode::shape_mismatch, "copy: a part differs from the whole in more than axis {}", axis());
    sum += part.dims[axis()];
  }
  if (sum != whole.dims[axis()])
    return fail(ErrorCode::shape_mismatch, "copy: the parts have {} elements along axis {}, the whole has {}", sum,
                axis(), whole.dims[axis()]);
  return {};
}

// Fills the borders one axis after the other, each inside what the earlier ones left; then copies the middle.
void CopyKernel::pad(const Launch& launch) const {
  const auto bits = static_cast<uint64_t>(params_[0]);
  TensorArg middle = launch.outputs[0], source = launch.inputs[0];
  for (int d = 0; d < middle.rank; ++d) {
    const int64_t begin = params_[static_cast<size_t>(d) + 1], size = middle.dims[d];
    const int64_t first = std::clamp<int64_t>(begin, 0, size);
    const int64_t last = std::clamp<int64_t>(begin + source.dims[d], first, size);
    fill_tensor(part_of(middle, d, 0, first), bits, launch.pool);
    fill_tensor(part_of(middle, d, last, size - last), bits, launch.pool);
    middle = part_of(middle, d, first, last - first);
    source = part_of(source, d, first - begin, last - first);
  }
  copy_tensor(middle, source, launch.pool);
}

void CopyKernel::run(const Launch& launch) const {
  switch (mode_) {
    case CopyMode::copy:
      return copy_tensor(launch.outputs[0], launch.inputs[0], launch.pool);
    case CopyMode::pad:
      return pad(launch);
    case CopyMode::fill:
      return fill_tensor(launch.outputs[0], static_cast<uint64_t>(params_[0]), launch.pool);
    case CopyMode::concat:
    case CopyMode::split:
      break;
  }
  const bool concat = mode_ == CopyMode::concat;
  const TensorArg& whole = concat ? launch.outputs[0] : launch.inputs[0];
  int64_t begin = 0;
  for (const TensorArg& part : concat ? launch.inputs : launch.outputs) {
    const int64_t size = part.dims[axis()];
    const TensorArg piece = part_of(whole, axis(), begin, size);
    concat ? copy_tensor(piece, part, launch.pool) : copy_tensor(part, piece, launch.pool);
    begin += size;
  }
}

bool params_fit(CopyMode mode, std::span<const int64_t> rest) {
  constexpr int64_t kMaxOffset = int64_t{1} << 40;
  switch (mode) {
    case CopyMode::copy:
      return rest.empty();
    case CopyMode::fill:
      return rest.size() == 1;
    case CopyMode::concat:
    case CopyMode::split:
      return rest.size() == 1 && rest[0] >= 0 && rest[0] < kMaxRank;
    case CopyMode::pad:
      return !rest.empty() && rest.size() <= kMaxRank + 1 &&
             std::all_of(rest.begin() + 1, rest.end(), [](int64_t x) { return x > -kMaxOffset && x < kMaxOffset; });
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_copy(const Record& record) {
  const CopyMode mode = record.params.empty() ? CopyMode::copy : static_cast<CopyMode>(record.params[0]);
  const std::span<const int64_t> rest = record.params.empty() ? record.params : record.params.subspan(1);
  if (record.program || !params_fit(mode, rest))
    return fail(ErrorCode::plan_malformed, "copy: the parameters of the record are not valid");
  return std::make_unique<CopyKernel>(mode, rest);
}

}  // namespace lathe::cpu
