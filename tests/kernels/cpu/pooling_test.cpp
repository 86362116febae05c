// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/pooling/pooling.h"

namespace lathe::cpu {
namespace {

struct Case {
  std::vector<int64_t> in;  // N C spatial...
  std::vector<int64_t> kernel, stride, pad_begin, pad_end, dilation;
  bool ceil = false;
  PaddingRule rule = PaddingRule::given;  // by which the kernel must find the padding
};

int64_t output_size(const Case& c, size_t d) {
  const int64_t kernel = c.kernel[d] == 0 ? c.in[d + 2] : c.kernel[d];
  const int64_t span = c.in[d + 2] + c.pad_begin[d] + c.pad_end[d] - (kernel - 1) * c.dilation[d] - 1;
  return (c.ceil ? (span + c.stride[d] - 1) / c.stride[d] : span / c.stride[d]) + 1;
}

// The definition, tap by tap.
float pooled(const Case& c, TestTensor& in, const std::vector<int64_t>& at, bool maximum, bool include_pad) {
  const size_t spatial = c.kernel.size();
  std::vector<int64_t> k(spatial, 0);
  double sum = 0, best = -std::numeric_limits<double>::infinity();
  int64_t count = 0;
  while (true) {
    std::vector<int64_t> index = at;
    bool inside = true, counted = true;
    for (size_t d = 0; d < spatial; ++d) {
      index[d + 2] = at[d + 2] * c.stride[d] - c.pad_begin[d] + k[d] * c.dilation[d];
      inside = inside && index[d + 2] >= 0 && index[d + 2] < c.in[d + 2];
      counted = counted && index[d + 2] < c.in[d + 2] + c.pad_end[d];
    }
    count += include_pad ? counted : inside;
    if (inside) {
      const double x = in.at(index);
      sum += x;
      best = std::isnan(x) || x > best ? x : best;
    }
    size_t d = spatial;
    while (d-- > 0 && ++k[d] >= (c.kernel[d] == 0 ? c.in[d + 2] : c.kernel[d])) k[d] = 0;
    if (d == static_cast<size_t>(-1)) break;
  }
  return static_cast<float>(maximum ? best : count ? sum / static_cast<double>(count) : 0);
}

PoolingParams params_of(const Case& c, bool maximum, bool include_pad) {
  PoolingParams params{maximum, include_pad, c.rule, {}};
  const bool given = c.rule == PaddingRule::given;
  for (size_t d = 0; d < c.kernel.size(); ++d)
    params.axes.push_back(
        {c.kernel[d], c.stride[d], given ? c.pad_begin[d] : 0, given ? c.pad_end[d] : 0, c.dilation[d]});
  return params;
}

std::vector<int> channels_last(size_t rank) {
  std::vector<int> order = {0};
  for (size_t d = 2; d < rank; ++d) order.push_back(static_cast<int>(d));
  order.push_back(1);
  return order;
}

std::vector<Case> cases() {
  return {
      {{1, 64, 12, 12}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {{2, 3, 9, 7}, {2, 3}, {1, 2}, {0, 1}, {1, 0}, {1, 1}},
      {{1, 19, 11, 13}, {3, 2}, {2, 3}, {1, 1}, {2, 0}, {2, 3}, true},
      {{1, 80, 5, 5}, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, true},
      {{2, 130, 7, 7}, {0, 0}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
      {{1, 5, 40}, {4}, {3}, {2}, {1}, {1}},
      {{1, 20, 5, 6, 7}, {2, 3, 2}, {1, 2, 2}, {1, 0, 1}, {0, 1, 1}, {1, 1, 2}},
      {{1, 4, 3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
      {{1, 16, 13, 13}, {5, 5}, {1, 1}, {2, 2}, {2, 2}, {1, 1}},
      {{0, 4, 3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
      {{1, 67, 10, 8}, {4, 2}, {3, 2}, {1, 0}, {2, 0}, {1, 1}, false, PaddingRule::lower_half},
      {{1, 5, 10, 8}, {4, 3}, {3, 1}, {2, 2}, {1, 2}, {1, 2}, false, PaddingRule::upper_half},
      {{2, 6, 3, 7, 8}, {1, 2, 2}, {2, 3, 2}, {0, 0, 0}, {0, 1, 0}, {1, 1, 1}, false, PaddingRule::lower_half},
  };
}
// Orders of memory of the input and of the result.
constexpr std::pair<bool, bool> kChannelsLast[] = {{true, true}, {false, true}, {false, false}, {true, false}};

TEST(Pooling, MatchesTheDefinition) {
  std::mt19937 random(5);
  for (const Case& c : cases())
    for (const bool maximum : {true, false})
      for (const bool include_pad : {false, true})
        for (const auto& [in_last, out_last] : kChannelsLast)
          for (const int threads : {1, 3}) {
            std::vector<int64_t> out_dims = {c.in[0], c.in[1]};
            for (size_t d = 0; d < c.kernel.size(); ++d) out_dims.push_back(output_size(c, d));
            const auto order = [&](bool last) { return last ? channels_last(c.in.size()) : std::vector<int>{}; };
            TestTensor in(c.in, order(in_last), 3), out(out_dims, order(out_last), 2);
            in.fill(random);
            run_kernel(*make_kernel("pooling", params_of(c, maximum, include_pad)), {in.arg}, {out.arg}, threads);
            EXPECT_TRUE(out.gaps_untouched());
            out.for_each([&](const std::vector<int64_t>& at, float& actual) {
              ASSERT_NEAR(actual, pooled(c, in, at, maximum, include_pad), 2e-6)
                  << "max " << maximum << " channels last " << in_last << out_last;
            });
          }
}

// The same elements as bytes, in the same order of memory.
template <class T>
TensorArg as_bytes(const TensorArg& floats, std::vector<T>& bytes, size_t count) {
  bytes.assign(count, 0);
  std::copy_n(floats.as<float>(), count, bytes.begin());
  TensorArg result = floats;
  result.data = bytes.data();
  result.dtype = std::is_signed_v<T> ? DType::i8 : DType::u8;
  return result;
}

template <class T>
void check_maxima_of_bytes(const Case& c, bool in_last, bool out_last, std::mt19937& random) {
  std::vector<int64_t> out_dims = {c.in[0], c.in[1]};
  for (size_t d = 0; d < c.kernel.size(); ++d) out_dims.push_back(output_size(c, d));
  const auto order = [&](bool last) { return last ? channels_last(c.in.size()) : std::vector<int>{}; };
  TestTensor in(c.in, order(in_last)), out(out_dims, order(out_last));
  std::uniform_int_distribution<int> bytes(std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max());
  for (float& x : in.floats()) x = static_cast<float>(bytes(random));
  std::vector<T> read, written;
  const TensorArg x = as_bytes(in.arg, read, in.floats().size()), y = as_bytes(out.arg, written, out.floats().size());
  run_kernel(*make_kernel("pooling", params_of(c, true, false)), {x}, {y}, 3);
  std::copy(written.begin(), written.end(), out.floats().begin());
  out.for_each([&](const std::vector<int64_t>& at, float& actual) {
    ASSERT_EQ(actual, pooled(c, in, at, true, false)) << "channels last " << in_last << out_last;
  });
}

TEST(Pooling, MaximaOfBytes) {
  std::mt19937 random(7);
  for (const Case& c : cases())
    for (const auto& [in_last, out_last] : kChannelsLast) {
      check_maxima_of_bytes<int8_t>(c, in_last, out_last, random);
      check_maxima_of_bytes<uint8_t>(c, in_last, out_last, random);
    }
}

TEST(Pooling, EpilogueReadsBroadcastOperands) {
  const Program program = program_of("in=3; r3=mul r0 r1; r4=add r3 r2; r5=relu r4; out r5");
  std::mt19937 random(6);
  for (const Case& c : cases())
    for (const auto& [in_last, out_last] : kChannelsLast) {
      std::vector<int64_t> out_dims = {c.in[0], c.in[1]}, bias_dims = {1, c.in[1]};
      for (size_t d = 0; d < c.kernel.size(); ++d) out_dims.push_back(output_size(c, d)), bias_dims.push_back(1);
      const auto order = [&](bool last) { return last ? channels_last(c.in.size()) : std::vector<int>{}; };
      TestTensor in(c.in, order(in_last)), bias(bias_dims), residual(out_dims, order(out_last), 1),
          out(out_dims, order(out_last), 2);
      in.fill(random), bias.fill(random), residual.fill(random);
      run_kernel(*make_kernel("pooling", params_of(c, false, true), &program), {in.arg, bias.arg, residual.arg},
                 {out.arg}, 3);
      out.for_each([&](const std::vector<int64_t>& at, float& actual) {
        const float args[] = {pooled(c, in, at, false, true), bias.at(at), residual.at(at)};
        float expected = 0;
        evaluate(program, args, {&expected, 1});
        ASSERT_NEAR(actual, expected, 1e-5);
      });
    }
}

TEST(Pooling, NaNAndPaddingAlone) {
  TestTensor in({1, 33, 4, 4}, {0, 2, 3, 1}), out({1, 33, 3, 3}, {0, 2, 3, 1});
  for (float& x : in.floats()) x = 1;
  in.at({0, 5, 1, 1}) = std::nanf("");
  in.at({0, 32, 3, 3}) = std::nanf("");
  run_kernel(*make_kernel("pooling", PoolingParams{true, false, {}, {{.kernel = 2}, {.kernel = 2}}}), {in.arg},
             {out.arg}, 1);
  EXPECT_TRUE(std::isnan(out.at({0, 5, 0, 0})) && std::isnan(out.at({0, 5, 1, 1})));
  EXPECT_TRUE(std::isnan(out.at({0, 32, 2, 2})));
  EXPECT_EQ(out.at({0, 5, 2, 2}), 1);
  TestTensor far({1, 33, 9, 3}, {0, 2, 3, 1});
  run_kernel(*make_kernel("pooling", PoolingParams{true, false, {}, {{1, 1, 5, 0, 1}, {1, 1, 0, 0, 1}}}), {in.arg},
             {far.arg}, 1);
  EXPECT_EQ(far.at({0, 0, 0, 0}), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(far.at({0, 0, 5, 0}), 1);
}

TEST(Pooling, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("pooling");
  for (const std::vector<int64_t>& params :
       std::vector<std::vector<int64_t>>{{},
                                         {1, 0, 0, 0},
                                         {2, 0, 0, 1, 1, 1, 0, 0, 1},
                                         {1, 0, 3, 1, 1, 1, 0, 0, 1},
                                         {1, 0, 0, 4},
                                         {1, 0, 0, 1, 1, 0, 0, 0, 1},
                                         {1, 0, 0, 1, 1, 1, 0, 0, 0},
                                         {1, 0, 0, 1, -1, 1, 0, 0, 1},
                                         {1, 0, 0, 1, 1, 1, int64_t{1} << 40, 0, 1},
                                         {1, 0, 0, int64_t{1} << 62}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  TestTensor in({1, 2, 5}), out({1, 2, 4});
  const Program clipped = program_of("in=1; r1=relu r0; out r1");
  const auto takes = [&](bool maximum, DType dtype, DType result, const Program* program) {
    in.arg.dtype = dtype;
    out.arg.dtype = result;
    return bool(make_kernel("pooling", PoolingParams{maximum, false, {}, {{.kernel = 2}}}, program)
                    ->check(std::vector{in.arg}, std::vector{out.arg}));
  };
  EXPECT_TRUE(takes(true, DType::u8, DType::u8, nullptr));
  EXPECT_TRUE(takes(false, DType::f32, DType::f32, &clipped));
  EXPECT_FALSE(takes(true, DType::u8, DType::i8, nullptr));
  EXPECT_FALSE(takes(false, DType::u8, DType::u8, nullptr));
  EXPECT_FALSE(takes(true, DType::u8, DType::u8, &clipped));
  EXPECT_FALSE(takes(true, DType::f16, DType::f16, nullptr));
  const auto kernel = make_kernel("pooling", PoolingParams{true, false, {}, {{.kernel = 2}}});
  TestTensor a({1, 2, 5}), b({1, 2, 4}), c({1, 3, 4}), d({1, 2, 5, 5});
  EXPECT_TRUE(kernel->check(std::vector{a.arg}, std::vector{b.arg}));
  EXPECT_FALSE(kernel->check(std::vector{a.arg}, std::vector{c.arg}));
  EXPECT_FALSE(kernel->check(std::vector{d.arg}, std::vector{b.arg}));
  EXPECT_FALSE(kernel->check(std::vector{a.arg, a.arg}, std::vector{b.arg}));
}

}  // namespace
}  // namespace lathe::cpu
