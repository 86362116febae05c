// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/depthwise/depthwise.h"

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/reference.h"
#include "kernels/cpu/same_padding.h"

namespace lathe::cpu {
Result<std::unique_ptr<Kernel>> make_depthwise(const Record& record);

namespace {

using namespace testing;
using depthwise::Shape;

struct Case {
  Shape shape;
  int64_t batch = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};
  depthwise::DepthwiseConfig config;
  std::string program;
  int threads = 1;

  std::string text() const {
    std::string s = fmt::format("batch {} C {} spatial {}", batch, shape.channels, shape.spatial);
    for (int d = 0; d < 3; ++d)
      s += fmt::format(" [in {} out {} k {} s {} d {} p {}]", in[d], out[d], shape.kernel[d], shape.stride[d],
                       shape.dilation[d], shape.pad[d]);
    return s + fmt::format(" pixels {} channels {} threads {} '{}'", config.pixels, config.split_channels, threads,
                           program);
  }
};

double plain_sum(const Case& c, const TestTensor& x, const TestTensor& weights, const int64_t* index) {
  const Shape& s = c.shape;
  const int missing = 3 - s.spatial;
  double sum = 0;
  int64_t at[kMaxRank] = {index[0], index[1]};
  for (int64_t t = 0; t < s.volume(); ++t) {
    const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
    bool inside = true;
    for (int d = missing; inside && d < 3; ++d) {
      const int64_t i = index[2 + d - missing] * s.stride[d] - s.pad[d] + tap[d] * s.dilation[d];
      inside = i >= 0 && i < c.in[d];
      at[2 + d - missing] = i;
    }
    const int64_t weight[kMaxRank] = {index[1], 0, tap[missing], tap[std::min(missing + 1, 2)], tap[2]};
    if (inside) sum += static_cast<double>(x.at(at)) * static_cast<double>(weights.at(weight));
  }
  return sum;
}

void run_case(const Case& c) {
  SCOPED_TRACE(c.text());
  const Shape& s = c.shape;
  auto dims = [&](const std::array<int64_t, 3>& size) {
    std::vector<int64_t> result{c.batch, s.channels};
    result.insert(result.end(), size.end() - s.spatial, size.end());
    return result;
  };
  TestTensor x = TestTensor::channels_last(dims(c.in), s.channels + pick(0, 5));
  x.fill_uniform(generator());
  TestTensor out = TestTensor::channels_last(dims(c.out), s.channels + pick(0, 5));
  const bool computed = pick(0, 1);
  std::vector<int64_t> weight_dims{s.channels, 1};
  weight_dims.insert(weight_dims.end(), s.kernel.end() - s.spatial, s.kernel.end());
  TestTensor weights =
      computed && pick(0, 1) ? TestTensor::channels_last(weight_dims, pick(1, 3)) : TestTensor(weight_dims);
  weights.fill_uniform(generator());
  std::vector<float> packed(depthwise::packed_floats(s));
  if (!computed) depthwise::pack_weights(s, weights.arg.as<float>(), packed);
  std::optional<Program> program;
  std::vector<TestTensor> operands;
  if (!c.program.empty()) {
    program = *parse_program(c.program);
    for (int i = 1; i < program->num_inputs; ++i) {
      auto shape = dims(c.out);
      if (i == 1)
        for (size_t d = 0; d < shape.size(); ++d)
          if (d != 1) shape[d] = 1;
      operands.push_back(
          std::move(TestTensor::channels_last(shape, s.channels + pick(0, 3)).fill_uniform(generator())));
    }
  }
  const auto params = encode_params(depthwise::DepthwiseParams{without_found_padding(s), c.config, !computed});
  auto kernel = make_depthwise({params, program ? &*program : nullptr});
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const TensorArg flat{packed.data(), DType::f32, 1, {static_cast<int64_t>(packed.size())}, {1}};
  std::vector<TensorArg> inputs{x.arg, computed ? weights.arg : flat};
  for (TestTensor& operand : operands) inputs.push_back(operand.arg);
  run_kernel(**kernel, inputs, {out.arg}, c.threads);
  compare(
      out,
      [&](const int64_t* index) {
        return finish(program ? &*program : nullptr, plain_sum(c, x, weights, index), operands, index);
      },
      1e-6 * std::sqrt(static_cast<double>(s.volume())) + 1e-6, 1e-6, c.text());
}

Case random_case(int spatial, bool common) {
  Case c;
  Shape& s = c.shape;
  s.spatial = spatial;
  c.batch = pick(1, 2);
  s.channels = one_of<int64_t>({1, 3, 16, 17, 40, 64, 70, 144});
  const int64_t kernel = one_of<int64_t>({3, 5}), stride = pick(1, 2);
  for (int d = 3 - spatial; d < 3; ++d) {
    s.kernel[d] = common ? kernel : one_of<int64_t>({1, 2, 3, 4, 7});
    s.stride[d] = common ? stride : pick(1, 3);
    s.dilation[d] = common ? 1 : pick(1, 3);
    const int64_t reach = (s.kernel[d] - 1) * s.dilation[d];
    s.pad[d] = pick(0, reach + 1);
    const int64_t pad_end = pick(0, reach + 1);
    c.in[d] = std::max<int64_t>(1, reach + 1 - s.pad[d] - pad_end) + pick(0, spatial == 3 ? 4 : 14);
    c.out[d] = (c.in[d] + s.pad[d] + pad_end - reach - 1) / s.stride[d] + 1;
  }
  if (pick(0, 3) == 0) {
    pad_by_rule(s, c.in);
    for (int d = 0; d < 3; ++d) c.out[d] = (c.in[d] + s.stride[d] - 1) / s.stride[d];
  }
  c.config = {static_cast<int>(pick(1, depthwise::kMaxPixels)), pick(0, 1) == 1};
  c.program = one_of<std::string>({"", "in=2; r2=add r0 r1; out r2", "in=2; r2=add r0 r1; r3=clip r2 0 6; out r3",
                                   "in=3; r3=add r0 r1; r4=add r3 r2; r5=relu r4; out r5",
                                   "in=2; r2=add r0 r1; r3=hard_swish r2; out r3",
                                   "in=2; r2=add r0 r1; r3=silu r2; out r3", "in=2; r2=mul r0 r1; r3=tanh r2; out r3"});
  c.threads = static_cast<int>(pick(1, 3));
  return c;
}

TEST(Depthwise, CommonKernels) {
  for (int i = 0; i < 600 && !HasFailure(); ++i) run_case(random_case(2, true));
}
TEST(Depthwise, AnyKernel) {
  for (int i = 0; i < 300 && !HasFailure(); ++i) run_case(random_case(static_cast<int>(pick(1, 3)), false));
}

TEST(Depthwise, Candidates) {
  for (int64_t channels : {1, 32, 960})
    for (int threads : {1, 2}) {
      Shape shape;
      shape.channels = channels;
      const auto found = depthwise::candidates(threads);
      ASSERT_FALSE(found.empty());
      for (const auto& config : found)
        EXPECT_TRUE(make_depthwise({encode_params(depthwise::DepthwiseParams{shape, config})}));
    }
}

TEST(Depthwise, RefusesHostileParameters) {
  Shape shape;
  shape.channels = 8;
  shape.kernel = {1, 3, 3};
  const std::vector<int64_t> good = encode_params(depthwise::DepthwiseParams{shape, {}});
  ASSERT_TRUE(make_depthwise({good}));
  for (size_t i = 0; i < good.size(); ++i)
    for (int64_t value : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
      auto bad = good;
      bad[i] = value;
      EXPECT_FALSE(make_depthwise({bad})) << i << " = " << value;
    }
}

}  // namespace
}  // namespace lathe::cpu
