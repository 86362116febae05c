// SPDX-License-Identifier: Apache-2.0
// Attentions, built and run, against what they mean, element by element.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

using V = std::vector<float>;

struct Sizes {
  int64_t batch, query_heads, heads, queries, keys, size, value_size;
};

// Whether a query sees a key, and what is added to the score.
using Sees = std::function<bool(int64_t b, int64_t h, int64_t i, int64_t j)>;
using Added = std::function<float(int64_t b, int64_t h, int64_t i, int64_t j)>;

V reference(const Sizes& s, const V& q, const V& k, const V& v, bool softmax, const Sees& sees, const Added& added) {
  V y;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.query_heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t group = b * s.heads + h / (s.query_heads / s.heads);
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          double score = 0;
          for (int64_t c = 0; c < s.size; ++c)
            score += double{q[((b * s.query_heads + h) * s.queries + i) * s.size + c]} *
                     k[(group * s.keys + j) * s.size + c];
          score += added(b, h, i, j);
          weights.push_back(!sees(b, h, i, j) ? 0 : softmax ? std::exp(score) : score);
          sum += weights.back();
        }
        for (int64_t c = 0; c < s.value_size; ++c) {
          double result = 0;
          for (int64_t j = 0; j < s.keys; ++j) result += weights[j] * v[(group * s.keys + j) * s.value_size + c];
          y.push_back(static_cast<float>(softmax ? result / sum : result));
        }
      }
  return y;
}

bool sees_all(int64_t, int64_t, int64_t, int64_t) { return true; }
float adds_nothing(int64_t, int64_t, int64_t, int64_t) { return 0; }

class AttentionTest : public NetworkTest {
 protected:
  V random(int64_t count) {
    V values(static_cast<size_t>(count));
    for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(generator);
    return values;
  }
  // An input of the network with room for these dims, of which the first and the third are open if there are four.
  template <class T>
  ITensor& input(const char* name, DataType type, Dims dims, std::vector<T>& values) {
    Dims open = dims;
    if (open_dims && dims.nbDims == 4) open.d[0] = open.d[2] = -1;
    ITensor& tensor = *network->addInput(name, type, open);
    if (open_dims && dims.nbDims == 4)
      for (const auto selector : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
        Dims at = dims;
        if (selector == OptProfileSelector::kMIN) at.d[0] = at.d[2] = 1;
        profile->setDimensions(name, selector, at);
      }
    given.push_back({name, dims, values.data()});
    return tensor;
  }
  IAttention& attend(const Sizes& s, AttentionNormalizationOp op, CausalMaskKind causal) {
    q = random(s.batch * s.query_heads * s.queries * s.size), k = random(s.batch * s.heads * s.keys * s.size);
    v = random(s.batch * s.heads * s.keys * s.value_size);
    ITensor& queries = input("q", DataType::kFLOAT, Dims4(s.batch, s.query_heads, s.queries, s.size), q);
    ITensor& keys = input("k", DataType::kFLOAT, Dims4(s.batch, s.heads, s.keys, s.size), k);
    ITensor& values = input("v", DataType::kFLOAT, Dims4(s.batch, s.heads, s.keys, s.value_size), v);
    return *network->addAttentionV2(queries, keys, values, op, causal);
  }
  V run(IAttention& attention, int64_t count) {
    V y(static_cast<size_t>(count), -77);
    mark(attention.getOutput(0), "y");
    if (open_dims) config->addOptimizationProfile(profile);
    config->clearFlag(BuilderFlag::kTF32);  // in which GPUs multiply with ten bits
    const bool is_made = make_context();
    EXPECT_TRUE(is_made) << logger.last();
    if (!is_made) return y;
    for (const Given& tensor : given) {
      EXPECT_TRUE(context->setInputShape(tensor.name, tensor.dims)) << logger.last();
      EXPECT_TRUE(context->setTensorAddress(tensor.name, tensor.data)) << logger.last();
    }
    EXPECT_TRUE(context->setTensorAddress("y", y.data())) << logger.last();
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    return y;
  }
  static void expect_near(const V& y, const V& wanted) {
    ASSERT_EQ(y.size(), wanted.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 1e-5) << i;
  }

