// SPDX-License-Identifier: Apache-2.0
// Windows of levels: the kernels pooling and resize dequantise what they read and quantise what they make, bit for bit
// as the ops do one after the other.
#include "kernels/cpu/evaluation_check.h"
#include "kernels/cpu/pooling/pooling.h"
#include "kernels/cpu/resize/resize.h"
#include "ops/quantization.h"

namespace lathe::cpu {
namespace {

// A tensor whose channels lie last.
struct Image {
  explicit Image(const Tensor& content) : content(content) {
    const Dims& dims = content.dims();
    memory.resize(static_cast<size_t>(content.bytes()));
    arg = {memory.data(), content.dtype(), static_cast<int>(dims.size()), {}, {}};
    std::copy(dims.begin(), dims.end(), arg.dims);
    int64_t stride = 1;
    arg.strides[1] = 1;
    stride = dims[1];
    for (int d = arg.rank - 1; d >= 2; --d) arg.strides[d] = stride, stride *= dims[static_cast<size_t>(d)];
    arg.strides[0] = stride;
    for (int64_t i = 0; i < content.volume(); ++i) memory[place(i)] = content.as<uint8_t>()[i];
  }
  size_t place(int64_t i) const {
    int64_t at = 0;
    for (int d = arg.rank - 1; d >= 0; --d) at += i % arg.dims[d] * arg.strides[d], i /= arg.dims[d];
    return static_cast<size_t>(at);
  }
  std::vector<uint8_t> memory;
  const Tensor content;
  TensorArg arg;
};

struct Scales {
  float scale, zero, to_scale, to_zero;
};

Tensor number(DType type, double value) {
  Tensor tensor = *Tensor::allocate(type, {});
  from_doubles(std::vector<double>{value}, tensor);
  return tensor;
}

// quantize(op(dequantize(x)))
Tensor expected_levels(const Attributes& op, std::vector<Tensor> inputs, const Scales& s) {
  const DType type = inputs[0].dtype();
  const std::vector<Tensor> levels{inputs[0], number(DType::f32, s.scale), number(type, s.zero)};
  inputs[0] = run_op(DequantizeAttrs{}, levels, 1)->front();
  QuantizeAttrs quantize;
  quantize.to = type;
  const std::vector<Tensor> floats{run_op(op, inputs, 1)->front(), number(DType::f32, s.to_scale),
                                   number(type, s.to_zero)};
  return run_op(quantize, floats, 1)->front();
}

void expect_levels(const char* kernel, const EncodedParams& params, const Tensor& x, std::vector<TensorArg> tables,
                   const Tensor& expected, const Scales& s, const std::string& what) {
  const IntegerRange range = x.dtype() == DType::i8 ? IntegerRange{-128, 127} : IntegerRange{0, 255};
  const Program program = *parse_program(
      fmt::format("in=1; r1=constant {}; r2=div r0 r1; r3=round r2; r4=affine r3 1 {}; r5=clip r4 {} {}; out r5",
                  s.to_scale, s.to_zero, range.low, range.high));
  const Image in(x), out(expected);
  std::vector<uint8_t> made(out.memory.size());
  TensorArg y = out.arg;
  y.data = made.data();
  tables.insert(tables.begin(), in.arg);
  run_kernel(*make_kernel(kernel, params, &program), tables, {y}, 2);
  for (size_t i = 0; i < made.size(); ++i)
    ASSERT_EQ(static_cast<int>(made[i]), static_cast<int>(out.memory[i])) << what << " at " << i;
}

// Scales of which averages lie in the middle between two levels again and again, and others.
Scales random_scales(DType type, std::mt19937& random) {
  const float scale = pick_between(random, 0, 1) ? 0.03f : 0.001f * static_cast<float>(pick_between(random, 1, 99));
  const auto zero = [&] {
    return static_cast<float>(type == DType::i8 ? pick_between(random, -128, 127) : pick_between(random, 0, 255));
  };
  Scales scales{scale, zero(), pick_between(random, 0, 1) ? scale : 0.7f * scale, 0};
  scales.to_zero = scales.to_scale == scale ? scales.zero : zero();
  return scales;
}

TEST(LevelWindows, AveragesAreThoseOfTheOps) {
  std::mt19937 random(17);
  for (int i = 0; i < 120 && !::testing::Test::HasFailure(); ++i) {
    const DType type = pick_between(random, 0, 1) ? DType::u8 : DType::i8;
    const size_t spatial = static_cast<size_t>(pick_between(random, 1, 3));
    Dims dims{pick_between(random, 1, 2), pick_between(random, 1, 70)};
    PoolingAttrs attrs;
    attrs.op = PoolingOp::average;
    attrs.count_include_pad = pick_between(random, 0, 1) == 1;
    PoolingParams params{false, attrs.count_include_pad, {}, {}};
    for (size_t d = 0; d < spatial; ++d) {
      dims.push_back(pick_between(random, 3, 9));
      const int64_t kernel = pick_between(random, 1, 3), begin = pick_between(random, 0, kernel - 1),
                    end = pick_between(random, 0, kernel - 1), stride = pick_between(random, 1, 3);
      attrs.window.push_back(kernel);
      attrs.pads_begin.push_back(begin);
      attrs.pads_end.push_back(end);
      attrs.stride.push_back(stride);
      params.axes.push_back({kernel, stride, begin, end, 1});
    }
    const Tensor x = hard_tensor(type, dims, random);
    const Scales scales = random_scales(type, random);
    params.levels = {scales.zero, scales.scale};
    expect_levels("pooling", params, x, {}, expected_levels(attrs, {x}, scales), scales,
                  fmt::format("{}{} of {}", to_text(attrs), name_of(type), fmt::join(dims, "x")));
  }
}

// Nothing follows, so that averages are stored as they are: also of channels that are no whole vectors.
TEST(LevelWindows, AveragesMayStayFloats) {
  std::mt19937 random(23);
  for (const int64_t channels : {1, 16, 17, 33}) {
    const Tensor x = hard_tensor(DType::u8, {2, channels, 8, 9}, random);
    PoolingAttrs attrs;
    attrs.op = PoolingOp::average;
    attrs.window = {3, 3}, attrs.stride = {2, 2}, attrs.pads_begin = {1, 0}, attrs.pads_end = {1, 2};
    attrs.count_include_pad = true;
    const std::vector<Tensor> levels{x, number(DType::f32, 0.03), number(DType::u8, 7)};
    const std::vector<Tensor> floats{run_op(DequantizeAttrs{}, levels, 1)->front()};
    const Tensor expected = run_op(attrs, floats, 1)->front();
    PoolingParams params{false, true, {}, {}};
    params.axes = {{3, 2, 1, 1, 1}, {3, 2, 0, 2, 1}};
    params.levels = {7, 0.03f};
    const Image in(x), like(*Tensor::allocate(DType::u8, expected.dims()));
    std::vector<float> made(like.memory.size());
    TensorArg y = like.arg;
    y.dtype = DType::f32;
    y.data = made.data();
    run_kernel(*make_kernel("pooling", params, nullptr), {in.arg}, {y}, 2);
    for (int64_t i = 0; i < expected.volume(); ++i)
      ASSERT_NEAR(made[like.place(i)], expected.as<float>()[i], 1e-5) << channels << " channels at " << i;
  }
}

TEST(LevelWindows, ResizedAreThoseOfTheOps) {
  std::mt19937 random(18);
  for (int i = 0; i < 120 && !::testing::Test::HasFailure(); ++i) {
    const DType type = pick_between(random, 0, 1) ? DType::u8 : DType::i8;
    ResizeAttrs attrs;
    attrs.mode = pick_between(random, 0, 2) ? ResizeMode::linear : ResizeMode::cubic;
    attrs.coordinates = pick_between(random, 0, 1) ? CoordinateMode::half_pixel : CoordinateMode::align_corners;
    const Dims dims{pick_between(random, 1, 2), pick_between(random, 1, 70), pick_between(random, 2, 7),
                    pick_between(random, 2, 7)};
    const std::vector<int64_t> sizes{dims[0], dims[1], pick_between(random, 1, 15), pick_between(random, 1, 15)};
    ResizeParams params;
    params.axes = 12;
    params.makes_tables = true;
    params.rule.mode = static_cast<SampleRule::Mode>(attrs.mode);
    params.rule.coordinates = static_cast<SampleRule::Coordinates>(attrs.coordinates);
    params.rule.cubic_a = attrs.cubic_a;
    params.scales = {0, 0};
    const Tensor x = hard_tensor(type, dims, random);
    const Scales scales = random_scales(type, random);
    params.levels = {scales.zero, scales.scale};
    Tensor list = *Tensor::allocate(DType::i64, {4});
    std::copy(sizes.begin(), sizes.end(), list.mutable_as<int64_t>());
    expect_levels("resize", params, x, {}, expected_levels(attrs, {x, Tensor(), Tensor(), list}, scales), scales,
                  fmt::format("{}{} of {}", to_text(attrs), name_of(type), fmt::join(dims, "x")));
  }
}

TEST(LevelWindows, OtherTypesAndOrdersAreRefused) {
  const ByteScale levels{3, 0.5f};
  const Tensor bytes = *Tensor::allocate(DType::u8, {1, 8, 4, 4}), result = *Tensor::allocate(DType::u8, {1, 8, 3, 3});
  const Image in(bytes), out(result);
  const PoolingAxis axis{.kernel = 2};
  const auto refusal_of = [&](const char* kernel, const EncodedParams& params, TensorArg x, TensorArg y) {
    const Result<> fits = make_kernel(kernel, params)->check({&x, 1}, {&y, 1});
    return fits ? std::string() : fits.error().message;
  };
  PoolingParams pooling{false, false, {}, {axis, axis}, levels};
  TensorArg floats = in.arg, rows = in.arg, of_floats = out.arg;
  floats.dtype = of_floats.dtype = DType::f32;
  std::swap(rows.strides[1], rows.strides[3]);
  EXPECT_EQ(refusal_of("pooling", pooling, in.arg, of_floats), "");
  EXPECT_NE(refusal_of("pooling", pooling, in.arg, out.arg), "") << "nothing makes levels of averages";
  EXPECT_NE(refusal_of("pooling", pooling, floats, of_floats), "");
  EXPECT_NE(refusal_of("pooling", pooling, rows, of_floats).find("not contiguous"), std::string::npos);
  pooling.levels = {};
  EXPECT_NE(refusal_of("pooling", pooling, in.arg, of_floats), "");
  pooling.levels = levels;
  pooling.maximum = true;
  EXPECT_FALSE(find_kernel("pooling")(Record{EncodedParams(pooling).list, nullptr}));
}

}  // namespace
}  // namespace lathe::cpu
