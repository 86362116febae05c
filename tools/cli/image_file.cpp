// SPDX-License-Identifier: Apache-2.0
// Pictures as inputs.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "failure.h"
#include "tensor_file.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wsign-compare"
#endif
#include <stb/stb_image.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace lathe::cli {
namespace {

// Where rows, columns and channels are among an input's dimensions.
struct Layout {
  int64_t rows = -1, columns = -1;  // -1: as the picture has them
  int channels = 1;
  bool channels_last = false;
};

bool is_channels(int64_t dim) { return dim == 1 || dim == 3 || dim == 4; }

Layout layout_of(const InputSpec& expected) {
  std::vector<int64_t> dims = expected.dims;
  if (dims.size() == 4 && (dims[0] == 1 || dims[0] < 0)) dims.erase(dims.begin());
  if (dims.size() == 2) return {dims[0], dims[1], 1, false};
  if (dims.size() == 3 && is_channels(dims[0])) return {dims[1], dims[2], static_cast<int>(dims[0]), false};
  if (dims.size() == 3 && is_channels(dims[2])) return {dims[0], dims[1], static_cast<int>(dims[2]), true};
  throw Failure(fmt::format("input '{}' of shape {} takes no picture (1x3xHxW, 1xHxWx3, HxW and the like do)",
                            expected.name, to_text(expected.dims)));
}

// The picture's value at fractional pixel coordinates, bilinear.
double sample(const uint8_t* pixels, int width, int height, int channels, int channel, double y, double x) {
  const int y0 = std::clamp(static_cast<int>(y), 0, height - 1), y1 = std::min(y0 + 1, height - 1);
  const int x0 = std::clamp(static_cast<int>(x), 0, width - 1), x1 = std::min(x0 + 1, width - 1);
  const double fy = std::clamp(y - y0, 0.0, 1.0), fx = std::clamp(x - x0, 0.0, 1.0);
  const auto at = [&](int row, int column) -> double { return pixels[(row * width + column) * channels + channel]; };
  const double top = at(y0, x0) * (1 - fx) + at(y0, x1) * fx, bottom = at(y1, x0) * (1 - fx) + at(y1, x1) * fx;
  return top * (1 - fy) + bottom * fy;
}

}  // namespace

std::string inflated(std::string_view bytes, size_t size) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  if (bytes.size() > kMost || size > kMost) throw Failure("it holds more than 2 GiB of compressed data");
  std::string out(size, '\0');
  const int found = stbi_zlib_decode_noheader_buffer(out.data(), static_cast<int>(size), bytes.data(),
                                                     static_cast<int>(bytes.size()));
  if (found < 0 || static_cast<size_t>(found) != size) throw Failure("its compressed data is damaged");
  return out;
}

HostTensor parse_image(std::string_view bytes, const InputSpec& expected) {
  const Layout layout = layout_of(expected);
  if (expected.type != DataType::kFLOAT && expected.type != DataType::kUINT8)
    throw Failure(fmt::format("a picture becomes float32 or uint8, but input '{}' is {}; use .npy", expected.name,
                              type_name(expected.type)));
  if (bytes.size() > size_t{1} << 30) throw Failure("this picture is larger than 1 GiB");
  int width = 0, height = 0, stored = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()), static_cast<int>(bytes.size()), &width,
                            &height, &stored, layout.channels),
      stbi_image_free);
  if (!pixels) throw Failure(fmt::format("this picture cannot be read: {}", stbi_failure_reason()));
  const int64_t rows = layout.rows < 0 ? height : layout.rows, columns = layout.columns < 0 ? width : layout.columns;
  HostTensor tensor{expected.name, expected.type, {}, {}};
  if (expected.dims.size() == 4) tensor.dims.push_back(1);
  if (expected.dims.size() > 2 && !layout.channels_last) tensor.dims.push_back(layout.channels);
  tensor.dims.insert(tensor.dims.end(), {rows, columns});
  if (layout.channels_last) tensor.dims.push_back(layout.channels);
  tensor.data.resize(byte_size(tensor.type, tensor.dims));
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t x = 0; x < columns; ++x)
      for (int c = 0; c < layout.channels; ++c) {
        const double value = sample(pixels.get(), width, height, layout.channels, c,
                                    (static_cast<double>(y) + 0.5) * height / static_cast<double>(rows) - 0.5,
                                    (static_cast<double>(x) + 0.5) * width / static_cast<double>(columns) - 0.5);
        const int64_t at =
            layout.channels_last ? (y * columns + x) * layout.channels + c : (c * rows + y) * columns + x;
        if (tensor.type == DataType::kUINT8) {
          tensor.data[static_cast<size_t>(at)] = static_cast<std::byte>(value + 0.5);
        } else {
          const auto scaled = static_cast<float>(value / 255);
          std::memcpy(&tensor.data[static_cast<size_t>(at) * sizeof(scaled)], &scaled, sizeof(scaled));
        }
      }
  return tensor;
}

}  // namespace lathe::cli
