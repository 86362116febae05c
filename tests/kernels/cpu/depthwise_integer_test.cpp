// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of 8-bit integers: the kernel depthwise_integer.
#include "kernels/cpu/depthwise_integer/depthwise_integer.h"
#include "kernels/cpu/integer_forms.h"

namespace lathe::cpu {
Result<std::unique_ptr<Kernel>> make_depthwise_integer(const Record& record);

namespace {

using namespace testing;
using depthwise::Shape;

// A random convolution, D H W, and the sizes of its images.
struct Case {
  Shape shape;
  int64_t batch = pick(1, 2);
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};

  Case() {
    shape.spatial = static_cast<int>(pick(1, 3));
    shape.channels = one_of<int64_t>({1, 3, 8, 16, 17, 24, 32, 40, 64, 100, 144});
    const bool usual = pick(0, 1);  // square, as the functions for one kernel and stride are
    const int64_t kernel = one_of<int64_t>({1, 2, 3, 5, 7}), stride = pick(1, 2);
    for (int d = 3 - shape.spatial; d < 3; ++d) {
      shape.kernel[d] = usual ? d == 0 ? 1 : one_of<int64_t>({3, 5}) : kernel;
      if (usual && d == 2 && shape.spatial > 1) shape.kernel[d] = shape.kernel[1];
      shape.stride[d] = usual ? stride : pick(1, 3);
      shape.dilation[d] = usual ? 1 : pick(1, 2);
      shape.pad[d] = pick(0, shape.kernel[d]);
      const int64_t reach = (shape.kernel[d] - 1) * shape.dilation[d];
      in[d] = pick(std::max<int64_t>(1, reach - 2 * shape.pad[d] + 1), 14);
      if (in[d] + 2 * shape.pad[d] <= reach) in[d] = reach + 1;
      out[d] = (in[d] + 2 * shape.pad[d] - reach - 1) / shape.stride[d] + 1;
    }
  }
  // Of windows of 3 x 3, which are summed along whole rows.
  Case(int64_t channels, int64_t stride, int64_t pad) {
    shape.spatial = 2;
    shape.channels = channels;
    for (int d = 1; d < 3; ++d) {
      shape.kernel[d] = 3, shape.stride[d] = stride, shape.pad[d] = pad;
      in[d] = pick(std::max<int64_t>(1, 3 - 2 * pad), 9);
      out[d] = (in[d] + 2 * pad - 3) / stride + 1;
    }
  }
  std::vector<int64_t> dims(const std::array<int64_t, 3>& size) const {
    std::vector<int64_t> result{batch, shape.channels};
    result.insert(result.end(), size.end() - shape.spatial, size.end());
    return result;
  }
  std::string text() const {
    return fmt::format("C {} in {} kernel {} stride {} dilation {} pad {}", shape.channels, in, shape.kernel,
                       shape.stride, shape.dilation, shape.pad);
  }
};

int64_t plain_sum(const Case& c, const Levels& x, const std::vector<int8_t>& weights,
                  const std::vector<int64_t>& index) {
  const Shape& s = c.shape;
  const int missing = 3 - s.spatial;
  int64_t sum = 0;
  std::vector<int64_t> at = index;
  for (int64_t t = 0; t < s.volume(); ++t) {
    const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
    bool inside = true;
    for (int d = missing; d < 3; ++d) {
      int64_t& i = at[static_cast<size_t>(2 + d - missing)];
      i = index[static_cast<size_t>(2 + d - missing)] * s.stride[d] - s.pad[d] + tap[d] * s.dilation[d];
      inside = inside && i >= 0 && i < c.in[d];
    }
    if (inside) sum += static_cast<int64_t>(x.at(at)) * weights[static_cast<size_t>(index[1] * s.volume() + t)];
  }
  return sum;
}

// Whether the bytes between the channels of one pixel and those of the next are as they were.
bool keeps_gaps(const Levels& out, const std::vector<std::byte>& before) {
  const auto size = size_of(out.arg.dtype), channels = static_cast<size_t>(out.arg.dims[1]) * size;
  const size_t pitch = out.storage.size() / static_cast<size_t>(out.arg.volume() / out.arg.dims[1]);
  for (size_t i = 0; i < out.storage.size(); ++i)
    if (i % pitch >= channels && out.storage[i] != before[i]) return false;
  return true;
}

void run_case(const Form& form, const Case& c) {
  SCOPED_TRACE(c.text());
  const Levels x(pick(0, 1) ? DType::u8 : DType::i8, c.dims(c.in), true, 1, pick(0, 3) ? 0 : 5);
  const std::vector<int64_t> dims = c.dims(c.out);
  Levels out(form.to, dims, true, 1, pick(0, 3) ? 0 : 3);
  const std::vector<int8_t> weights = random_weights(c.shape.channels * c.shape.volume());
  std::vector<int32_t> packed(static_cast<size_t>(depthwise::packed_integers(c.shape)));
  depthwise::pack_weights(c.shape, weights.data(), packed);
  const std::vector<Levels> operands = operands_of(form, dims, 1, true);
  const depthwise::DepthwiseConfig config{static_cast<int>(pick(1, depthwise::kMaxPixels)), pick(0, 1) == 1};
  const auto params = encode_params(depthwise::DepthwiseIntegerParams{c.shape, config, {form.to, form.operands}});
  const Program program = *parse_program(form.program);
  auto kernel = make_depthwise_integer({params, &program});
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  std::vector<TensorArg> inputs{x.arg, flat(packed)};
  for (const Levels& operand : operands) inputs.push_back(operand.arg);
  const std::vector<std::byte> before = out.storage;
  run_kernel(**kernel, inputs, {out.arg}, static_cast<int>(pick(1, 2)));
  EXPECT_TRUE(keeps_gaps(out, before));
  std::vector<int64_t> index(dims.size());
  for (int64_t i = 0; i < out.arg.volume() && !::testing::Test::HasFailure(); ++i) {
    for (int64_t rest = i, d = static_cast<int64_t>(dims.size()) - 1; d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % dims[static_cast<size_t>(d)];
      rest /= dims[static_cast<size_t>(d)];
    }
    expect_element(form, program, out, operands, index, plain_sum(c, x, weights, index));
  }
}

TEST(DepthwiseInteger, RandomShapes) {
  for (size_t i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) run_case(forms()[i % forms().size()], Case());
}

// Two pixels at a time where channels are few, and rows that end at no whole block.
TEST(DepthwiseInteger, WholeRows) {
  size_t form = 0;
  for (const int64_t channels : {4, 8, 12, 16, 20, 24, 28, 32, 36, 60, 64, 68, 100, 132})
    for (const int64_t stride : {1, 2})
      for (const int64_t pad : {0, 1, 2})
        for (int i = 0; i < 6 && !::testing::Test::HasFailure(); ++i)
          run_case(forms()[form++ % forms().size()], Case(channels, stride, pad));
}

TEST(DepthwiseInteger, RefusesHostileParameters) {
  const std::vector<int64_t> good = encode_params(depthwise::DepthwiseIntegerParams{});
  ASSERT_TRUE(make_depthwise_integer({good}));
  for (size_t i = 0; i < good.size(); ++i)
    for (int64_t value : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
      auto bad = good;
      bad[i] = value;
      EXPECT_FALSE(make_depthwise_integer({bad})) << i << " = " << value;
    }
  EXPECT_FALSE(make_depthwise_integer({std::span<const int64_t>(good).first(3)}));
}

TEST(DepthwiseInteger, RefusesTensorsThatDoNotFit) {
  Shape shape;
  shape.channels = 20;
  auto kernel = make_depthwise_integer({encode_params(depthwise::DepthwiseIntegerParams{shape, {}})});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> packed(static_cast<size_t>(depthwise::packed_integers(shape))), few(10);
  const Levels x(DType::u8, {1, 20, 4, 4}, true), floats(DType::f32, {1, 20, 4, 4}, true);
  const Levels wrong(DType::u8, {1, 24, 4, 4}, true), out(DType::f32, {1, 20, 4, 4}, true);
  const auto refuses = [&](const Levels& image, std::vector<int32_t>& w, const Levels& y) {
    const std::vector<TensorArg> inputs{image.arg, flat(w)}, outputs{y.arg};
    return !(*kernel)->check(inputs, outputs);
  };
  EXPECT_FALSE(refuses(x, packed, out));
  EXPECT_TRUE(refuses(floats, packed, out));
  EXPECT_TRUE(refuses(wrong, packed, out));
  EXPECT_TRUE(refuses(x, few, out));
  EXPECT_TRUE(refuses(x, packed, x));
}

}  // namespace
}  // namespace lathe::cpu