  struct Given {
    const char* name;
    Dims dims;
    void* data;
  };
  bool open_dims = true;
  std::mt19937 generator{7};
  V q, k, v;
  std::vector<Given> given;
  IOptimizationProfile* profile = builder->createOptimizationProfile();
};

constexpr Sizes kGrouped{2, 6, 2, 3, 5, 8, 4};
int64_t count_of(const Sizes& s) { return s.batch * s.query_heads * s.queries * s.value_size; }

TEST_F(AttentionTest, HeadsOfQueriesShareKeys) {
  IAttention& attention = attend(kGrouped, AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kNONE);
  expect_near(run(attention, count_of(kGrouped)), reference(kGrouped, q, k, v, true, sees_all, adds_nothing));
}

TEST_F(AttentionTest, OfScoresThatAreNotNormalised) {
  IAttention& attention = attend(kGrouped, AttentionNormalizationOp::kNONE, CausalMaskKind::kUPPER_LEFT);
  const auto sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i; };
  expect_near(run(attention, count_of(kGrouped)), reference(kGrouped, q, k, v, false, sees, adds_nothing));
}

// No kernel takes scores that are not normalised: the attention is products, and a build says so unless it may be.
TEST_F(AttentionTest, ABuildTellsOfThoseThatAreSplit) {
  logger.most = ILogger::Severity::kWARNING;
  const auto warnings_of = [&](AttentionNormalizationOp op, bool is_decomposable) {
    network.reset(builder->createNetworkV2(0)), config.reset(builder->createBuilderConfig());
    lathe::setBuildBudget(*config, 0);
    profile = builder->createOptimizationProfile(), given.clear();
    IAttention& attention = attend(kGrouped, op, CausalMaskKind::kNONE);
    EXPECT_TRUE(attention.setName("the attention"));
    EXPECT_TRUE(attention.setDecomposable(is_decomposable));
    EXPECT_EQ(attention.getDecomposable(), is_decomposable);
    logger.text.clear();
    run(attention, count_of(kGrouped));
    return std::ranges::count_if(logger.text, [](const std::string& line) {
      return line.find("no kernel takes attention 'the attention' whole, so that it is computed in") !=
             std::string::npos;
    });
  };
  EXPECT_EQ(warnings_of(AttentionNormalizationOp::kNONE, false), 1);
  EXPECT_EQ(warnings_of(AttentionNormalizationOp::kNONE, true), 0);
  EXPECT_EQ(warnings_of(AttentionNormalizationOp::kSOFTMAX, false), 0);
}

TEST_F(AttentionTest, UpperLeft) {
  IAttention& attention = attend(kGrouped, AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kUPPER_LEFT);
  const auto sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i; };
  expect_near(run(attention, count_of(kGrouped)), reference(kGrouped, q, k, v, true, sees, adds_nothing));
}

TEST_F(AttentionTest, LowerRight) {
  IAttention& attention = attend(kGrouped, AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kLOWER_RIGHT);
  const auto sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + kGrouped.keys - kGrouped.queries; };
  expect_near(run(attention, count_of(kGrouped)), reference(kGrouped, q, k, v, true, sees, adds_nothing));
}

