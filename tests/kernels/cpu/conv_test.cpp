// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/conv.h"

#include "device/taken_constants.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/open_device.h"
#include "kernels/cpu/reference.h"
#include "kernels/cpu/same_padding.h"

namespace lathe::cpu {
Result<std::unique_ptr<Kernel>> make_conv(const Record& record);

namespace {

using namespace testing;
using conv::Algorithm;
using conv::ConvConfig;

struct Case {
  ConvShape shape;
  int64_t batch = 1;
  std::array<int64_t, 3> in{1, 1, 1};
  std::array<int64_t, 3> pad_end{0, 0, 0};
  ConvConfig config;
  std::string program;
  int threads = 1;
  double tolerance = 1e-6;  // times sqrt(products summed)
  // Of a layer that is run several times, all with the same numbers: its sums, which the first run leaves here.
  std::vector<double>* sums = nullptr;

  std::array<int64_t, 3> out() const {
    std::array<int64_t, 3> size;
    for (int d = 0; d < 3; ++d)
      size[d] =
          (in[d] + shape.pad[d] + pad_end[d] - (shape.kernel[d] - 1) * shape.dilation[d] - 1) / shape.stride[d] + 1;
    return size;
  }
  std::string text() const {
    std::string s = fmt::format("batch {} groups {} C {} O {} spatial {}", batch, shape.groups, shape.in_channels,
                                shape.out_channels, shape.spatial);
    for (int d = 0; d < 3; ++d)
      s += fmt::format(" [in {} k {} s {} d {} p {} {}]", in[d], shape.kernel[d], shape.stride[d], shape.dilation[d],
                       shape.pad[d], pad_end[d]);
    return s + fmt::format(" algorithm {} width {} block {} k_block {} columns {} aligned {} threads {} '{}'",
                           static_cast<int>(config.algorithm), config.blocking.width, config.blocking.row_block,
                           config.blocking.k_block, config.blocking.split_columns, config.row_aligned, threads,
                           program);
  }
};

std::vector<int64_t> image_dims(int64_t batch, int64_t channels, const std::array<int64_t, 3>& size, int spatial) {
  std::vector<int64_t> dims{batch, channels};
  dims.insert(dims.end(), size.end() - spatial, size.end());
  return dims;
}

std::vector<TestTensor> random_operands(int count, const TensorArg& out) {
  std::vector<TestTensor> operands;
  for (int i = 0; i < count; ++i) {
    std::vector<int64_t> dims(out.dims, out.dims + out.rank);
    const int64_t kind = pick(0, 3);  // per channel, full channels last, full planar, per pixel
    for (int d = 0; d < out.rank; ++d)
      if ((kind == 0 && d != 1) || (kind == 3 && d == 1)) dims[d] = 1;
    TestTensor operand = kind == 2 ? TestTensor(dims) : TestTensor::channels_last(dims, dims[1] + pick(0, 3));
    operands.push_back(std::move(operand.fill_uniform(generator())));
  }
  return operands;
}

double plain_sum(const Case& c, const TestTensor& x, const TestTensor& weights, const int64_t* index) {
  const ConvShape& s = c.shape;
  const int missing = 3 - s.spatial;
  const int64_t inputs = s.group_inputs(), group = index[1] / s.group_outputs();
  double sum = 0;
  int64_t at[kMaxRank] = {index[0]};
  for (int64_t t = 0; t < s.volume(); ++t) {
    const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
    bool inside = true;
    for (int d = missing; inside && d < 3; ++d) {
      const int64_t i = index[2 + d - missing] * s.stride[d] - s.pad[d] + tap[d] * s.dilation[d];
      inside = i >= 0 && i < c.in[d];
      at[2 + d - missing] = i;
    }
    if (!inside) continue;
    at[1] = group * inputs;
    const int64_t weight[kMaxRank] = {index[1], 0, tap[missing], tap[std::min(missing + 1, 2)], tap[2]};
    sum += sum_of_products(&x.at(at), x.arg.strides[1], &weights.at(weight), weights.arg.strides[1], inputs);
  }
  return sum;
}

void run_case(const Case& c) {
  SCOPED_TRACE(c.text());
  const ConvShape& s = c.shape;
  std::mt19937 of_layer(7);
  std::mt19937& random = c.sums ? of_layer : generator();
  const auto x_dims = image_dims(c.batch, s.in_channels, c.in, s.spatial);
  TestTensor x = c.config.algorithm == Algorithm::planar
                     ? TestTensor(x_dims)
                     : TestTensor::channels_last(x_dims, s.in_channels + pick(0, 5));
  x.fill_uniform(random);
  TestTensor out =
      TestTensor::channels_last(image_dims(c.batch, s.out_channels, c.out(), s.spatial), s.out_channels + pick(0, 5));
  const bool is_winograd = conv::is_winograd(c.config.algorithm);
  const bool computed = is_winograd || pick(0, 1);
  const std::vector<int64_t> weight_dims = image_dims(s.out_channels, s.group_inputs(), s.kernel, s.spatial);
  TestTensor weights = computed && pick(0, 1) ? TestTensor::channels_last(weight_dims, s.group_inputs() + pick(0, 3))
                                              : TestTensor(weight_dims);
  weights.fill_uniform(random);
  std::vector<float> packed(conv::packed_floats(s, c.config));
  if (!computed) conv::pack_weights(s, c.config, weights.arg.as<float>(), packed);
  std::optional<Program> program;
  if (!c.program.empty()) program = *parse_program(c.program);
  std::vector<TestTensor> operands = random_operands(program ? program->num_inputs - 1 : 0, out.arg);

  const auto params = encode_params(conv::ConvParams{without_found_padding(s), c.config, !computed});
  auto kernel = make_conv({params, program ? &*program : nullptr});
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const TensorArg flat{packed.data(), DType::f32, 1, {static_cast<int64_t>(packed.size())}, {1}};
  std::vector<TensorArg> inputs{x.arg, computed ? weights.arg : flat};
  if (is_winograd) {
    const auto device = shared_device(1);
    ASSERT_TRUE(device) << device.error().message;
    const Result<> taken =
        dynamic_cast<TakesConstants&>(**kernel).take_constants(std::vector{TensorArg(), weights.arg}, **device);
    ASSERT_TRUE(taken) << taken.error().message;
    inputs[1].data = nullptr;  // which is not read again
  }
  for (TestTensor& operand : operands) inputs.push_back(operand.arg);
  run_kernel(**kernel, inputs, {out.arg}, c.threads);
  std::vector<double> own;
  std::vector<double>& sums = c.sums ? *c.sums : own;
  if (sums.empty()) out.for_each([&](const Dims& at, float) { sums.push_back(plain_sum(c, x, weights, at.data())); });
  auto sum = sums.begin();
  compare(
      out, [&](const int64_t* index) { return finish(program ? &*program : nullptr, *sum++, operands, index); },
      c.tolerance * std::sqrt(static_cast<double>(s.volume() * s.group_inputs())) + 1e-6, 1e-6, c.text());
}

std::string random_program() {
  return one_of<std::string>(
      {"", "in=2; r2=add r0 r1; out r2", "in=2; r2=add r0 r1; r3=relu r2; out r3",
       "in=2; r2=add r0 r1; r3=clip r2 0 6; out r3", "in=3; r3=add r0 r1; r4=add r3 r2; r5=relu r4; out r5",
       "in=2; r2=add r0 r1; r3=hard_swish r2; out r3", "in=3; r3=add r0 r1; r4=silu r3; r5=add r4 r2; out r5",
       "in=3; r3=mul r0 r1; r4=add r3 r2; r5=leaky_relu r4 0.1; out r5"});
}

gemm::Blocking random_blocking() {
  return {static_cast<int>(one_of<int64_t>({16, 32, 48, 64})), one_of<int64_t>({0, 0, 5, 14}),
          one_of<int64_t>({0, 0, 4, 20, 64}), pick(0, 1) == 1};
}

Case random_case(int spatial, Algorithm algorithm) {
  Case c;
  ConvShape& s = c.shape;
  s.spatial = spatial;
  c.batch = pick(1, 2);
  const bool planar = algorithm == Algorithm::planar;
  s.groups = planar ? 1 : one_of<int64_t>({1, 1, 1, 2, 3});
  s.in_channels = s.groups * (planar ? pick(1, 4) : one_of<int64_t>({1, 3, 4, 17, 32}));
  s.out_channels = s.groups * one_of<int64_t>({1, 3, 16, 17, 40, 64, 70});
  for (int d = 3 - spatial; d < 3; ++d) {
    s.kernel[d] = one_of<int64_t>({1, 2, 3, 3, 5});
    s.stride[d] = pick(1, 3);
    s.dilation[d] = planar && d == 2 ? 1 : one_of<int64_t>({1, 1, 2});
    const int64_t reach = (s.kernel[d] - 1) * s.dilation[d];
    s.pad[d] = pick(0, reach + 1);
    c.pad_end[d] = pick(0, reach + 1);
    c.in[d] = std::max<int64_t>(1, reach + 1 - s.pad[d] - c.pad_end[d]) + pick(0, spatial == 3 ? 4 : 9);
  }
  if (pick(0, 3) == 0) c.pad_end = pad_by_rule(s, c.in);
  c.config = {algorithm, random_blocking(), pick(0, 1) == 1};
  c.program = random_program();
  c.threads = static_cast<int>(pick(1, 3));
  return c;
}

TEST(Conv, Random2d) {
  for (int i = 0; i < 400 && !HasFailure(); ++i) run_case(random_case(2, Algorithm::direct));
}
TEST(Conv, Random1d) {
  for (int i = 0; i < 150 && !HasFailure(); ++i) run_case(random_case(1, Algorithm::direct));
}
TEST(Conv, Random3d) {
  for (int i = 0; i < 100 && !HasFailure(); ++i) run_case(random_case(3, Algorithm::direct));
}
TEST(Conv, RandomPlanar) {
  for (int i = 0; i < 300 && !HasFailure(); ++i) run_case(random_case(static_cast<int>(pick(1, 3)), Algorithm::planar));
}

// The stated bounds: F(2) about twice the error of direct summation, F(4) ten times.
TEST(Conv, RandomWinograd) {
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    Case c = random_case(2, Algorithm::direct);
    c.shape.in_channels /= c.shape.groups;
    c.shape.out_channels /= c.shape.groups;
    c.shape.groups = 1;
    c.shape.kernel = {1, 3, 3};
    c.shape.stride = c.shape.dilation = {1, 1, 1};
    for (int d = 1; d < 3; ++d) c.in[d] = std::max<int64_t>(c.in[d], 3);
    if (c.shape.padding_rule != PaddingRule::given) c.pad_end = pad_by_rule(c.shape, c.in);
    c.config.algorithm = pick(0, 1) ? Algorithm::winograd2 : Algorithm::winograd4;
    c.config.blocking.k_block = 0;
    c.tolerance = c.config.algorithm == Algorithm::winograd2 ? 2e-6 : 1e-5;
    run_case(c);
  }
}

// Layers of real networks, with the candidates that would be tried for them.
TEST(Conv, CandidatesOfRealLayers) {
  struct Layer {
    int64_t channels, out, size, kernel, stride, pad;
    bool planar;
  };
  for (const Layer& layer :
       {Layer{3, 64, 40, 7, 2, 3, true}, Layer{3, 32, 33, 3, 2, 1, true}, Layer{64, 64, 14, 3, 1, 1, false},
        Layer{128, 128, 7, 3, 1, 1, false}, Layer{256, 96, 14, 1, 1, 0, false}, Layer{96, 24, 28, 1, 1, 0, false},
        Layer{256, 512, 14, 1, 2, 0, false}}) {
    conv::ConvProblem problem;
    problem.shape.in_channels = layer.channels;
    problem.shape.out_channels = layer.out;
    for (int d = 1; d < 3; ++d) {
      problem.shape.kernel[d] = layer.kernel;
      problem.shape.stride[d] = layer.stride;
      problem.shape.pad[d] = layer.pad;
    }
    problem.planar_input = layer.planar;
    Case c;
    c.shape = problem.shape;
    c.in = {1, layer.size, layer.size};
    c.pad_end = problem.shape.pad;
    problem.out = c.out();
    c.program = "in=2; r2=add r0 r1; r3=relu r2; out r3";
    std::vector<double> sums;
    c.sums = &sums;
    for (int threads : {1, 2}) {
      const auto configs = conv::candidates(problem, threads);
      ASSERT_FALSE(configs.empty());
      ASSERT_LE(configs.size(), 24u);
      for (const ConvConfig& config : configs) {
        c.config = config;
        c.threads = threads;
        c.tolerance = config.algorithm == Algorithm::winograd4 ? 1e-5 : 2e-6;
        run_case(c);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Conv, RefusesHostileParameters) {
  ConvShape shape;
  shape.in_channels = shape.out_channels = 8;
  shape.kernel = {1, 3, 3};
  const std::vector<int64_t> good = encode_params(conv::ConvParams{shape, {}});
  ASSERT_TRUE(make_conv({good}));
  for (size_t i = 0; i < good.size(); ++i)
    for (int64_t value : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
      auto bad = good;
      bad[i] = value;
      EXPECT_FALSE(make_conv({bad})) << i << " = " << value;
    }
  EXPECT_FALSE(make_conv({std::span<const int64_t>(good).first(3)}));
}

TEST(Conv, WinogradRefusesWeightsThatAreNoConstantOfItsShape) {
  ConvShape shape;
  shape.spatial = 2;
  shape.in_channels = shape.out_channels = 8;
  shape.kernel = {1, 3, 3};
  shape.pad = {0, 1, 1};
  const auto device = shared_device(1);
  ASSERT_TRUE(device) << device.error().message;
  conv::ConvConfig config;
  config.algorithm = Algorithm::winograd4;
  EXPECT_FALSE(make_conv({encode_params(conv::ConvParams{shape, config, /*packed=*/true})}));
  auto kernel = make_conv({encode_params(conv::ConvParams{shape, config, /*packed=*/false})});
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  TestTensor weights({8, 8, 3, 3}), narrow({8, 7, 3, 3});
  EXPECT_TRUE(dynamic_cast<TakesConstants&>(**kernel).take_constants(std::vector{TensorArg(), weights.arg}, **device));
  TensorArg computed = weights.arg;
  computed.data = nullptr;
  for (const TensorArg& wrong : {TensorArg(), narrow.arg, computed})
    EXPECT_FALSE(dynamic_cast<TakesConstants&>(**kernel).take_constants(std::vector{TensorArg(), wrong}, **device));
}

}  // namespace
}  // namespace lathe::cpu
