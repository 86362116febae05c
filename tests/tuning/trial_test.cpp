// SPDX-License-Identifier: Apache-2.0
// The smaller problems on which the fastest candidates are checked, and what is compared of their results.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "device/null/null_device.h"
#include "fixtures/test_tensor.h"
#include "tuning/cut_down.h"
#include "tuning/random_content.h"
#include "tuning/trial.h"

namespace lathe {
namespace {

Operand operand(Dims dims, Dims strides) {
  Operand operand;
  operand.dims = to_shape(dims);
  operand.strides = to_shape(strides);
  operand.opt_dims = std::move(dims);
  operand.opt_strides = std::move(strides);
  return operand;
}

Operand linear(const Dims& dims) { return operand(dims, dense_strides(dims, Layout::linear)); }

Operand channels_last(const Dims& dims) { return operand(dims, dense_strides(dims, Layout::channels_last)); }

Problem copy(Operand from, Operand to) {
  Problem problem;
  problem.operands = {std::move(from)};
  problem.outputs = {std::move(to)};
  return problem;
}

TEST(RandomContent, QueriesHaveScoresOfAboutOne) {
  AttentionAttrs attrs;
  Problem problem;
  problem.attributes = &attrs;
  problem.inputs = {linear({1, 2, 40, 64}), linear({1, 2, 48, 64}), linear({1, 2, 48, 64})};
  EXPECT_FLOAT_EQ(deviation_of(problem, problem.inputs[0]), 0.125f);
  EXPECT_FLOAT_EQ(deviation_of(problem, problem.inputs[1]), 1);
  attrs.scale = 0.125;
  EXPECT_FLOAT_EQ(deviation_of(problem, problem.inputs[0]), 1);
  auto numbers = Tensor::allocate(DType::f32, {1000});
  ASSERT_TRUE(numbers);
  fill_randomly(*numbers, 1, 0.125f);
  const float first = numbers->as<float>()[0];
  fill_randomly(*numbers, 1);
  EXPECT_FLOAT_EQ(8 * first, numbers->as<float>()[0]);
}

// Of images.
ConvolutionAttrs convolution(int64_t stride, int64_t padding) {
  ConvolutionAttrs attrs;
  attrs.stride = {stride, stride};
  attrs.pads_begin = attrs.pads_end = {padding, padding};
  attrs.dilation = {1, 1};
  return attrs;
}

TEST(CutDown, ConvolutionsKeepChannelsWeightsAndPitch) {
  const ConvolutionAttrs attrs = convolution(1, 1);
  Problem problem;
  problem.attributes = &attrs;
  // A part of 64 channels of pixels that hold 96.
  problem.inputs = {operand({32, 64, 112, 112}, {112 * 112 * 96, 1, 112 * 96, 96}), channels_last({64, 64, 3, 3})};
  problem.outputs = {channels_last({32, 64, 112, 112})};
  problem.operands = {operand({32, 64, 112, 112}, {0, 1, 0, 0})};
  const Problem small = cut_down(problem);
  EXPECT_EQ(small.inputs[0].opt_dims, (Dims{2, 64, 14, 14}));
  EXPECT_EQ(small.inputs[0].opt_strides, (Dims{14 * 14 * 96, 1, 14 * 96, 96}));
  EXPECT_EQ(small.inputs[1].opt_dims, problem.inputs[1].opt_dims);
  EXPECT_EQ(small.outputs[0].opt_dims, (Dims{2, 64, 14, 14}));
  EXPECT_EQ(small.operands[0].opt_strides, (Dims{0, 1, 0, 0}));
  EXPECT_EQ(as_constant(small.outputs[0].dims), small.outputs[0].opt_dims);
  EXPECT_EQ(as_constant(small.outputs[0].strides), small.outputs[0].opt_strides);
}

// Images of f32 that are cast as they are read: the first convolution of a network in f16.
TEST(CutDown, FactorsOfAProgramHaveTheOthersType) {
  const ConvolutionAttrs attrs = convolution(2, 3);
  Problem problem;
  problem.attributes = &attrs;
  problem.inputs = {linear({32, 3, 224, 224}), channels_last({64, 3, 7, 7})};
  problem.inputs[0].program = *parse_program("in=1; r1=round_f16 r0; out r1");
  problem.inputs[1].dtype = DType::f16;
  problem.outputs = {channels_last({32, 64, 112, 112})};
  problem.outputs[0].dtype = DType::f16;
  const Problem small = cut_down(problem);
  EXPECT_EQ(small.inputs[0].opt_dims, (Dims{2, 3, 14, 14}));
  EXPECT_EQ(small.outputs[0].opt_dims, (Dims{2, 64, 7, 7}));
}

TEST(CutDown, PointwiseWorkKeepsWhatIsReadInVectors) {
  const Problem small = cut_down(copy(linear({32, 3, 640, 600}), channels_last({32, 3, 640, 600})));
  EXPECT_EQ(small.outputs[0].opt_dims, (Dims{2, 3, 14, 600}));
  EXPECT_EQ(small.outputs[0].opt_strides, (Dims{3 * 14 * 600, 1, 3 * 600, 3}));
  EXPECT_EQ(small.operands[0].opt_strides, (Dims{3 * 14 * 600, 14 * 600, 600, 1}));
  EXPECT_EQ(cut_down(copy(linear({4096, 768}), linear({4096, 768}))).outputs[0].opt_dims, (Dims{67, 768}));
  EXPECT_EQ(cut_down(copy(linear({100000}), linear({100000}))).outputs[0].opt_dims, (Dims{100000}));
}

TEST(CutDown, AllResultsOfAProgramAreCut) {
  const LayerNormalizationAttrs attrs;
  Problem problem;
  problem.attributes = &attrs;
  problem.inputs = {linear({32, 384, 1024}), linear({1024})};
  problem.outputs = {linear({32, 384, 1024}), linear({32, 384, 1024})};
  problem.program = {1, {}, {0, 0}};
  for (const Operand& output : cut_down(problem).outputs) {
    EXPECT_EQ(output.opt_dims, (Dims{2, 384, 1024}));
    EXPECT_EQ(as_constant(output.dims), output.opt_dims);
  }
  problem = copy(linear({4096, 768}), linear({4096, 768}));
  problem.outputs.push_back(problem.outputs[0]);
  for (const Operand& output : cut_down(problem).outputs) EXPECT_EQ(output.opt_dims, (Dims{67, 768}));
}

// The borders of what is padded stay where they are.
TEST(CutDown, PaddedWorkKeepsItsBorders) {
  Problem problem = copy(linear({32, 100, 55, 60}), linear({32, 100, 58, 64}));
  problem.operands[0].padding = {{0, 0, 1, 4}, 0};
  const Problem small = cut_down(problem);
  EXPECT_EQ(small.outputs[0].opt_dims, (Dims{2, 14, 58, 64}));
  EXPECT_EQ(small.operands[0].opt_dims, (Dims{2, 14, 55, 60}));
  EXPECT_EQ(small.operands[0].opt_strides, (Dims{14 * 55 * 60, 55 * 60, 60, 1}));
}

// Rows and columns of parts: [2, 512, 12, 64], read as [1024, 768] and as [2, 512, 768].
// A head of a language model: its plain evaluation would take minutes.
TEST(CutDown, BatchesOfLargeProductsKeepFewRows) {
  MatmulAttrs attrs;
  Problem problem;
  problem.attributes = &attrs;
  problem.inputs = {linear({32, 512, 768}), linear({768, 50257})};
  problem.outputs = {linear({32, 512, 50257})};
  const Problem small = cut_down(problem);
  EXPECT_EQ(small.inputs[0].opt_dims, (Dims{2, 17, 768}));
  EXPECT_EQ(small.inputs[1].opt_dims, (Dims{768, 50257}));
  EXPECT_EQ(small.outputs[0].opt_dims, (Dims{2, 17, 50257}));
}

TEST(CutDown, ProductsKeepThePartsOfTheirOperands) {
  const MatmulAttrs matmul;
  Problem problem;
  problem.attributes = &matmul;
  problem.inputs = {operand({2, 512, 12, 64}, {512 * 768, 64, 512 * 64, 1}), linear({768, 768})};
  problem.inputs[0].reassociation = {2, 2};
  problem.outputs = {linear({1024, 768})};
  const Problem small = cut_down(problem);
  EXPECT_EQ(small.inputs[0].opt_dims, (Dims{1, 67, 12, 64}));
  EXPECT_EQ(small.inputs[0].opt_strides, (Dims{67 * 768, 64, 67 * 64, 1}));
  EXPECT_EQ(small.outputs[0].opt_dims, (Dims{67, 768}));

  problem.inputs[0].reassociation = {1, 1, 2};
  problem.outputs = {operand({2, 512, 12, 64}, {512 * 768, 64, 512 * 64, 1})};
  problem.outputs[0].reassociation = {1, 1, 2};
  EXPECT_EQ(cut_down(problem).outputs[0].opt_dims, (Dims{2, 67, 12, 64}));

  problem.inputs[0] = linear({2, 21, 768});  // there is nothing to cut
  problem.inputs[0].reassociation = {1, 1, 1};
  problem.outputs = {operand({2, 3, 7, 768}, {21 * 768, 768, 3 * 768, 1})};
  problem.outputs[0].reassociation = {1, 2, 1};
  EXPECT_EQ(cut_down(problem).outputs[0].opt_dims, (Dims{2, 3, 7, 768}));
}

// Rows that the product normalises are whole, and so are scales along them.
TEST(CutDown, NormalizedProductsKeepFewRows) {
  const MatmulAttrs matmul;
  const RmsNormalizationAttrs normalization;
  Problem problem;
  problem.attributes = &matmul;
  problem.inputs = {linear({1, 512, 8192}), linear({8192, 2048})};
  problem.outputs = {linear({1, 512, 2048}), linear({1, 512, 2048})};
  problem.outputs[1].normalization = &normalization;
  problem.program = *parse_program("in=2; r2=add r1 r0; out r2");
  problem.operands = {linear({1, 512, 2048}), linear({2048})};
  const Problem small = cut_down(problem);
  EXPECT_EQ(small.inputs[0].opt_dims, (Dims{1, 23, 8192}));
  EXPECT_EQ(small.outputs[0].opt_dims, (Dims{1, 23, 2048}));
  EXPECT_EQ(small.outputs[1].opt_dims, (Dims{1, 23, 2048}));
  EXPECT_EQ(small.operands[0].opt_dims, (Dims{1, 23, 2048}));
  EXPECT_EQ(small.operands[1].opt_dims, (Dims{2048}));
}

// A convolution whose channels are shuffled into the image.
TEST(CutDown, ConvolutionsKeepThePartsOfTheirChannels) {
  const ConvolutionAttrs attrs = convolution(1, 0);
  Problem problem;
  problem.attributes = &attrs;
  problem.inputs = {channels_last({8, 64, 90, 90}), channels_last({64, 64, 1, 1})};
  problem.outputs = {operand({8, 2, 2, 16, 90, 90}, {180 * 180 * 16, 180 * 16, 16, 1, 2 * 180 * 16, 2 * 16})};
  problem.outputs[0].reassociation = {1, 3, 1, 1};
  problem.operands = {operand({8, 2, 2, 16, 90, 90}, {0, 32, 16, 1, 0, 0})};
  const Problem small = cut_down(problem);
  EXPECT_EQ(small.outputs[0].opt_dims, (Dims{2, 2, 2, 16, 14, 14}));
  EXPECT_EQ(small.outputs[0].opt_strides, (Dims{28 * 28 * 16, 28 * 16, 16, 1, 2 * 28 * 16, 2 * 16}));
  EXPECT_EQ(small.operands[0].opt_strides, (Dims{0, 32, 16, 1, 0, 0}));
}

TEST(CutDown, OtherOpsKeepAllButTheirBatch) {
  SoftmaxAttrs softmax;
  softmax.axis = 1;
  Problem problem;
  problem.attributes = &softmax;
  problem.inputs = {linear({32768, 1000})};
  problem.outputs = {linear({32768, 1000})};
  EXPECT_EQ(cut_down(problem).outputs[0].opt_dims, (Dims{67, 1000}));

  ReduceAttrs reduce;
  reduce.axes = {0};
  reduce.keepdims = true;
  problem.attributes = &reduce;
  problem.outputs = {linear({1, 1000})};
  EXPECT_EQ(cut_down(problem).inputs[0].opt_dims, (Dims{32768, 1000})) << "what is reduced is not a batch";

  reduce.axes = {0, 1};
  reduce.keepdims = false;
  problem.outputs = {linear({})};
  EXPECT_EQ(cut_down(problem).inputs[0].opt_dims, (Dims{32768, 1000})) << "a number has no batch";
}

Problem product(const MatmulAttrs& attrs, const Dims& a, const Dims& b, Operand output) {
  Problem problem;
  problem.attributes = &attrs;
  problem.inputs = {linear(a), linear(b)};
  problem.outputs = {std::move(output)};
  problem.program = *parse_program("in=1; out r0");
  return problem;
}

TEST(CheckedColumns, AreTheFirstTheLastAndEachOfATile) {
  const MatmulAttrs attrs;
  for (const int64_t n : {50257, 128256, 151936, 262144}) {
    const std::vector<int64_t> columns = checked_columns(product(attrs, {17, 2048}, {2048, n}, linear({17, n})));
    EXPECT_LE(columns.size() * 17 * 2048, kMostCheckedProducts);
    EXPECT_TRUE(std::ranges::is_sorted(columns));
    EXPECT_EQ(std::ranges::adjacent_find(columns), columns.end());
    for (int64_t i = 0; i < 512; ++i) {
      ASSERT_EQ(columns[static_cast<size_t>(i)], i);
      ASSERT_EQ(*(columns.rbegin() + i), n - 1 - i);
    }
    for (const int64_t tile : {64, 96, 128, 160, 192, 224, 256}) {
      std::set<int64_t> residues;
      for (const int64_t column : columns)
        if (column >= n / 3 && column < n / 3 * 2) residues.insert(column % tile);
      EXPECT_EQ(residues.size(), static_cast<size_t>(tile)) << n;
    }
  }
}

TEST(CheckedColumns, AreAboutAsManyAsMayBe) {
  const MatmulAttrs attrs;
  for (const int64_t n : {4096, 5000, 12288, 128256}) {
    const std::vector<int64_t> columns = checked_columns(product(attrs, {67, 2048}, {2048, n}, linear({67, n})));
    const double products = static_cast<double>(columns.size()) * 67 * 2048;
    EXPECT_LE(products, kMostCheckedProducts) << n;
    EXPECT_GT(products, 0.9 * kMostCheckedProducts) << n;
  }
}

TEST(CheckedColumns, AreAllOfWhatIsQuickAndOfWhatHasNone) {
  const MatmulAttrs attrs;
  EXPECT_TRUE(checked_columns(product(attrs, {67, 1024}, {1024, 4096}, linear({67, 4096}))).empty());
  Problem wide = product(attrs, {17, 2048}, {2048, 128256}, linear({17, 128256}));
  EXPECT_FALSE(checked_columns(wide).empty());
  SoftmaxAttrs softmax;
  wide.outputs.back().normalization = &softmax;
  EXPECT_TRUE(checked_columns(wide).empty()) << "rows are normalised as a whole";
  wide.outputs.back().normalization = nullptr;
  wide.operands = {operand({128256}, {1})};
  EXPECT_TRUE(checked_columns(wide).empty()) << "what is read beside the product has other columns";
}

// What is compared of the columns, beside the same of all columns.
void expect_columns_of_all(const Problem& problem) {
  null::NullDevice device;
  const auto queue = device.make_queue();
  const std::vector<int64_t> columns = checked_columns(problem, 1);
  const auto all = TrialData::make(problem, TrialData::Use::check, device, **queue);
  const auto some = TrialData::make(problem, TrialData::Use::check, device, **queue, 1);
  ASSERT_TRUE(all && some && !columns.empty());
  const Result<std::vector<Expected>> wanted = (*all)->expected(0), expected = (*some)->expected(0);
  ASSERT_TRUE(wanted) << wanted.error().to_string();
  ASSERT_TRUE(expected) << expected.error().to_string();
  const Result<Tensor> memory = (*all)->gather_output(0, device, **queue);
  const Result<Tensor> got = (*some)->gather_output(0, device, **queue);
  ASSERT_TRUE(memory && got);
  const auto count = static_cast<int64_t>(columns.size()), width = opt_whole_dims(problem.outputs[0]).back();
  ASSERT_EQ(got->volume(), memory->volume() / width * count);
  ASSERT_EQ((*expected)[0].values.volume(), got->volume());
  for (int64_t i = 0; i < got->volume(); ++i) {
    const int64_t at = i / count * width + columns[static_cast<size_t>(i % count)];
    ASSERT_EQ(got->as<float>()[i], memory->as<float>()[at]) << i;
    ASSERT_EQ((*expected)[0].values.as<float>()[i], (*wanted)[0].values.as<float>()[at]) << i;
  }
}

TEST(CheckedColumns, HaveTheResultsThatAllHave) {
  MatmulAttrs attrs;
  expect_columns_of_all(product(attrs, {2, 3, 5}, {2, 5, 5003}, linear({2, 3, 5003})));
  Problem pairs = product(attrs, {3, 5}, {5, 2 * 5003}, linear({3, 5003}));
  pairs.pairs = true;
  pairs.program = *parse_program("in=2; r2=mul r0 r1; out r2");
  expect_columns_of_all(pairs);
  // Heads of [batch, head, row, size], with a bias and what is added.
  Problem heads = product(attrs, {6, 5}, {5, 4096}, operand({2, 3, 64, 64}, {3 * 4096, 64, 3 * 64, 1}));
  heads.outputs[0].reassociation = {2, 2};
  heads.operands = {operand({2, 3, 64, 64}, {0, 0, 64, 1}), operand({2, 3, 64, 64}, {3 * 4096, 4096, 64, 1})};
  heads.program = *parse_program("in=3; r3=mul r0 r1; r4=add r3 r2; out r4");
  expect_columns_of_all(heads);
  attrs.transpose_b = true;
  Problem levels = product(attrs, {3, 5}, {5003, 5}, operand({3, 5003}, {1, 3}));
  levels.inputs[1].program = *parse_program("in=2; r2=mul r0 r1; out r2");
  levels.inputs[1].operands = {operand({5003, 5}, {1, 0})};
  expect_columns_of_all(levels);
}

TEST(CheckedColumns, AreDequantizedAsAllAre) {
  MatmulAttrs attrs;
  for (const bool transposed : {false, true}) {
    attrs.transpose_b = transposed;
    const Dims dims = transposed ? Dims{3001, 64} : Dims{64, 3001}, blocks = transposed ? Dims{1, 32} : Dims{32, 1};
    const Tensor levels = random_tensor(DType::i8, dims, 1);
    const Tensor scales = random_tensor(DType::f32, transposed ? Dims{3001, 2} : Dims{2, 3001}, 2);
    Problem problem = product(attrs, {3, 64}, dims, linear({3, 3001}));
    Operand& weights = problem.inputs[1];
    weights.dtype = DType::i8;
    weights.constant = weights.weights = &levels;
    weights.program = *parse_program("in=2; r2=mul r0 r1; out r2");
    weights.operands = {linear(scales.dims())};
    weights.operands[0].constant = weights.operands[0].weights = &scales;
    weights.operands[0].blocks = blocks;
    expect_columns_of_all(problem);
  }
}

}  // namespace
}  // namespace lathe
