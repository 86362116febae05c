// SPDX-License-Identifier: Apache-2.0
// Modes of layers against what they mean, element by element.
#include <cmath>

#include "api/layers_world.h"

namespace nvinfer1::layers {
namespace {

// The element of an axis that position i stands for; -1: none.
int64_t source(int64_t i, int64_t extent, SampleMode mode) {
  if (i >= 0 && i < extent) return i;
  if (mode == SampleMode::kFILL) return -1;
  if (mode == SampleMode::kCLAMP) return i < 0 ? 0 : extent - 1;
  while (i < 0 || i >= extent) {
    if (mode == SampleMode::kWRAP) {
      i += i < 0 ? extent : -extent;
    } else {
      if (extent == 1) return 0;
      i = i < 0 ? -i : 2 * (extent - 1) - i;
    }
  }
  return i;
}

struct Case {
  int64_t start, size, stride;
};

// Of x[2, extent], which counts from -2.
std::string sliced(int64_t extent, const Case& c, SampleMode mode) {
  std::string text = fmt::format("f32[2, {}]:", c.size);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t i = 0; i < c.size; ++i) {
      const int64_t from = source(c.start + i * c.stride, extent, mode);
      text += fmt::format(" {:.4g}", from < 0 ? 9.0 : static_cast<double>(row * extent + from - 2));
    }
  return text;
}

constexpr SampleMode kModes[] = {SampleMode::kFILL, SampleMode::kCLAMP, SampleMode::kWRAP, SampleMode::kREFLECT};

TEST(SliceModes, KnownBounds) {
  for (const int64_t extent : {1, 2, 4})
    for (const Case& c : {Case{-1, 6, 1},
                          {-7, 20, 1},
                          {2, 6, 1},
                          {-3, 4, 2},
                          {5, 7, -2},
                          {-2, 3, 0},
                          {0, 1, 1},
                          {-1, 0, 1},
                          {0, 4, 1},
                          {0, 9, 1}})
      for (const SampleMode mode : kModes) {
        Net n;
        auto* layer =
            n.network->addSlice(n.input(Dims2(2, extent)), Dims2(0, c.start), Dims2(2, c.size), Dims2(1, c.stride));
        layer->setMode(mode);
        if (mode == SampleMode::kFILL) layer->setInput(4, n.constant(dims({}), {9}));
        EXPECT_EQ(n.result(*layer), sliced(extent, c, mode))
            << extent << ": " << c.start << " " << c.size << " " << c.stride << " mode " << static_cast<int>(mode);
        EXPECT_TRUE(extent < 4 || n.builds()) << n.log.text();
      }
}

// Start, size and stride come as inputs of the layer: the network's, whose content is -2, and a shape.
TEST(SliceModes, ComputedBounds) {
  for (const SampleMode mode : kModes) {
    Net n;
    ITensor& x = n.input(Dims2(2, 4));
    ITensor& start = n.input(dims({1}), DataType::kINT64);
    ITensor& seven = *n.network->addShape(n.input(dims({7})))->getOutput(0);
    auto* layer = n.network->addSlice(x, {}, {}, {});
    layer->setAxes(dims({1}));
    layer->setInput(1, start);
    layer->setInput(2, seven);
    layer->setInput(3, n.numbers({1}));
    layer->setMode(mode);
    if (mode == SampleMode::kFILL) layer->setInput(4, n.constant(dims({}), {9}));
    EXPECT_EQ(n.result(*layer), sliced(4, {-2, 7, 1}, mode)) << static_cast<int>(mode);
  }
}

TEST(SliceModes, StrictSlicesThatRepeatOrGoBack) {
  for (const bool computed : {false, true})
    for (const Case& c : {Case{1, 3, 0}, {3, 3, -1}, {0, 2, 2}, {2, 0, 0}}) {
      Net n;
      auto* layer = n.network->addSlice(n.input(Dims2(2, 4)), Dims2(0, c.start), Dims2(2, c.size), Dims2(1, c.stride));
      if (computed) {  // by a shape that counts the elements
        ITensor& counted = *n.network->addShape(n.input(Dims2(2, c.size)))->getOutput(0);
        layer->setInput(2, counted);
      }
      EXPECT_EQ(n.result(*layer), sliced(4, c, SampleMode::kSTRICT_BOUNDS)) << computed << " " << c.start;
    }
  Net n;
  auto* layer = n.network->addSlice(n.input(dims({4})), dims({9}), dims({2}), dims({0}));
  layer->setName("far");
  EXPECT_FALSE(n.builds() && n.result(*layer).empty());
  EXPECT_NE(n.result(*layer).find("'far'"), std::string::npos) << n.result(*layer);
}

// data[b, p, axis, q], indices[b, i...] -> y[b, p, i..., q], wherever the axis is.
TEST(GatherModes, EntriesOfABatchAreGatheredByTheirOwnIndices) {
  for (const int32_t axis : {1, 2, 3, -1}) {
    Net n;
    const int64_t sizes[] = {2, 3, 4, 2};
    ITensor& x = n.input(Dims4(2, 3, 4, 2));
    auto* layer = n.network->addGather(x, n.shaped(Dims3(2, 1, 2), {1, 0, 0, -1}), axis);
    layer->setNbElementWiseDims(1);
    const int64_t at = axis < 0 ? 3 : axis;
    const int64_t picks[2][2] = {{1, 0}, {0, sizes[at] - 1}};
    std::vector<int64_t> out = {2};
    int64_t before = 1, behind = 1;
    for (int64_t d = 1; d < 4; ++d) {
      if (d < at) before *= sizes[d];
      if (d > at) behind *= sizes[d];
      if (d != at) out.push_back(sizes[d]);
    }
    out.insert(out.begin() + at, {1, 2});
    std::string want = fmt::format("f32[{}]:", fmt::join(out, ", "));
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t p = 0; p < before; ++p)
        for (const int64_t pick : picks[b])
          for (int64_t q = 0; q < behind; ++q)
            want += fmt::format(" {:.4g}", double(((b * before + p) * sizes[at] + pick) * behind + q - 2));
    EXPECT_EQ(n.result(*layer), want) << axis;
    EXPECT_TRUE(n.log.errors.empty()) << n.log.text();
  }
}

