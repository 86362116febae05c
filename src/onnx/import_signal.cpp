// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, as products with matrices of sines and cosines.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

struct Transform {
  int64_t points = 0;     // of the transform
  int64_t inputs = 0;     // points that there are; the others are 0
  int64_t bins = 0;       // that are wanted
  int64_t parts = 0;      // of each input: 1 = real, 2 = real and imaginary
  int64_t results = 2;    // of each bin, likewise
  bool inverse = false;   // the angles the other way round, divided by the number of points
  bool mirrored = false;  // the inputs behind `inputs` are the conjugates of those before
};

// [inputs * parts, bins * results]. Angles are multiples of one turn over `points`, reduced before they are rounded.
std::vector<double> matrix_of(const Transform& t) {
  const int64_t columns = t.bins * t.results;
  std::vector<double> matrix(static_cast<size_t>(t.inputs * t.parts * columns));
  for (int64_t n = 0; n < t.inputs; ++n) {
    const bool is_twice = t.mirrored && n > 0 && 2 * n < t.points;
    const double scale = (t.inverse ? 1.0 / static_cast<double>(t.points) : 1.0) * (is_twice ? 2 : 1);
    for (int64_t k = 0; k < t.bins; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(n * k % t.points) / static_cast<double>(t.points);
      const double cosine = scale * std::cos(angle), sine = (t.inverse ? 1 : -1) * scale * std::sin(angle);
      double* at = matrix.data() + n * t.parts * columns + k * t.results;
      at[0] = cosine;
      if (t.results == 2) at[1] = sine;
      if (t.parts == 2) at[columns] = -sine;
      if (t.parts == 2 && t.results == 2) at[columns + 1] = cosine;
    }
  }
  return matrix;
}

// Of a constant that an import makes: two gibibytes of f32.
constexpr int64_t kMostNumbers = int64_t{1} << 29;

bool are_too_many(int64_t rows, int64_t columns) { return columns > 0 && rows > kMostNumbers / columns; }

// x[..., inputs, parts] to [..., bins, results].
ir::Value* transformed(NodeContext& c, ir::Value* x, const Transform& t) {
  if (are_too_many(t.inputs, t.parts * t.results * std::min(t.bins, kMostNumbers))) {
    c.unsupported(
        "a transform of {} points to {} is a product with a matrix, which would have more than {} numbers; transform "
        "shorter frames (STFT), or before the network",
        t.inputs, t.bins, kMostNumbers);
    return x;
  }
  const Dims dims{t.inputs * t.parts, t.bins * t.results};
  ir::Value* matrix = c.cast(c.constant(Tensor::from<double>(dims, matrix_of(t))), x->dtype());
  Ints rows(static_cast<size_t>(std::max(x->rank() - 1, 1))), bins(rows.size() + 1);  // 0 = as it is
  rows.back() = dims[0];
  bins[bins.size() - 2] = t.bins;
  bins.back() = t.results;
  return c.reshape(c.matmul(c.reshape(x, rows), matrix), bins);
}

// The number of parts of a complex or real signal; 0 after an error.
int64_t parts_of(NodeContext& c, ir::Value* x) {
  const std::optional<int64_t> parts = x->rank() >= 2 ? c.dim(x, x->rank() - 1).as_constant() : std::nullopt;
  if (parts == 1 || parts == 2) return *parts;
  c.unsupported("the last dimension of its input, 1 for real numbers and 2 for complex ones, must be known");
  return 0;
}

std::optional<int64_t> known_integer(NodeContext& c, size_t input, const char* what) {
  constexpr double kMost = 0x1p53;  // up to which doubles hold integers
  const std::optional<double> value = c.constant_scalar(c.input(input));
  if (value && std::abs(*value) < kMost) return static_cast<int64_t>(*value);
  value ? c.unsupported("{} is {}, which is too large", what, *value) : c.unsupported("{} must be a constant", what);
  return std::nullopt;
}

}  // namespace

void import_dft(NodeContext& c) {
  ir::Value* x = c.require(0);
  const bool inverse = c.flag("inverse", false), onesided = c.flag("onesided", false);
  const bool to_real = inverse && onesided;
  int64_t axis = c.version() < 20 ? c.integer("axis", 1) : -2;
  if (c.version() >= 20 && c.has(2)) {
    const std::optional<int64_t> given = known_integer(c, 2, "axis");
    if (!given) return;
    axis = *given;
  }
  axis = c.axis(axis, x->rank());
  const int64_t parts = parts_of(c, x);
  if (parts == 0) return;
  const std::optional<int64_t> length = c.dim(x, axis).as_constant();
  if (!length || *length < 1 || axis == x->rank() - 1)
    return c.unsupported("the axis must not be the last one, and its size must be known");
  Transform t{.points = to_real ? 2 * (*length - 1) : *length, .parts = parts, .inverse = inverse, .mirrored = to_real};
  if (c.has(1)) {
    const std::optional<int64_t> points = known_integer(c, 1, "dft_length");
    if (!points) return;
    t.points = *points;
  }
  if (t.points < 1) return c.invalid("a transform of {} points", t.points);
  if (to_real && parts != 2) return c.invalid("the inverse of one side takes complex numbers");
  t.inputs = std::min(*length, to_real ? t.points / 2 + 1 : t.points);
  t.bins = onesided && !inverse ? t.points / 2 + 1 : t.points;
  t.results = to_real ? 1 : 2;
  if (t.inputs < *length) x = c.slice(x, axis, 0, t.inputs);
  Ints perm;  // the axis before the last; the same permutation takes it back
  for (int64_t i = 0; i < x->rank(); ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm[perm.size() - 2]);
  const bool moves = axis != x->rank() - 2;
  ir::Value* y = transformed(c, moves ? c.transpose(x, perm) : x, t);
  c.set_output(0, moves ? c.transpose(y, perm) : y);
}

void import_stft(NodeContext& c) {
  ir::Value *x = c.require(0), *window = c.input(2);
  const bool onesided = c.flag("onesided", true);
  const std::optional<int64_t> step = known_integer(c, 1, "frame_step"), length = c.dim(x, 1).as_constant();
  const int64_t parts = parts_of(c, x);
  if (!step || parts == 0) return;
  if (x->rank() != 3 || !length) return c.unsupported("the signal must have rank 3 and a known length");
  std::optional<int64_t> points = window ? c.dim(window, 0).as_constant() : std::nullopt;
  if (c.has(3)) points = known_integer(c, 3, "frame_length");
  if (!points) return c.unsupported("the length of frames must be known, from frame_length or the window");
  if (*step < 1 || *points < 1 || *points > *length)
    return c.invalid("frames of {} elements, {} apart, of a signal of {}", *points, *step, *length);
  if (onesided && parts == 2) return c.invalid("one side is of real signals");
  const int64_t frames = (*length - *points) / *step + 1;
  if (are_too_many(frames, *points))
    return c.unsupported("{} frames of {} elements are more than {}; take a larger frame_step", frames, *points,
                         kMostNumbers);
  std::vector<int64_t> places;
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t i = 0; i < *points; ++i) places.push_back(frame * *step + i);
  ir::Value* indices = c.reshape(c.ints(places), Ints{frames, *points});
  ir::Value* cut = c.gather(x, indices, 1);  // [batch, frames, points, parts]
  if (window) cut = c.mul(cut, c.reshape(window, Ints{-1, 1}));
  c.set_output(
      0, transformed(
             c, cut,
             {.points = *points, .inputs = *points, .bins = onesided ? *points / 2 + 1 : *points, .parts = parts}));
}

}  // namespace lathe::onnx
