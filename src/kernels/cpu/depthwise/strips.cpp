// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/depthwise/strips.h"

#include <algorithm>

#include "base/divide.h"

namespace lathe::cpu::depthwise {

Strips::Strips(const Shape& shape, const DepthwiseConfig& config, const Launch& launch, const BoundEpilogue& epilogue)
    : config_(config), x_(launch.inputs[0]), out_arg_(launch.outputs[0]), epilogue_(epilogue) {
  const TensorArg& out = launch.outputs[0];
  const auto operands = launch.inputs.subspan(2);
  batch_ = x_.dims[0];
  const int missing = 3 - shape.spatial;
  for (int d = missing; d < 3; ++d) {
    in_[d] = x_.dims[2 + d - missing];
    in_stride_[d] = x_.strides[2 + d - missing];
    out_[d] = out.dims[2 + d - missing];
  }
  shape_ = with_padding(shape, in_, out_);
  per_row_ = ceil_div(out_[2], config.pixels);
  map_.streams = 1 + epilogue.count;
  map_.add_dim(batch_);
  for (int64_t size : out_) map_.add_dim(size);
  for (int d = 0; d < out.rank; ++d) {
    if (d == 1) continue;
    const int dim = d == 0 ? 0 : d - 1 + missing;
    map_.set_stride(0, dim, out.strides[d]);
    for (int i = 0; i < epilogue.count; ++i) map_.set_stride(1 + i, dim, broadcast_stride(operands[i], d));
  }
  map_.collapse();
}

void Strips::run(const Strip& common, StripFunction function, ThreadPool& pool) const {
  Strip strip = common;
  strip.shape = &shape_;
  strip.in = in_;
  strip.in_stride = in_stride_;
  strip.last_channel = shape_.channels;
  const int64_t count = batch_ * out_[0] * out_[1] * per_row_;
  // About 5 us of work: a product costs some 0.1 ns here, moving data included.
  const int64_t products = out_arg_.volume() * (shape_.volume() + 8);
  const bool split = products > 100'000;
  const int64_t unit = strip.ordered ? kMaxTileColumns : 16;  // ordered weights are read in whole blocks
  const int64_t blocks = ceil_div(shape_.channels, unit);
  if (config_.split_channels && split)
    return pool.parallel_for(blocks, 1, [&](int64_t begin, int64_t end, int) {
      Strip own = strip;
      own.first_channel = begin * unit;
      own.last_channel = std::min(end * unit, shape_.channels);
      run(own, function, 0, count);
    });
  pool.parallel_for(count, split ? 1 : count,
                    [&](int64_t begin, int64_t end, int) { run(strip, function, begin, end); });
}

// Divisions take as long as a short strip: there are some for each row of them.
void Strips::run(Strip strip, StripFunction function, int64_t first, int64_t last) const {
  TileRows where;
  strip.where = &where;
  strip.out_step = out_arg_.strides[out_arg_.rank - 1] * static_cast<int64_t>(size_of(out_arg_.dtype));
  const size_t out_size = size_of(out_arg_.dtype);
  for (int64_t s = first; s < last;) {
    const int64_t row = s / per_row_, piece = s - row * per_row_, next = std::min(last, s + per_row_ - piece);
    const int64_t plane = row / out_[1], h = row % out_[1], d = plane % out_[0], n = plane / out_[0];
    strip.x = element_at(static_cast<const void*>(x_.data), n * x_.strides[0], size_of(x_.dtype));
    strip.corner = {d * shape_.stride[0] - shape_.pad[0], h * shape_.stride[1] - shape_.pad[1], 0};
    int64_t begin = out_[2] * piece / per_row_;
    for (; s < next; ++s) {
      const int64_t end = out_[2] * (s + 1 - row * per_row_) / per_row_;
      strip.corner[2] = begin * shape_.stride[2] - shape_.pad[2];
      strip.pixels = static_cast<int>(end - begin);
      map_.fill(row * out_[2] + begin, std::min(strip.pixels, kMaxPixels), [&](int stream, int pixel, int64_t offset) {
        if (stream == 0)
          where.out[pixel] = element_at(out_arg_.data, offset, out_size);
        else if (const EpilogueOperand& operand = epilogue_.operands[stream - 1]; operand.varies_by_row)
          where.operand[stream - 1][pixel] = element_at(static_cast<const void*>(operand.data), offset, operand.size);
      });
      function(strip);
      begin = end;
    }
  }
}

}  // namespace lathe::cpu::depthwise