TEST(PaddingModes, OfAnyOfTheLastDimensions) {
  Net n;
  auto* one = n.network->addPaddingNd(n.input(dims({2})), dims({1}), dims({2}));
  EXPECT_EQ(n.result(*one), "f32[5]: 0 -2 -1 0 0");
  Net m;
  auto* three = m.network->addPaddingNd(m.input(Dims4(1, 1, 1, 2)), Dims3(1, 0, 0), Dims3(0, 0, -1));
  EXPECT_EQ(m.result(*three), "f32[1, 2, 1, 1]: 0 -2");
}

TEST(FillModes, RandomNumbersAreOfTheAskedDistribution) {
  for (const FillOperation operation : {FillOperation::kRANDOM_UNIFORM, FillOperation::kRANDOM_NORMAL}) {
    Net n;
    auto* layer = n.network->addFill(Dims2(40, 50), operation, DataType::kFLOAT);
    auto* other = n.network->addFill(Dims2(40, 50), operation, DataType::kFLOAT);
    layer->setAlpha(3);
    layer->setInput(2, n.constant(dims({}), {5}));
    other->setAlpha(3), other->setBeta(5);
    const auto numbers = [&](ILayer& from) {
      std::istringstream text(n.result(from));
      std::vector<double> values;
      std::string word;
      text >> word >> word;
      while (values.size() < 2000 && text >> word) values.push_back(std::stod(word));
      return values;
    };
    const std::vector<double> values = numbers(*layer);
    ASSERT_EQ(values.size(), 2000u);
    double mean = 0, square = 0;
    for (const double value : values) mean += value / 2000, square += value * value / 2000;
    const double deviation = std::sqrt(square - mean * mean);
    const bool uniform = operation == FillOperation::kRANDOM_UNIFORM;
    EXPECT_NEAR(mean, uniform ? 4 : 3, uniform ? 0.06 : 0.45);
    EXPECT_NEAR(deviation, uniform ? 0.577 : 5, uniform ? 0.04 : 0.35);
    if (uniform) {
      EXPECT_GE(*std::min_element(values.begin(), values.end()), 3);
      EXPECT_LT(*std::max_element(values.begin(), values.end()), 5.0001);
    }
    EXPECT_TRUE(n.log.errors.empty()) << n.log.text();
  }
}

// Two layers and two runs give other numbers.
TEST(FillModes, RandomNumbersDiffer) {
  Net n;
  auto* a = n.network->addFill(dims({4}), FillOperation::kRANDOM_UNIFORM, DataType::kFLOAT);
  auto* b = n.network->addFill(dims({4}), FillOperation::kRANDOM_UNIFORM, DataType::kFLOAT);
  auto* same_numbers = n.network->addElementWise(*a->getOutput(0), *b->getOutput(0), ElementWiseOperation::kEQUAL);
  const std::string first = n.result(*same_numbers);
  EXPECT_EQ(first.substr(first.find("bool")), "bool[4]: 0 0 0 0");
}

