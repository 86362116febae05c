// SPDX-License-Identifier: Apache-2.0
// Convolutions that store their channels in parts: shuffled into the image, or split.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/emulated_device.h"

namespace lathe::cuda {

const Tactic& conv_tactic();
const Tactic& gemv_tactic();

namespace {

enum class Order : uint8_t { dcr, crd };  // of the channels: (i, j, c) or (c, i, j)

// The problem's result, [n, c * b * b, h, w], goes to the channels-last image [n, c, h * b, w * b].
void shuffle(Problem& problem, int64_t b, Order order) {
  const Operand& y = problem.outputs[0];
  const int64_t n = y.opt_dims[0], c = y.opt_dims[1] / (b * b), h = y.opt_dims[2], w = y.opt_dims[3];
  const int64_t line = w * b * c, image = h * b * line;
  const Dims dims = order == Order::dcr ? Dims{n, b, b, c, h, w} : Dims{n, c, b, b, h, w};
  const Dims strides =
      order == Order::dcr ? Dims{image, line, c, 1, b * line, b * c} : Dims{image, 1, line, c, b * line, b * c};
  problem.outputs = {strided_operand(y.dtype, dims, strides)};
  problem.outputs[0].reassociation = {1, 3, 1, 1};
}

// Of its channels, in the order in which the op has them.
Operand of_channels(DType type, const Problem& problem) {
  const Dims& dims = problem.outputs[0].opt_dims;
  return strided_operand(type, dims, {0, dims[2] * dims[3], dims[3], 1, 0, 0});
}

void check(const Problem& problem, bool all = false, const std::vector<int64_t>& symbols = {}) {
  CheckOptions options;
  options.symbols = symbols;
  const Result<> checked = all ? check_tactic(test_backend(), conv_tactic(), problem, options)
                               : check_first(test_backend(), conv_tactic(), problem, options);
  EXPECT_TRUE(checked) << checked.error().to_string();
}

ConvolutionAttrs padded() {
  ConvolutionAttrs attrs;
  attrs.pads_begin = attrs.pads_end = {1, 1};
  return attrs;
}

TEST(ConvShuffle, EveryType) {
  for (const Order order : {Order::dcr, Order::crd})
    for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::i8}) {
      const Tensor w = small_weights(type, {4 * 16, 16, 3, 3});
      Problem problem = convolution_problem(padded(), operand(type, {2, 16, 7, 6}, Layout::channels_last), w);
      shuffle(problem, 2, order);
      check(problem);
    }
}

TEST(ConvShuffle, EveryTileAndSplit) {
  const Tensor w = small_weights(DType::f16, {9 * 8, 64, 3, 3});
  Problem problem = convolution_problem(padded(), operand(DType::f16, {1, 64, 5, 6}, Layout::channels_last), w);
  shuffle(problem, 3, Order::crd);
  check(problem, true);
}

// Runs of half a vector, a window of one element, and an image that is read element by element.
TEST(ConvShuffle, EveryWayToRead) {
  for (const Order order : {Order::dcr, Order::crd}) {
    const Tensor w = small_weights(DType::f16, {4 * 12, 16, 1, 1});
    Problem dense = convolution_problem({}, operand(DType::f16, {2, 16, 7, 6}, Layout::channels_last), w);
    shuffle(dense, 2, order);
    check(dense);
    const Tensor few = small_weights(DType::f16, {4 * 8, 3, 3, 3});
    Problem gathered = convolution_problem(padded(), operand(DType::f16, {2, 3, 7, 6}), few);
    shuffle(gathered, 2, order);
    check(gathered);
  }
}

