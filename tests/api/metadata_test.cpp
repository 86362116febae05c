// SPDX-License-Identifier: Apache-2.0
// What an engine tells of itself, and the bytes that it serializes to.
#include <cstring>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

using Metadata = EngineTest;

uint32_t word_at(const IHostMemory& plan, size_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, static_cast<const char*>(plan.data()) + offset, sizeof word);
  return word;
}

// Of a plan's first 28 bytes, tools for TensorRT read the tag, a zero, and the interface's version.
TEST_F(Metadata, PlansBeginAsToolsExpect) {
  const auto plan = build();
  EXPECT_EQ(word_at(*plan, 0), 0x74727466u);
  EXPECT_EQ(word_at(*plan, 4), 0u);
  const auto* bytes = static_cast<const unsigned char*>(plan->data());
  EXPECT_EQ(bytes[24], NV_TENSORRT_MAJOR);
  EXPECT_EQ(bytes[25], NV_TENSORRT_MINOR);
  EXPECT_EQ(bytes[26], NV_TENSORRT_PATCH);
  EXPECT_EQ(bytes[27], NV_TENSORRT_BUILD);
}

// S106, S110.
TEST_F(Metadata, OfAnEngine) {
  network->setName("small");
  const auto engine = load(*build());
  EXPECT_STREQ(engine->getName(), "small");
  EXPECT_GE(engine->getNbLayers(), 1);
  EXPECT_FALSE(engine->isRefittable());
  EXPECT_EQ(engine->getEngineCapability(), EngineCapability::kSTANDARD);
  EXPECT_EQ(engine->getProfilingVerbosity(), ProfilingVerbosity::kLAYER_NAMES_ONLY);
  EXPECT_EQ(engine->getHardwareCompatibilityLevel(), HardwareCompatibilityLevel::kNONE);
  EXPECT_EQ(engine->getNbAuxStreams(), 0);
  EXPECT_EQ(engine->getStreamableWeightsSize(), 0);
  EXPECT_EQ(engine->getWeightStreamingBudgetV2(), 0);
  EXPECT_EQ(engine->getWeightStreamingScratchMemorySize(), 0);
  EXPECT_TRUE(engine->setWeightStreamingBudgetV2(0));
  EXPECT_GE(engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE), 8 * 4);
  EXPECT_EQ(engine->getEngineStat(EngineStat::kSTRIPPED_WEIGHTS_SIZE), -1);
  EXPECT_EQ(engine->getTensorFormat("x"), TensorFormat::kLINEAR);
  EXPECT_EQ(engine->getTensorComponentsPerElement("x"), -1);
  EXPECT_EQ(engine->getTensorLocation("x"), TensorLocation::kDEVICE);
  EXPECT_EQ(engine->getAliasedInputTensor("y"), nullptr);
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

TEST_F(Metadata, EnginesSerializeToTheirPlan) {
  const auto plan = build();
  const auto engine = load(*plan);
  const std::unique_ptr<ISerializationConfig> flags(engine->createSerializationConfig());
  EXPECT_EQ(flags->getFlags(), 0u);
  EXPECT_TRUE(flags->setFlag(SerializationFlag::kEXCLUDE_LEAN_RUNTIME));
  EXPECT_TRUE(flags->setFlag(SerializationFlag::kEXCLUDE_WEIGHTS));
  EXPECT_EQ(engine->serializeWithConfig(*flags), nullptr);  // nothing could give them back
  EXPECT_EQ(logger.text.size(), 1u);
  EXPECT_TRUE(flags->clearFlag(SerializationFlag::kEXCLUDE_WEIGHTS));
  EXPECT_EQ(flags->getFlags(), 1U << static_cast<int>(SerializationFlag::kEXCLUDE_LEAN_RUNTIME));
  for (const std::unique_ptr<IHostMemory>& again :
       {std::unique_ptr<IHostMemory>(engine->serialize()),
        std::unique_ptr<IHostMemory>(engine->serializeWithConfig(*flags))}) {
    ASSERT_EQ(again->size(), plan->size());
    EXPECT_EQ(std::memcmp(again->data(), plan->data(), plan->size()), 0);
    EXPECT_EQ(again->type(), DataType::kINT8);
  }
}

}  // namespace
}  // namespace nvinfer1
