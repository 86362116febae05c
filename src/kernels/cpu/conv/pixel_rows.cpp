// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/pixel_rows.h"

#include <algorithm>
#include <cstring>

#include "base/divide.h"

namespace lathe::cpu::conv {

using gemm::Needs;
using gemm::Tap;
using gemm::TileScratch;
using gemm::TileTaps;

namespace {

// Kernel position p, D H W.
std::array<int64_t, 3> position(const ConvShape& shape, int64_t p) {
  return {p / (shape.kernel[1] * shape.kernel[2]), p / shape.kernel[2] % shape.kernel[1], p % shape.kernel[2]};
}

bool inside(int64_t i, int64_t size) { return static_cast<uint64_t>(i) < static_cast<uint64_t>(size); }

}  // namespace

bool Geometry::padded() const {
  for (int d = 0; d < 3; ++d)
    if (shape.pad[d] > 0 ||
        (out[d] - 1) * shape.stride[d] + (shape.kernel[d] - 1) * shape.dilation[d] - shape.pad[d] >= in[d])
      return true;
  return false;
}

gemm::RowMap<1> Geometry::first_taps() const {
  gemm::RowMap<1> map;
  map.streams = 1;
  map.add_dim(batch);
  map.set_stride(0, 0, batch_stride);
  for (int d = 0; d < 3; ++d) {
    map.add_dim(out[d]);
    map.set_stride(0, 1 + d, in_stride[d] * shape.stride[d]);
  }
  map.collapse();
  return map;
}

Geometry geometry_of(const ConvShape& shape, const TensorArg& x, const TensorArg& out) {
  Geometry g;
  g.batch = x.dims[0];
  g.batch_stride = x.strides[0];
  g.channel_stride = x.strides[1];
  const int missing = 3 - shape.spatial;
  for (int d = missing; d < 3; ++d) {
    g.in[d] = x.dims[2 + d - missing];
    g.out[d] = out.dims[2 + d - missing];
    g.in_stride[d] = x.strides[2 + d - missing];
  }
  g.shape = with_padding(shape, g.in, g.out);
  return g;
}

bool are_weights(const ConvShape& shape, const TensorArg& weights, int64_t group_inputs) {
  bool fits =
      weights.rank == 2 + shape.spatial && weights.dims[0] == shape.out_channels && weights.dims[1] == group_inputs;
  for (int d = 0; fits && d < shape.spatial; ++d) fits = weights.dims[2 + d] == shape.kernel[3 - shape.spatial + d];
  return fits;
}

int64_t tap_offset(const ConvShape& shape, const TensorArg& weights, int64_t tap) {
  const auto at = position(shape, tap);
  int64_t offset = 0;
  for (int d = 0; d < shape.spatial; ++d) offset += at[3 - shape.spatial + d] * weights.strides[2 + d];
  return offset;
}

Needs needs_of(const ConvShape& shape, const ConvConfig& config) {
  if (config.algorithm == Algorithm::planar) {
    const int64_t taps = shape.in_channels * shape.kernel[0] * shape.kernel[1];
    return {taps, taps, taps * shape.kernel[2] * kMaxTileRows};
  }
  const int64_t depth = shape.group_inputs(), block = config.blocking.k_block;
  const int64_t segments = block && depth > block ? ceil_div(depth, block) : 1;
  return {shape.volume(), shape.volume() * segments, 0};
}

void write_taps(const Geometry& g, const ConvConfig& config, Tap* taps) {
  const ConvShape& shape = g.shape;
  const Needs needs = needs_of(shape, config);
  if (config.algorithm == Algorithm::planar) {
    const int64_t per_channel = shape.kernel[0] * shape.kernel[1];
    for (int64_t t = 0; t < needs.taps; ++t) {
      const auto at = position(shape, t % per_channel * shape.kernel[2]);
      taps[t] = {t / per_channel * g.channel_stride + at[0] * shape.dilation[0] * g.in_stride[0] +
                     at[1] * shape.dilation[1] * g.in_stride[1],
                 t * shape.kernel[2], static_cast<int32_t>(shape.kernel[2]), 0};
    }
    return;
  }
  const int64_t depth = shape.group_inputs(), segments = needs.taps / needs.lists;
  const int64_t block = segments == 1 ? depth : config.blocking.k_block;
  for (int64_t t = 0; t < needs.taps; ++t) {
    const int64_t p = t / segments, c = t % segments * block;
    const auto at = position(shape, p);
    int64_t offset = c;
    for (int d = 0; d < 3; ++d) offset += at[d] * shape.dilation[d] * g.in_stride[d];
    taps[t] = {offset, p * depth + c, static_cast<int32_t>(std::min(block, depth - c)), 0};
  }
}

OutputRows::OutputRows(const Geometry& geometry, const TensorArg& out, const BoundEpilogue& epilogue,
                       std::span<const TensorArg> operands)
    : out_(out.data), out_size_(size_of(out.dtype)), epilogue_(epilogue) {
  for (int i = 0; i < epilogue.count; ++i)
    if (epilogue.operands[i].varies_by_row) varying_[map_.streams++] = i;
  ++map_.streams;
  map_.add_dim(geometry.batch);
  for (int64_t size : geometry.out) map_.add_dim(size);
  const int missing = 3 - geometry.shape.spatial;
  for (int d = 0; d < out.rank; ++d) {
    if (d == 1) continue;
    const int dim = d == 0 ? 0 : d - 1 + missing;
    map_.set_stride(0, dim, out.strides[d]);
    for (int s = 1; s < map_.streams; ++s)
      map_.set_stride(s, dim, broadcast_stride(operands[static_cast<size_t>(varying_[s - 1])], d));
  }
  map_.collapse();
}

void OutputRows::fill(int64_t first, int count, int at, TileRows& where) const {
  // Alone in its loop, the usual case is a few instructions a row.
  if (map_.streams == 1)
    return map_.fill(first, count,
                     [out = out_, to = where.out + at, size = static_cast<int64_t>(out_size_)](
                         int, int row, int64_t offset) { to[row] = element_at(out, offset, size); });
  map_.fill(first, count, [&](int stream, int row, int64_t offset) {
    if (stream == 0) {
      where.out[at + row] = element_at(out_, offset, out_size_);
    } else {
      const EpilogueOperand& operand = epilogue_.operands[varying_[stream - 1]];
      where.operand[varying_[stream - 1]][at + row] = element_at(operand.data, offset, operand.size);
    }
  });
}

void OutputRows::skip(float* unused, int begin, int end, TileRows& where) const {
  std::fill(where.out + begin, where.out + end, unused);
  for (int s = 1; s < map_.streams; ++s) {
    auto& rows = where.operand[varying_[s - 1]];
    std::fill(rows + begin, rows + end, epilogue_.operands[varying_[s - 1]].data);
  }
}

PixelRows::PixelRows(const Geometry& geometry, const ConvConfig& config, const Needs& needs, const Tap* taps,
                     const float* zeros, const float* x, const OutputRows& out)
    : geometry_(geometry),
      planar_(config.algorithm == Algorithm::planar),
      contiguous_(geometry.contiguous()),
      needs_(needs),
      taps_(taps),
      zeros_(zeros),
      x_(x),
      out_(out),
      x_map_(geometry.first_taps()) {
  const ConvShape& shape = geometry.shape;
  for (int d = 0; d < 3; ++d) {
    x_ -= shape.pad[d] * geometry.in_stride[d];
    inner_begin_[d] = ceil_div(shape.pad[d], shape.stride[d]);
    const int64_t last = geometry.in[d] - 1 - (shape.kernel[d] - 1) * shape.dilation[d] + shape.pad[d];
    inner_end_[d] = last < 0 ? 0 : last / shape.stride[d] + 1;
  }
}

// True when every tap of every pixel lies inside of x.
bool PixelRows::find_pixels(int64_t first, Pixels& pixels) const {
  const Geometry& g = geometry_;
  const ConvShape& shape = g.shape;
  std::array<int64_t, 3> at;
  at[2] = first % g.out[2];
  first /= g.out[2];
  at[1] = first % g.out[1];
  first /= g.out[1];
  at[0] = first % g.out[0];
  int64_t n = first / g.out[0];
  bool all_inside = true;
  const int64_t step = shape.stride[2] * g.in_stride[2];
  for (int r = 0; r < pixels.count;) {
    // The pixels that share an output row.
    const int run = static_cast<int>(std::min<int64_t>(pixels.count - r, g.out[2] - at[2]));
    for (int d = 0; d < 3; ++d)
      all_inside = all_inside && at[d] >= inner_begin_[d] && at[d] + (d == 2 ? run : 1) <= inner_end_[d];
    const float* base = x_ + n * g.batch_stride;
    std::array<int64_t, 3> corner;
    for (int d = 0; d < 3; ++d) {
      base += at[d] * shape.stride[d] * g.in_stride[d];
      corner[d] = at[d] * shape.stride[d] - shape.pad[d];
    }
    for (int i = 0; i < run; ++i, ++r, base += step, corner[2] += shape.stride[2]) {
      pixels.base[r] = base;
      pixels.corner[r] = corner;
    }
    at[2] = 0;
    if (++at[1] < g.out[1]) continue;
    at[1] = 0;
    if (++at[0] < g.out[0]) continue;
    at[0] = 0;
    ++n;
  }
  return all_inside;
}

TileTaps PixelRows::fill(int64_t first, int count, TileScratch& scratch) const {
  out_.fill(first, count, 0, scratch.where);
  if (contiguous_) {
    x_map_.fill(first, count, [&](int, int row, int64_t offset) { scratch.a_rows[row] = x_ + offset; });
    return {scratch.a_rows, taps_};
  }
  Pixels pixels;
  pixels.count = count;
  if (find_pixels(first, pixels)) {
    std::copy(pixels.base, pixels.base + count, scratch.a_rows);
    return {scratch.a_rows, taps_};
  }
  if (planar_)
    list_planar(pixels, scratch);
  else
    list_direct(pixels, scratch);
  return {scratch.a_rows, scratch.taps};
}

// Whether the kernel row (d, h) of each pixel lies inside of x; true if any does.
bool PixelRows::rows_inside(const Pixels& pixels, int64_t d, int64_t h, bool (&result)[kMaxTileRows]) const {
  const auto& dilation = geometry_.shape.dilation;
  bool any = false;
  for (int r = 0; r < pixels.count; ++r) {
    result[r] = inside(pixels.corner[r][0] + d * dilation[0], geometry_.in[0]) &&
                inside(pixels.corner[r][1] + h * dilation[1], geometry_.in[1]);
    any |= result[r];
  }
  return any;
}

// Rows of each tap; zeros for taps outside of x. Taps that are outside for all pixels are skipped.
void PixelRows::list_direct(const Pixels& pixels, TileScratch& scratch) const {
  const ConvShape& shape = geometry_.shape;
  const int64_t segments = needs_.taps / needs_.lists;
  const Tap* tap = taps_;
  Tap* listed = scratch.taps;
  const float** rows = scratch.a_rows;
  int32_t list = 0;
  bool row_inside[kMaxTileRows];
  for (int64_t d = 0; d < shape.kernel[0]; ++d)
    for (int64_t h = 0; h < shape.kernel[1]; ++h) {
      const bool any_row = rows_inside(pixels, d, h, row_inside);
      for (int64_t w = 0; w < shape.kernel[2]; ++w, rows += pixels.count, ++list) {
        const int64_t offset = tap->a_offset, reach = w * shape.dilation[2];
        bool any = false;
        for (int r = 0; (any_row || keeps_outside_) && r < pixels.count; ++r) {
          const bool valid = row_inside[r] & inside(pixels.corner[r][2] + reach, geometry_.in[2]);
          rows[r] = valid ? pixels.base[r] + offset : zeros_;
          any |= valid;
        }
        for (int64_t s = 0; s < segments; ++s, ++tap)
          *listed++ = {tap->a_offset - offset, tap->k, any || keeps_outside_ ? tap->depth : 0, list};
      }
    }
}

// Rows that are partly outside of x are copied, with zeros put in.
void PixelRows::list_planar(const Pixels& pixels, TileScratch& scratch) const {
  const ConvShape& shape = geometry_.shape;
  const int64_t width = shape.kernel[2];
  int64_t begin[kMaxTileRows], end[kMaxTileRows];
  for (int r = 0; r < pixels.count; ++r) {
    begin[r] = std::clamp<int64_t>(-pixels.corner[r][2], 0, width);
    end[r] = std::clamp<int64_t>(geometry_.in[2] - pixels.corner[r][2], begin[r], width);
  }
  float* edge = scratch.edge;
  const float** rows = scratch.a_rows;
  int64_t t = 0;
  bool row_inside[kMaxTileRows];
  for (int64_t c = 0; c < shape.in_channels; ++c)
    for (int64_t d = 0; d < shape.kernel[0]; ++d)
      for (int64_t h = 0; h < shape.kernel[1]; ++h, ++t, rows += pixels.count) {
        const bool any = rows_inside(pixels, d, h, row_inside);
        for (int r = 0; any && r < pixels.count; ++r) {
          const float* from = pixels.base[r] + taps_[t].a_offset;
          if (!row_inside[r] || begin[r] == end[r]) {
            rows[r] = zeros_;
          } else if (end[r] - begin[r] == width) {
            rows[r] = from;
          } else {
            for (int64_t i = 0; i < width; ++i) edge[i] = i >= begin[r] && i < end[r] ? from[i] : 0.0f;
            rows[r] = edge;
            edge += width;
          }
        }
        scratch.taps[t] = {0, taps_[t].k, any ? taps_[t].depth : 0, static_cast<int32_t>(t)};
      }
}

}  // namespace lathe::cpu::conv
