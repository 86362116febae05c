// SPDX-License-Identifier: Apache-2.0
// Timing caches that can be edited: a build keeps every tactic that it measured, and takes the one that is put first.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <regex>
#include <vector>

#include "NvInfer.h"
#include "api/target.h"
#include "lathe.h"

namespace nvinfer1 {
namespace {

struct InfoLines : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity == Severity::kINFO) lines.emplace_back(message);
  }
  std::vector<std::string> lines;
};

class EditableTimingCache : public testing::Test {
 protected:
  EditableTimingCache() {
    const int64_t smaller = on_gpu() ? 8 : 1;  // the emulator is slow
    const int64_t rows = 96 / smaller, inner = 256 / smaller, columns = 64 / smaller;
    weights_.assign(static_cast<size_t>(inner * columns), 0.01F);
    ITensor* x = network_->addInput("x", DataType::kFLOAT, Dims2(rows, inner));
    const Weights weights{DataType::kFLOAT, weights_.data(), inner * columns};
    ITensor* w = network_->addConstant(Dims2(inner, columns), weights)->getOutput(0);
    ITensor* y = network_->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
    y->setName("y");
    network_->markOutput(*y);
    config_->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    config_->setFlag(BuilderFlag::kEDITABLE_TIMING_CACHE);
    lathe::setBuildBudget(*config_, 20);
    use(std::unique_ptr<ITimingCache>(config_->createTimingCache(nullptr, 0)));
  }
  void use(std::unique_ptr<ITimingCache> cache) {
    ASSERT_TRUE(cache);
    ASSERT_TRUE(config_->setTimingCache(*cache, false));
    cache_ = std::move(cache);
  }
  // What the engine's steps are, as the inspector shows them.
  std::string build() {
    logger_.lines.clear();
    const std::unique_ptr<IHostMemory> plan(builder_->buildSerializedNetwork(*network_, *config_));
    EXPECT_TRUE(plan) << lathe::lastError();
    if (!plan) return "";
    const std::unique_ptr<ICudaEngine> engine(runtime_->deserializeCudaEngine(plan->data(), plan->size()));
    EXPECT_TRUE(engine) << lathe::lastError();
    const std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
    return inspector->getEngineInformation(LayerInformationFormat::kJSON);
  }
  std::vector<TimingCacheKey> keys() const {
    std::vector<TimingCacheKey> keys(static_cast<size_t>(cache_->queryKeys(nullptr, 0)));
    EXPECT_EQ(cache_->queryKeys(keys.data(), static_cast<int64_t>(keys.size())), static_cast<int64_t>(keys.size()));
    return keys;
  }
  // By the key's digits, the hashes that the log offers.
  std::map<std::string, std::vector<uint64_t>> offers() const {
    const std::regex key(R"(\[EditableTimingCache\] Autotuning op .+\(key: 0x([0-9a-f]{32})\): .+)");
    const std::regex tactic(R"(\[EditableTimingCache\] \d+, [\d.]+, [\d.]+, [\d.]+, [^,]+, 0x([0-9a-f]{16}))");
    const std::regex chosen(R"(\[EditableTimingCache\] The selected tactic is .*:0x([0-9a-f]{16}), [\d.]+)");
    std::map<std::string, std::vector<uint64_t>> offers;
    std::string last;
    std::smatch match;
    for (const std::string& line : logger_.lines)
      if (std::regex_match(line, match, key)) {
        offers[last = match[1]];
      } else if (std::regex_match(line, match, tactic)) {
        offers[last].push_back(std::stoull(match[1], nullptr, 16));
      } else if (std::regex_match(line, match, chosen)) {
        EXPECT_EQ(std::stoull(match[1], nullptr, 16), offers[last].front());
      }
    return offers;
  }
  static std::string digits(const TimingCacheKey& key) {
    std::string text;
    for (const uint8_t byte : key.data) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", byte);
      text += digits;
    }
    return text;
  }
  static std::string value_text(uint64_t hash) {
    char text[19];
    std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(hash));
    return text;
  }

  InfoLines logger_;
  std::vector<float> weights_;
  std::unique_ptr<IBuilder> builder_{createInferBuilder(logger_)};
  std::unique_ptr<IRuntime> runtime_{createInferRuntime(logger_)};
  std::unique_ptr<INetworkDefinition> network_{builder_->createNetworkV2(0)};
  std::unique_ptr<IBuilderConfig> config_{builder_->createBuilderConfig()};
  std::unique_ptr<ITimingCache> cache_;
};

