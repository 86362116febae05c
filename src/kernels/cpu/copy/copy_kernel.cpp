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
  Result<> check_blocks(const TensorArg& input, const TensorArg& output) const;
  void pad(const Launch& launch) const;
  void move_blocks(const Launch& launch) const;
  void set_diagonal(const Launch& launch) const;
  int axis() const { return static_cast<int>(params_[0]); }

  const CopyMode mode_;
  const std::vector<int64_t> params_;  // without the mode
};

Result<> CopyKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const bool unread = mode_ == CopyMode::fill || mode_ == CopyMode::eye;
  const bool many_inputs = mode_ == CopyMode::concat, many_outputs = mode_ == CopyMode::split;
  if ((inputs.empty() && mode_ != CopyMode::fill) || (inputs.size() > 1 && !many_inputs) || outputs.empty() ||
      (outputs.size() > 1 && !many_outputs))
    return fail(ErrorCode::invalid_argument, "copy: {} inputs and {} outputs do not fit mode {}", inputs.size(),
                outputs.size(), static_cast<int64_t>(mode_));
  for (const std::span<const TensorArg> tensors : {unread ? outputs : inputs, outputs})
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
    case CopyMode::eye:
      if (outputs[0].rank != 2) return fail(ErrorCode::shape_mismatch, "copy: a diagonal of rank {}", outputs[0].rank);
      return {};
    case CopyMode::blocks:
      return check_blocks(inputs[0], outputs[0]);
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

Result<> CopyKernel::check_blocks(const TensorArg& input, const TensorArg& output) const {
  const int64_t block = params_[0];
  const TensorArg &channels = params_[1] == 2 ? output : input, &pixels = params_[1] == 2 ? input : output;
  if (input.rank != 4 || output.rank != 4 || channels.dims[0] != pixels.dims[0] ||
      channels.dims[1] != pixels.dims[1] * block * block || pixels.dims[2] != channels.dims[2] * block ||
      pixels.dims[3] != channels.dims[3] * block)
    return fail(ErrorCode::shape_mismatch, "copy: input and output do not fit blocks of {}", block);
  return {};
}

// Both sides as [n, row of the block, column of the block, c, h, w].
void CopyKernel::move_blocks(const Launch& launch) const {
  const int64_t block = params_[0];
  const bool to_channels = params_[1] == 2, channel_first = params_[1] == 1;
  TensorArg channels = to_channels ? launch.outputs[0] : launch.inputs[0];
  TensorArg pixels = to_channels ? launch.inputs[0] : launch.outputs[0];
  const int64_t count = pixels.dims[1], step = channels.strides[1];
  const int64_t dims[] = {channels.dims[0], block, block, count, channels.dims[2], channels.dims[3]};
  const int64_t of_channels[] = {channels.strides[0],
                                 step * block * (channel_first ? 1 : count),
                                 step * (channel_first ? 1 : count),
                                 step * (channel_first ? block * block : 1),
                                 channels.strides[2],
                                 channels.strides[3]};
  const int64_t of_pixels[] = {pixels.strides[0], pixels.strides[2],         pixels.strides[3],
                               pixels.strides[1], pixels.strides[2] * block, pixels.strides[3] * block};
  const auto seen = [&](TensorArg& tensor, const int64_t* strides) {
    tensor.rank = 6;
    std::copy_n(dims, 6, tensor.dims);
    std::copy_n(strides, 6, tensor.strides);
  };
  seen(channels, of_channels);
  seen(pixels, of_pixels);
  to_channels ? copy_tensor(channels, pixels, launch.pool) : copy_tensor(pixels, channels, launch.pool);
}

void CopyKernel::set_diagonal(const Launch& launch) const {
  const TensorArg& y = launch.outputs[0];
  fill_tensor(y, 0, launch.pool);
  const int64_t k = std::clamp(params_[1], -y.dims[0], y.dims[1]);
  TensorArg diagonal = k > 0 ? part_of(y, 1, k, y.dims[1] - k) : part_of(y, 0, -k, y.dims[0] + k);
  diagonal.rank = 1;
  diagonal.dims[0] = std::min(diagonal.dims[0], diagonal.dims[1]);
  diagonal.strides[0] += diagonal.strides[1];
  fill_tensor(diagonal, static_cast<uint64_t>(params_[0]), launch.pool);
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
    case CopyMode::blocks:
      return move_blocks(launch);
    case CopyMode::eye:
      return set_diagonal(launch);
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
    case CopyMode::blocks:
      return rest.size() == 2 && rest[0] > 0 && rest[0] <= INT16_MAX && rest[1] >= 0 && rest[1] <= 2;
    case CopyMode::eye:
      return rest.size() == 2;
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
