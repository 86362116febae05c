// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/pixel_rows.h"

#include <algorithm>
#include <cstring>

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

Geometry geometry_of(const ConvShape& shape, const TensorArg& x, const TensorArg& out) {
  Geometry g;
  g.shape = shape;
  g.batch = x.dims[0];
  g.batch_stride = x.strides[0];
  g.channel_stride = x.strides[1];
  const int missing = 3 - shape.spatial;
  for (int d = missing; d < 3; ++d) {
    g.in[d] = x.dims[2 + d - missing];
    g.out[d] = out.dims[2 + d - missing];
    g.in_stride[d] = x.strides[2 + d - missing];
  }
  return g;
}

Needs needs_of(const ConvShape& shape, const Config& config) {
  if (config.algorithm == Algorithm::planar) {
    const int64_t taps = shape.in_channels * shape.kernel[0] * shape.kernel[1];
    return {taps, taps, taps * shape.kernel[2] * kMaxTileRows};
  }
  const int64_t depth = shape.group_inputs(), block = config.blocking.k_block;
  const int64_t segments = block && depth > block ? (depth + block - 1) / block : 1;
  return {shape.volume(), shape.volume() * segments, 0};
}

void write_taps(const Geometry& g, const Config& config, Tap* taps) {
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

PixelRows::PixelRows(const Geometry& geometry, const Config& config, const Needs& needs, const Tap* taps,
                     const float* zeros, const float* x, const TensorArg& out, const BoundEpilogue& epilogue,
                     std::span<const TensorArg> operands)
    : geometry_(geometry),
      planar_(config.algorithm == Algorithm::planar),
      padded_(geometry.padded()),
      needs_(needs),
      taps_(taps),
      zeros_(zeros),
      x_(x),
      out_(out.as<float>()),
      epilogue_(epilogue) {
  for (int d = 0; d < 3; ++d) x_ -= geometry.shape.pad[d] * geometry.in_stride[d];
  map_.streams = 2 + epilogue.count;
  map_.add_dim(geometry.batch);
  map_.set_stride(0, 0, geometry.batch_stride);
  for (int d = 0; d < 3; ++d) {
    map_.add_dim(geometry.out[d]);
    map_.set_stride(0, 1 + d, geometry.in_stride[d] * geometry.shape.stride[d]);
  }
  const int missing = 3 - geometry.shape.spatial;
  for (int d = 0; d < out.rank; ++d) {
    if (d == 1) continue;
    const int dim = d == 0 ? 0 : d - 1 + missing;
    map_.set_stride(1, dim, out.strides[d]);
    for (int i = 0; i < epilogue.count; ++i) map_.set_stride(2 + i, dim, broadcast_stride(operands[i], d));
  }
  map_.collapse();
}

// True when every tap of every row lies inside of x.
bool PixelRows::find_corners(int64_t first, int count, Corners& corners) const {
  const Geometry& g = geometry_;
  const ConvShape& shape = g.shape;
  int64_t w = first % g.out[2], h = first / g.out[2] % g.out[1], d = first / (g.out[2] * g.out[1]) % g.out[0];
  bool all_inside = true;
  for (int r = 0; r < count; ++r) {
    corners[r] = {d * shape.stride[0] - shape.pad[0], h * shape.stride[1] - shape.pad[1],
                  w * shape.stride[2] - shape.pad[2]};
    for (int i = 0; i < 3; ++i)
      all_inside =
          all_inside && corners[r][i] >= 0 && corners[r][i] + (shape.kernel[i] - 1) * shape.dilation[i] < g.in[i];
    if (++w < g.out[2]) continue;
    w = 0;
    if (++h < g.out[1]) continue;
    h = 0;
    if (++d == g.out[0]) d = 0;
  }
  return all_inside;
}

TileTaps PixelRows::fill(int64_t first, int count, TileScratch& scratch) const {
  const float* base[kMaxTileRows];
  map_.fill(first, count, [&](int stream, int row, int64_t offset) {
    if (stream == 0)
      base[row] = x_ + offset;
    else if (stream == 1)
      scratch.where.out[row] = out_ + offset;
    else if (epilogue_.operands[stream - 2].varies_by_row)
      scratch.where.operand[stream - 2][row] = epilogue_.operands[stream - 2].data + offset;
  });
  Corners corners;
  std::copy(base, base + count, scratch.a_rows);
  if (!padded_ || find_corners(first, count, corners)) return {scratch.a_rows, taps_};
  // The list overwrites a_rows; the first taps of the rows are needed until then.
  std::copy(base, base + count, scratch.bases);
  if (planar_)
    list_planar(corners, count, scratch);
  else
    list_direct(corners, count, scratch);
  return {scratch.a_rows, scratch.taps};
}

// Rows of each tap; zeros for taps outside of x. Taps that are outside for all rows are skipped.
void PixelRows::list_direct(const Corners& corners, int count, TileScratch& scratch) const {
  const ConvShape& shape = geometry_.shape;
  const int64_t segments = needs_.taps / needs_.lists;
  for (int64_t p = 0; p < needs_.lists; ++p) {
    auto at = position(shape, p);
    for (int d = 0; d < 3; ++d) at[d] *= shape.dilation[d];
    const int64_t offset = taps_[p * segments].a_offset;
    bool any = false;
    for (int r = 0; r < count; ++r) {
      const auto& corner = corners[r];
      const bool valid = inside(corner[0] + at[0], geometry_.in[0]) && inside(corner[1] + at[1], geometry_.in[1]) &&
                         inside(corner[2] + at[2], geometry_.in[2]);
      scratch.a_rows[p * count + r] = valid ? scratch.bases[r] + offset : zeros_;
      any = any || valid;
    }
    for (int64_t s = 0; s < segments; ++s) {
      const Tap& tap = taps_[p * segments + s];
      scratch.taps[p * segments + s] = {tap.a_offset - offset, tap.k, any ? tap.depth : 0, static_cast<int32_t>(p)};
    }
  }
}

// Rows that are partly outside of x are copied, with zeros put in.
void PixelRows::list_planar(const Corners& corners, int count, TileScratch& scratch) const {
  const ConvShape& shape = geometry_.shape;
  const int64_t width = shape.kernel[2], in_width = geometry_.in[2];
  const int64_t per_channel = shape.kernel[0] * shape.kernel[1];
  float* edge = scratch.edge;
  for (int64_t t = 0; t < needs_.taps; ++t) {
    const auto at = position(shape, t % per_channel * width);
    for (int r = 0; r < count; ++r) {
      const auto& corner = corners[r];
      const float*& row = scratch.a_rows[t * count + r];
      const float* from = scratch.bases[r] + taps_[t].a_offset;
      const int64_t begin = std::clamp<int64_t>(-corner[2], 0, width);
      const int64_t end = std::clamp<int64_t>(in_width - corner[2], begin, width);
      if (!inside(corner[0] + at[0] * shape.dilation[0], geometry_.in[0]) ||
          !inside(corner[1] + at[1] * shape.dilation[1], geometry_.in[1]) || begin == end) {
        std::memset(edge, 0, width * sizeof(float));
        row = edge;
        edge += width;
      } else if (end - begin == width) {
        row = from;
      } else {
        for (int64_t i = 0; i < width; ++i) edge[i] = i >= begin && i < end ? from[i] : 0.0f;
        row = edge;
        edge += width;
      }
    }
    scratch.taps[t] = {0, taps_[t].k, taps_[t].depth, static_cast<int32_t>(t)};
  }
}

}  // namespace lathe::cpu::conv