// A bias and factors of the channels, constant or not, and a tensor that lies as the result does.
TEST(ConvShuffle, Operands) {
  for (const Order order : {Order::dcr, Order::crd}) {
    const Tensor w = small_weights(DType::f16, {4 * 16, 8, 3, 3}), bias = small_weights(DType::f16, {64});
    Problem problem = convolution_problem(padded(), operand(DType::f16, {2, 8, 5, 6}, Layout::channels_last), w);
    shuffle(problem, 2, order);
    problem.program = *parse_program("in=4; r4=add r0 r1; r5=mul r4 r2; r6=add r5 r3; out r6");
    Operand same = strided_operand(DType::f32, problem.outputs[0].opt_dims, problem.outputs[0].opt_strides);
    problem.operands = {of_channels(DType::f16, problem), of_channels(DType::f32, problem), same};
    const Dims& dims = problem.outputs[0].opt_dims;
    const Tensor of_parts = bias.reshaped({1, dims[1], dims[2], dims[3], 1, 1});
    problem.operands[0].constant = problem.operands[0].weights = &of_parts;
    check(problem);
  }
}

TEST(ConvShuffle, BatchMayBeSymbolic) {
  const Tensor w = small_weights(DType::f16, {4 * 8, 8, 3, 3});
  const std::vector<int64_t> symbols = {3};
  Problem problem = convolution_problem(padded(), operand(DType::f16, {3, 8, 5, 6}, Layout::channels_last), w);
  shuffle(problem, 2, Order::crd);
  problem.inputs[0].dims[0] = problem.outputs[0].dims[0] = Expr::symbol(0);
  check(problem, false, symbols);
}

// Pixels in parts: [n, c, h * 2, w * 2] goes to [n, (i, j, c), h, w], channels-last.
TEST(ConvShuffle, SpaceToDepth) {
  constexpr int64_t kC = 8, kH = 3, kW = 4;
  const Tensor w = small_weights(DType::f16, {kC, 16, 3, 3});
  Problem problem =
      convolution_problem(padded(), operand(DType::f16, {2, 16, 2 * kH, 2 * kW}, Layout::channels_last), w);
  problem.outputs = {
      strided_operand(DType::f16, {2, kC, kH, 2, kW, 2}, {kH * kW * 4 * kC, 1, kW * 4 * kC, 2 * kC, 4 * kC, kC})};
  problem.outputs[0].reassociation = {1, 1, 2, 2};
  check(problem);
}

TEST(ConvShuffle, WhatIsRefused) {
  const auto refusal = [](int64_t channels, Order order, int64_t groups = 1) {
    ConvolutionAttrs attrs;
    attrs.groups = groups;
    const Tensor w = small_weights(DType::f16, {4 * channels, 8 / groups, 1, 1});
    Problem problem = convolution_problem(attrs, operand(DType::f16, {2, 8, 5, 6}, Layout::channels_last), w);
    shuffle(problem, 2, order);
    EXPECT_NE(refusal_of(gemv_tactic(), problem), std::nullopt);
    return refusal_of(conv_tactic(), problem);
  };
  EXPECT_EQ(refusal(8, Order::crd), std::nullopt);
  EXPECT_EQ(refusal(3, Order::dcr), "channels in runs that no vector fits");
  EXPECT_EQ(refusal(6, Order::crd), "channels in runs that no vector fits");
  EXPECT_EQ(refusal(8, Order::dcr, 2), "collapsed channels of groups");
  const Tensor w = small_weights(DType::f16, {32, 8, 1, 1});
  Problem planar = convolution_problem({}, operand(DType::f16, {2, 8, 5, 6}, Layout::channels_last), w);
  shuffle(planar, 2, Order::dcr);
  planar.outputs[0].strides = {960, 12, 1, 120, 24, 2};
  EXPECT_EQ(refusal_of(conv_tactic(), planar), "channels in runs that no vector fits");
  planar.outputs[0].dtype = DType::f32;  // eight bytes, and the next are far
  EXPECT_EQ(refusal_of(conv_tactic(), planar), "channels in runs that no vector fits");
  planar.outputs[0].strides = {960, 5, 10, 120, 20, 1};
  EXPECT_EQ(refusal_of(conv_tactic(), planar), "channels that are no neighbours in the result");
}

}  // namespace
}  // namespace lathe::cuda