// Each row has as many entries as its bound says; what is beyond is 0.
TEST(RaggedSoftMax, EndsAtTheBounds) {
  Net n;
  auto* layer = n.network->addRaggedSoftMax(n.constant(Dims2(3, 3), {0, 0, 50, 1, 1, 1, 7, 7, 7}),
                                            n.shaped(Dims2(3, 1), {2, 3, 0}));
  EXPECT_EQ(n.result(*layer), "f32[3, 3]: 0.5 0.5 0 0.3333 0.3333 0.3333 0 0 0");
  EXPECT_TRUE(n.builds()) << n.log.text();
  Net m;
  auto* wrong = m.network->addRaggedSoftMax(m.input(Dims2(3, 3)), m.shaped(dims({3}), {2, 3, 0}));
  EXPECT_EQ(wrong->getOutput(0)->getDimensions().nbDims, -1);
  EXPECT_NE(m.log.text().find("bounds have the dimensions of the input but for the last"), std::string::npos);
}

// Blocks along one axis are blocks of a shape, too.
TEST(DynamicQuantization, AnAxisAndABlockSizeMeanABlockShape) {
  Net n;
  const auto x = [&]() -> ITensor& { return n.constant(Dims2(2, 4), {4, 1, 0, -2, 8, 1, 0, 1}); };
  auto* by_axis = n.network->addDynamicQuantize(x(), 1, 2, DataType::kINT8, DataType::kFLOAT);
  ASSERT_NE(by_axis, nullptr) << n.log.text();
  EXPECT_EQ(by_axis->getAxis(), 1);
  EXPECT_EQ(by_axis->getBlockSize(), 2);
  EXPECT_EQ(n.result(*by_axis), "i8[2, 4]: 127 32 0 -127 127 16 0 127; f32[2, 2]: 0.0315 0.01575 0.06299 0.007874");
  Net m;
  auto* by_shape = m.network->addDynamicQuantizeV2(m.constant(Dims2(2, 4), {4, 1, 0, -2, 8, 1, 0, 1}), Dims2(1, 2),
                                                   DataType::kINT8, DataType::kFLOAT);
  EXPECT_EQ(m.result(*by_shape), n.result(*by_axis));
  EXPECT_TRUE(n.builds() && m.builds()) << n.log.text() << m.log.text();
}

// Boxes of each class: class 0 keeps its first, for they are equal; class 1 keeps both.
TEST(NonMaximumSuppression, KnowsBoxesOfEachClass) {
  Net n;
  auto* layer = n.network->addNMS(n.constant(Dims4(1, 2, 2, 4), {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6}),
                                  n.constant(Dims3(1, 2, 2), {0.9f, 0.3f, 0.8f, 0.7f}), n.shaped(dims({}), {5}),
                                  DataType::kINT64);
  EXPECT_EQ(n.result(*layer), "i64[3, 3]: 0 0 0 0 1 1 0 1 0; i32[]: 3");
  layer->setInput(4, n.constant(dims({}), {0.5f}));
  EXPECT_EQ(n.result(*layer), "i64[2, 3]: 0 0 0 0 1 1; i32[]: 2");
  EXPECT_TRUE(n.builds()) << n.log.text();
}

TEST(TensorKinds, TellWhatTheContentIsFor) {
  Net n;
  ITensor& x = n.input(Dims2(2, 3));
  ITensor& target = n.numbers({3, 2});
  ITensor& both = n.numbers({1, 0, 1});
  auto* reshaped = n.network->addShuffle(x);
  reshaped->setInput(1, target);
  auto* gathered = n.network->addGather(*reshaped->getOutput(0), both, 0);
  ITensor& shape = *n.network->addShape(*gathered->getOutput(0))->getOutput(0);
  EXPECT_TRUE(target.isShapeTensor());
  EXPECT_FALSE(target.isExecutionTensor());
  EXPECT_TRUE(both.isExecutionTensor());
  EXPECT_TRUE(x.isExecutionTensor());
  EXPECT_FALSE(x.isShapeTensor());
  EXPECT_FALSE(shape.isExecutionTensor());
  n.network->markOutput(shape);
  EXPECT_TRUE(shape.isExecutionTensor());
  EXPECT_TRUE(shape.isShapeTensor());
}

}  // namespace
}  // namespace nvinfer1::layers
