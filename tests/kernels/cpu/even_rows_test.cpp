// SPDX-License-Identifier: Apache-2.0
// Pixels of convolutions as evenly spaced rows of a copy, compared with what taps read of the input.
#include "kernels/cpu/conv/even_rows.h"

#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/reference.h"

namespace lathe::cpu::conv {
namespace {

using namespace lathe::cpu::testing;

Geometry random_geometry() {
  Geometry geometry;
  ConvShape& shape = geometry.shape;
  shape.spatial = 3;
  shape.groups = pick(1, 2);
  shape.in_channels = shape.groups * pick(1, 5);
  shape.out_channels = 2 * shape.groups;
  geometry.batch = pick(1, 3);
  for (int d = 0; d < 3; ++d) {
    shape.kernel[d] = pick(1, 3);
    shape.stride[d] = pick(1, 3);
    shape.dilation[d] = pick(1, 3);
    const int64_t reach = (shape.kernel[d] - 1) * shape.dilation[d];
    shape.pad[d] = pick(0, reach + 1);
    geometry.in[d] = pick(1, 7) + std::max<int64_t>(0, reach - shape.pad[d]);
    geometry.out[d] = (geometry.in[d] + shape.pad[d] + pick(0, reach) - reach - 1) / shape.stride[d] + 1;
    geometry.out[d] = std::max<int64_t>(geometry.out[d], 1);
  }
  const int64_t pitch = shape.in_channels + pick(0, 2);
  geometry.in_stride = {geometry.in[1] * geometry.in[2] * pitch, geometry.in[2] * pitch, pitch};
  geometry.batch_stride = geometry.in[0] * geometry.in_stride[0] + pick(0, 3);
  return geometry;
}

// What the k-th weight of a group's first output is multiplied by.
float element_at(const Geometry& geometry, const std::vector<float>& x, int64_t pixel, int64_t k) {
  const ConvShape& shape = geometry.shape;
  int64_t position = k / shape.group_inputs(), from = k % shape.group_inputs();
  for (int d : {2, 1, 0}) {
    const int64_t in =
        pixel % geometry.out[d] * shape.stride[d] - shape.pad[d] + position % shape.kernel[d] * shape.dilation[d];
    if (in < 0 || in >= geometry.in[d]) return 0;
    from += in * geometry.in_stride[d];
    pixel /= geometry.out[d];
    position /= shape.kernel[d];
  }
  return x[static_cast<size_t>(from + pixel * geometry.batch_stride)];
}

TEST(EvenRows, AreWhatTapsRead) {
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
    const Geometry geometry = random_geometry();
    const ConvShape& shape = geometry.shape;
    std::vector<float> x(static_cast<size_t>(geometry.batch * geometry.batch_stride));
    for (size_t at = 0; at < x.size(); ++at) x[at] = static_cast<float>(at + 1);
    ConvConfig config;
    config.blocking.k_block = one_of<int64_t>({0, 2});

    const EvenImage image(geometry);
    const gemm::Needs needs = image.needs(config);
    std::vector<float> copy(static_cast<size_t>(image.floats()), -1.0f);
    image.copy(x.data(), copy.data(), pool_of(static_cast<int>(pick(1, 2))));
    std::vector<gemm::Tap> taps(static_cast<size_t>(needs.taps));
    image.write_taps(config, taps.data());
    int64_t depth = 0;
    for (const gemm::Tap& tap : taps) {
      EXPECT_EQ(tap.k, depth);
      depth += tap.depth;
    }
    EXPECT_EQ(depth, shape.volume() * shape.group_inputs());
    std::vector<float> out(static_cast<size_t>(geometry.rows() * shape.out_channels)), unused(8);
    TensorArg result;
    result.data = out.data();
    result.dtype = DType::f32;
    result.rank = 5;
    const int64_t dims[] = {geometry.batch, shape.out_channels, geometry.out[0], geometry.out[1], geometry.out[2]};
    std::copy(dims, dims + 5, result.dims);
    result.strides[1] = 1;
    int64_t stride = shape.out_channels;
    for (int d : {4, 3, 2, 0}) result.strides[d] = std::exchange(stride, stride * result.dims[d]);
    const BoundEpilogue epilogue{};
    const OutputRows outputs(geometry, result, epilogue, {});
    const EvenRows rows(image, copy.data(), taps.data(), outputs);

    const float* a_rows[kMaxTileRows];
    gemm::TileScratch scratch;
    scratch.a_rows = a_rows;
    scratch.edge = unused.data();
    int64_t pixels = 0, most;
    for (int64_t first = 0; first < image.rows(); first += most) {
      most = std::min<int64_t>(pick(1, kMaxTileRows), image.rows() - first);
      const gemm::TileTaps tile = rows.fill(first, static_cast<int>(most), scratch);
      for (int64_t r = 0; r < most && !::testing::Test::HasFailure(); ++r) {
        EXPECT_EQ(tile.a_rows[r], copy.data() + (first + r) * shape.stride[2] * shape.in_channels);
        if (scratch.where.out[r] == unused.data()) continue;
        const int64_t pixel = (scratch.where.out[r] - out.data()) / shape.out_channels;
        EXPECT_EQ(pixel, pixels++);
        for (const gemm::Tap& tap : taps)
          for (int64_t c = 0; c < tap.depth; ++c)
            EXPECT_EQ(tile.a_rows[r][tap.a_offset + c], element_at(geometry, x, pixel, tap.k + c));
      }
    }
    EXPECT_EQ(pixels, geometry.rows());
  }
}

}  // namespace
}  // namespace lathe::cpu::conv
