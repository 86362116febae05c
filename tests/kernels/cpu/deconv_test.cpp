// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/deconv/deconv.h"

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/reference.h"

namespace lathe::cpu {
Result<std::unique_ptr<Kernel>> make_deconv(const Record& record);

namespace {

using namespace testing;

struct Case {
  ConvShape shape;
  int64_t batch = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};
  gemm::Blocking blocking;
  std::string program;
  int threads = 1;

  std::string text() const {
    std::string s = fmt::format("batch {} groups {} C {} O {} spatial {}", batch, shape.groups, shape.in_channels,
                                shape.out_channels, shape.spatial);
    for (int d = 0; d < 3; ++d)
      s += fmt::format(" [in {} out {} k {} s {} d {} p {}]", in[d], out[d], shape.kernel[d], shape.stride[d],
                       shape.dilation[d], shape.pad[d]);
    return s + fmt::format(" width {} threads {} '{}'", blocking.width, threads, program);
  }
};

// The definition, from the output's side.
double plain_sum(const Case& c, const TestTensor& x, const TestTensor& weights, const int64_t* index) {
  const ConvShape& s = c.shape;
  const int missing = 3 - s.spatial;
  const int64_t inputs = s.group_inputs(), outputs = s.group_outputs(), group = index[1] / outputs;
  double sum = 0;
  int64_t at[kMaxRank] = {index[0]};
  for (int64_t t = 0; t < s.volume(); ++t) {
    const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
    bool inside = true;
    for (int d = missing; inside && d < 3; ++d) {
      const int64_t i = index[2 + d - missing] + s.pad[d] - tap[d] * s.dilation[d];
      inside = i % s.stride[d] == 0 && i >= 0 && i / s.stride[d] < c.in[d];
      at[2 + d - missing] = i / s.stride[d];
    }
    if (!inside) continue;
    at[1] = group * inputs;
    const int64_t weight[kMaxRank] = {at[1], index[1] % outputs, tap[missing], tap[std::min(missing + 1, 2)], tap[2]};
    sum += sum_of_products(&x.at(at), x.arg.strides[1], &weights.at(weight), weights.arg.strides[0], inputs);
  }
  return sum;
}

void run_case(const Case& c) {
  SCOPED_TRACE(c.text());
  const ConvShape& s = c.shape;
  auto dims = [&](int64_t channels, const std::array<int64_t, 3>& size) {
    std::vector<int64_t> result{c.batch, channels};
    result.insert(result.end(), size.end() - s.spatial, size.end());
    return result;
  };
  TestTensor x = TestTensor::channels_last(dims(s.in_channels, c.in), s.in_channels + pick(0, 3));
  x.fill_uniform(generator());
  TestTensor out = TestTensor::channels_last(dims(s.out_channels, c.out), s.out_channels + pick(0, 3));
  const bool computed = s.groups == 1 && pick(0, 1);
  std::vector<int64_t> weight_dims{s.in_channels, s.group_outputs()};
  weight_dims.insert(weight_dims.end(), s.kernel.end() - s.spatial, s.kernel.end());
  TestTensor weights = computed && pick(0, 1) ? TestTensor::channels_last(weight_dims, s.group_outputs() + pick(0, 3))
                                              : TestTensor(weight_dims);
  weights.fill_uniform(generator());
  std::vector<float> packed(deconv::packed_floats(s, c.blocking));
  if (!computed) deconv::pack_weights(s, c.blocking, weights.arg.as<float>(), packed);
  std::optional<Program> program;
  std::vector<TestTensor> operands;
  if (!c.program.empty()) {
    program = *parse_program(c.program);
    for (int i = 1; i < program->num_inputs; ++i) {
      auto shape = dims(s.out_channels, c.out);
      if (i == 1) std::fill(shape.begin() + 2, shape.end(), 1), shape[0] = 1;
      operands.push_back(
          std::move(TestTensor::channels_last(shape, s.out_channels + pick(0, 3)).fill_uniform(generator())));
    }
  }
  const auto params = encode_params(deconv::DeconvParams{s, c.blocking, !computed});
  auto kernel = make_deconv({params, program ? &*program : nullptr});
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
      1e-6 * std::sqrt(static_cast<double>(s.volume() * s.group_inputs())) + 1e-6, 1e-6, c.text());
}

TEST(Deconv, Random) {
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    Case c;
    ConvShape& s = c.shape;
    s.spatial = static_cast<int>(pick(1, 3));
    c.batch = pick(1, 2);
    s.groups = one_of<int64_t>({1, 1, 2, 3});
    s.in_channels = s.groups * one_of<int64_t>({1, 3, 16, 17});
    s.out_channels = s.groups * one_of<int64_t>({1, 3, 16, 40, 70});
    for (int d = 3 - s.spatial; d < 3; ++d) {
      s.kernel[d] = pick(1, 5);
      s.stride[d] = pick(1, 3);
      s.dilation[d] = pick(1, 3);
      c.in[d] = pick(1, s.spatial == 3 ? 3 : 7);
      const int64_t reach = (c.in[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1;
      s.pad[d] = pick(0, std::min<int64_t>(reach - 1, 4));
      c.out[d] = std::max<int64_t>(1, reach - s.pad[d] + pick(-1, 2));
    }
    c.blocking = {static_cast<int>(one_of<int64_t>({16, 32, 48, 64})), one_of<int64_t>({0, 0, 5}),
                  one_of<int64_t>({0, 0, 4}), pick(0, 1) == 1};
    c.program =
        one_of<std::string>({"", "in=2; r2=add r0 r1; r3=relu r2; out r3", "in=3; r3=add r0 r1; r4=add r3 r2; out r4",
                             "in=3; r3=mul r0 r2; r4=add r3 r1; r5=silu r4; out r5"});
    c.threads = i % 8 == 0 ? 2 : 1;
    run_case(c);
  }
}

TEST(Deconv, RefusesHostileParameters) {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 8;
  shape.kernel = {1, 3, 3};
  shape.stride = {1, 2, 2};
  const std::vector<int64_t> good = encode_params(deconv::DeconvParams{shape, {}});
  ASSERT_TRUE(make_deconv({good}));
  std::vector<size_t> negative;  // padding of the dimensions that there are
  for (size_t i = 0; i < good.size(); ++i)
    for (int64_t value : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
      auto bad = good;
      bad[i] = value;
      const bool is_taken = make_deconv({bad}).has_value();
      if (value == -1 && is_taken)
        negative.push_back(i);
      else
        EXPECT_FALSE(is_taken) << i << " = " << value;
    }
  shape.pad = {0, -1, -1};
  const std::vector<int64_t> padded = encode_params(deconv::DeconvParams{shape, {}});
  ASSERT_EQ(negative.size(), 2u);
  for (const size_t i : negative) EXPECT_EQ(padded[i], -1);
}

}  // namespace
}  // namespace lathe::cpu