// S163, with each tactic that is on offer, also after the cache was written and read.
TEST_F(EditableTimingCache, ForcesATactic) {
  build();
  ASSERT_EQ(keys().size(), 1u);
  const TimingCacheKey key = keys()[0];
  const std::vector<uint64_t> hashes = offers()[digits(key)];
  ASSERT_GE(hashes.size(), 2u);
  EXPECT_EQ(cache_->query(key).tacticHash, hashes[0]);  // the fastest
  for (const uint64_t hash : hashes) {
    ASSERT_TRUE(cache_->update(key, {hash, 0.125F})) << lathe::lastError();
    EXPECT_EQ(cache_->query(key).tacticHash, hash);
    EXPECT_EQ(cache_->query(key).timingMSec, 0.125F);
    EXPECT_NE(build().find("\"TacticValue\": \"" + value_text(hash)), std::string::npos) << build();
    EXPECT_EQ(offers()[digits(key)], std::vector<uint64_t>{hash});
    const std::unique_ptr<IHostMemory> bytes(cache_->serialize());
    use(std::unique_ptr<ITimingCache>(config_->createTimingCache(bytes->data(), bytes->size())));
    EXPECT_EQ(cache_->query(key).tacticHash, hash);
  }
}

TEST_F(EditableTimingCache, RefusesWhatIsNotOnOffer) {
  build();
  ASSERT_EQ(keys().size(), 1u);
  const TimingCacheKey key = keys()[0];
  const TimingCacheValue before = cache_->query(key);
  EXPECT_FALSE(cache_->update(key, {before.tacticHash ^ 1, 1}));
  EXPECT_NE(std::string(lathe::lastError()).find("none of the entry's"), std::string::npos) << lathe::lastError();
  EXPECT_FALSE(cache_->update(key, {TimingCacheValue::kINVALID_TACTIC_HASH, 1}));
  EXPECT_FALSE(cache_->update(key, {before.tacticHash, NAN}));
  EXPECT_FALSE(cache_->update(key, {before.tacticHash, -1}));
  EXPECT_FALSE(cache_->update(key, {before.tacticHash, INFINITY}));
  EXPECT_FALSE(cache_->update(TimingCacheKey{}, before));
  EXPECT_EQ(cache_->query(key).tacticHash, before.tacticHash);
  EXPECT_EQ(cache_->query(key).timingMSec, before.timingMSec);
}

// Without the flag nothing else is kept: the entry can be confirmed.
TEST_F(EditableTimingCache, KeepsNothingUnlessAsked) {
  build();
  const TimingCacheKey key = keys()[0];
  const std::vector<uint64_t> hashes = offers()[digits(key)];
  ASSERT_GE(hashes.size(), 2u);
  use(std::unique_ptr<ITimingCache>(config_->createTimingCache(nullptr, 0)));
  config_->clearFlag(BuilderFlag::kEDITABLE_TIMING_CACHE);
  build();
  EXPECT_TRUE(offers().empty());
  const uint64_t chosen = cache_->query(key).tacticHash;
  EXPECT_TRUE(cache_->update(key, {chosen, 1}));
  for (const uint64_t hash : hashes) EXPECT_EQ(cache_->update(key, {hash, 1}), hash == chosen);
}

}  // namespace
}  // namespace nvinfer1