TEST_F(AttentionTest, MasksOfTruthsHideAndNumbersAreAdded) {
  open_dims = false;
  for (const bool truths : {false, true})
    for (const bool softmax : {false, true}) {
      std::vector<uint8_t> hides(static_cast<size_t>(kGrouped.queries * kGrouped.keys));
      V adds = random(kGrouped.queries * kGrouped.keys);
      for (size_t i = 0; i < hides.size(); ++i) hides[i] = i % 3 != 1;
      network.reset(builder->createNetworkV2(0)), config.reset(builder->createBuilderConfig());
      config->setBuilderOptimizationLevel(0);  // measuring takes an emulated GPU half a minute
      profile = builder->createOptimizationProfile(), given.clear();
      IAttention& attention =
          attend(kGrouped, softmax ? AttentionNormalizationOp::kSOFTMAX : AttentionNormalizationOp::kNONE,
                 CausalMaskKind::kNONE);
      const Dims4 dims(1, 1, kGrouped.queries, kGrouped.keys);
      ITensor& mask = *network->addInput("mask", truths ? DataType::kBOOL : DataType::kFLOAT, dims);
      given.push_back({"mask", dims, truths ? static_cast<void*>(hides.data()) : adds.data()});
      EXPECT_TRUE(attention.setMask(mask));
      const auto at = [](int64_t i, int64_t j) { return static_cast<size_t>(i * kGrouped.keys + j); };
      const auto sees = [&](int64_t, int64_t, int64_t i, int64_t j) { return !truths || hides[at(i, j)] != 0; };
      const auto added = [&](int64_t, int64_t, int64_t i, int64_t j) { return truths ? 0 : adds[at(i, j)]; };
      expect_near(run(attention, count_of(kGrouped)), reference(kGrouped, q, k, v, softmax, sees, added));
    }
}

// Sequences of 1, 0 and 4 tokens, and two tokens behind them, over sequences of 3, 2 and 2 keys.
TEST_F(AttentionTest, PackedSequences) {
  open_dims = false;
  for (const CausalMaskKind causal : {CausalMaskKind::kNONE, CausalMaskKind::kUPPER_LEFT}) {
    network.reset(builder->createNetworkV2(0)), config.reset(builder->createBuilderConfig());
    profile = builder->createOptimizationProfile(), given.clear();
    constexpr int64_t kHeads = 2, kSize = 3;
    q = random(7 * 2 * kHeads * kSize), k = random(7 * kHeads * kSize), v = random(7 * kHeads * kSize);
    std::vector<int32_t> starts = {0, 1, 1, 5}, key_starts = {0, 3, 5, 7};
    ITensor& queries = input("q", DataType::kFLOAT, Dims3(7, 2 * kHeads, kSize), q);
    ITensor& keys = input("k", DataType::kFLOAT, Dims3(7, kHeads, kSize), k);
    ITensor& values = input("v", DataType::kFLOAT, Dims3(7, kHeads, kSize), v);
    const Dims four{1, {4}};
    IAttention& attention = *network->addAttentionV2(queries, keys, values, AttentionNormalizationOp::kSOFTMAX, causal);
    EXPECT_TRUE(attention.setQueryForm(AttentionIOForm::kPACKED_NHD));
    EXPECT_TRUE(attention.setKeyValueForm(AttentionIOForm::kPACKED_NHD));
    EXPECT_TRUE(attention.setQueryLengths(&input("s", DataType::kINT32, four, starts)));
    EXPECT_TRUE(attention.setKeyValueLengths(&input("t", DataType::kINT32, four, key_starts)));
    V wanted(static_cast<size_t>(7 * 2 * kHeads * kSize));
    for (size_t b = 0; b + 1 < starts.size(); ++b)
      for (int64_t h = 0; h < 2 * kHeads; ++h)
        for (int32_t i = starts[b]; i < starts[b + 1]; ++i) {
          double sum = 0, result[kSize] = {};
          for (int32_t j = key_starts[b]; j < key_starts[b + 1]; ++j) {
            if (causal == CausalMaskKind::kUPPER_LEFT && j - key_starts[b] > i - starts[b]) continue;
            double score = 0;
            for (int64_t c = 0; c < kSize; ++c)
              score += double{q[(i * 2 * kHeads + h) * kSize + c]} * k[(j * kHeads + h / 2) * kSize + c];
            sum += std::exp(score);
            for (int64_t c = 0; c < kSize; ++c) result[c] += std::exp(score) * v[(j * kHeads + h / 2) * kSize + c];
          }
          for (int64_t c = 0; c < kSize; ++c)
            wanted[(i * 2 * kHeads + h) * kSize + c] = static_cast<float>(result[c] / sum);
        }
    expect_near(run(attention, 7 * 2 * kHeads * kSize), wanted);
  }
}

}  // namespace
}  // namespace nvinfer1
