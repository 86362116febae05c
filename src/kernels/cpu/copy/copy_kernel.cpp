// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

// The part [begin, begin + size) of a tensor along `axis`.
TensorArg part_of(TensorArg tensor, int axis, int64_t begin, int64_t size) {
  tensor.data =
      static_cast<std::byte*>(tensor.data) + begin * tensor.strides[axis] * static_cast<int64_t>(size_of(tensor.dtype));
  tensor.dims[axis] = size;
  return tensor;
}

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const CopyParams& params) : params_(params) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override;

 private:
  Result<> check_blocks(const TensorArg& input, const TensorArg& output) const;
  void move_blocks(const Launch& launch) const;
  void set_diagonal(const Launch& launch) const;

  const CopyParams params_;
};

Result<> CopyKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const CopyMode mode = params_.mode;
  const size_t most = mode == CopyMode::reshape ? 2 : 1;
  if ((inputs.empty() && mode != CopyMode::fill) || inputs.size() > most || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "copy: {} inputs and {} outputs do not fit mode {}", inputs.size(),
                outputs.size(), static_cast<int64_t>(mode));
  if (mode == CopyMode::fill) return {};
  if (mode == CopyMode::eye) {
    if (outputs[0].rank != 2) return fail(ErrorCode::shape_mismatch, "copy: a diagonal of rank {}", outputs[0].rank);
    return {};
  }
  if (size_of(inputs[0].dtype) != size_of(outputs[0].dtype))
    return fail(ErrorCode::type_mismatch, "copy: {} and {} have different element sizes", name_of(inputs[0].dtype),
                name_of(outputs[0].dtype));
  if (mode == CopyMode::reshape) {
    if (inputs[0].volume() != outputs[0].volume())
      return fail(ErrorCode::shape_mismatch, "copy: {} elements to {}", inputs[0].volume(), outputs[0].volume());
    return {};
  }
  if (mode != CopyMode::copy) return check_blocks(inputs[0], outputs[0]);
  if (!broadcasts_to(inputs[0], outputs[0]))
    return fail(ErrorCode::shape_mismatch, "copy: the input does not broadcast to the output's shape");
  return {};
}

Result<> CopyKernel::check_blocks(const TensorArg& input, const TensorArg& output) const {
  const int64_t block = params_.block;
  const bool to_channels = params_.mode == CopyMode::to_channels;
  const TensorArg &channels = to_channels ? output : input, &pixels = to_channels ? input : output;
  if (input.rank != 4 || output.rank != 4 || channels.dims[0] != pixels.dims[0] ||
      channels.dims[1] != pixels.dims[1] * block * block || pixels.dims[2] != channels.dims[2] * block ||
      pixels.dims[3] != channels.dims[3] * block)
    return fail(ErrorCode::shape_mismatch, "copy: input and output do not fit blocks of {}", block);
  return {};
}

// Both sides as [n, row of the block, column of the block, c, h, w].
void CopyKernel::move_blocks(const Launch& launch) const {
  const int64_t block = params_.block;
  const bool to_channels = params_.mode == CopyMode::to_channels,
             channel_first = params_.mode == CopyMode::to_pixels_crd;
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
  const int64_t k = std::clamp(params_.k, -y.dims[0], y.dims[1]);
  TensorArg diagonal = k > 0 ? part_of(y, 1, k, y.dims[1] - k) : part_of(y, 0, -k, y.dims[0] + k);
  diagonal.rank = 1;
  diagonal.dims[0] = std::min(diagonal.dims[0], diagonal.dims[1]);
  diagonal.strides[0] += diagonal.strides[1];
  fill_tensor(diagonal, params_.bits, launch.pool);
}

void CopyKernel::run(const Launch& launch) const {
  switch (params_.mode) {
    case CopyMode::copy:
      return copy_tensor(launch.outputs[0], launch.inputs[0], launch.pool);
    case CopyMode::fill:
      return fill_tensor(launch.outputs[0], params_.bits, launch.pool);
    case CopyMode::eye:
      return set_diagonal(launch);
    case CopyMode::reshape:
      return copy_in_order(launch.outputs[0], launch.inputs[0], launch.pool);
    default:
      return move_blocks(launch);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_copy(const Record& record) {
  const auto params = decode_params<CopyParams>(record.params);
  if (record.program || !params || !is_one_of(params->mode, CopyMode::reshape) || params->block < 1 ||
      params->block > INT16_MAX)
    return refuse_params("copy");
  return std::make_unique<CopyKernel>(*params);
}

}  // namespace lathe::cpu
