// SPDX-License-Identifier: Apache-2.0
// Plans that come from stream readers.
#include <cstring>
#include <stdexcept>

#include "api/small_engine.h"
#include "plan/header.h"

namespace nvinfer1 {
namespace {

using Bytes = std::vector<std::byte>;

// Reads as std::ifstream does in trtexec: a read that comes short is the last one that succeeds.
struct FileReader : IStreamReaderV2 {
  int64_t read(void* target, int64_t count, cudaStream_t) noexcept override {
    if (at_end) return -1;
    const int64_t given = std::min({count, static_cast<int64_t>(bytes.size() - position), most});
    if (given < count && most == INT64_MAX) at_end = true;
    if (given > 0) std::memcpy(target, bytes.data() + position, static_cast<size_t>(given));
    position += static_cast<size_t>(given);
    return given;
  }
  bool seek(int64_t, SeekPosition) noexcept override { return false; }
  Bytes bytes;
  size_t position = 0;
  int64_t most = INT64_MAX;  // that one call gives
  bool at_end = false;
};

struct OldReader : IStreamReader {
  int64_t read(void* target, int64_t count) override {
    if (throws) throw std::runtime_error("no");
    return file.read(target, count, nullptr);
  }
  FileReader file;
  bool throws = false;
};

struct BadReader : IStreamReaderV2 {
  int64_t read(void*, int64_t count, cudaStream_t) noexcept override { return answer ? answer : count + 1; }
  bool seek(int64_t, SeekPosition) noexcept override { return false; }
  int64_t answer = 0;
};

class StreamReader : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    const auto built = build();
    const auto* begin = static_cast<const std::byte*>(built->data());
    plan.assign(begin, begin + built->size());
  }
  std::unique_ptr<ICudaEngine> load(IStreamReaderV2& reader) {
    return std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(reader));
  }
  void expect_refused(IStreamReaderV2& reader, const char* words) {
    const size_t before = logger.text.size();
    EXPECT_EQ(load(reader), nullptr) << words;
    EXPECT_EQ(logger.text.size(), before + 1) << words;
    EXPECT_NE(logger.last().find(words), std::string::npos) << logger.last();
  }
  Bytes plan;
};

Bytes with_text(std::string_view text, const Bytes& plan) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  bytes.insert(bytes.end(), plan.begin(), plan.end());
  return bytes;
}

TEST_F(StreamReader, NoByteBehindThePlanIsAskedFor) {
  FileReader reader;
  reader.bytes = plan;
  const auto engine = load(reader);
  ASSERT_NE(engine, nullptr) << logger.last();
  EXPECT_FALSE(reader.at_end);
  EXPECT_EQ(std::unique_ptr<IHostMemory>(engine->serialize())->size(), plan.size());
}

TEST_F(StreamReader, PlansMayFollowEachOther) {
  FileReader reader;
  reader.bytes = plan;
  reader.bytes.insert(reader.bytes.end(), plan.begin(), plan.end());
  EXPECT_NE(load(reader), nullptr) << logger.last();
  EXPECT_EQ(reader.position, plan.size());
  EXPECT_NE(load(reader), nullptr) << logger.last();
  EXPECT_EQ(reader.position, 2 * plan.size());
}

TEST_F(StreamReader, PiecesMayBeSmall) {
  for (const int64_t most : {1, 7, 255, 4096}) {
    FileReader reader;
    reader.bytes = plan;
    reader.most = most;
    EXPECT_NE(load(reader), nullptr) << most << logger.last();
  }
}

TEST_F(StreamReader, JsonInFrontIsSkipped) {
  const std::string json = R"({"names": {"0": "a } \" b"}, "long": ")" + std::string(700, 'x') + "\"}";
  const auto length = static_cast<uint32_t>(json.size());
  std::string counted(4, '\0');
  std::memcpy(counted.data(), &length, 4);
  for (const std::string& text : {json, counted + json})
    for (const int64_t most : {INT64_MAX, int64_t{3}}) {
      FileReader reader;
      reader.bytes = with_text(text, plan);
      reader.most = most;
      EXPECT_NE(load(reader), nullptr) << logger.last();
      EXPECT_EQ(reader.position, reader.bytes.size());
      EXPECT_FALSE(reader.at_end);
    }
}

TEST_F(StreamReader, OfTheFirstVersion) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  OldReader reader;
  reader.file.bytes = plan;
  EXPECT_NE(std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(reader)), nullptr) << logger.last();
  reader.throws = true;
  EXPECT_EQ(runtime->deserializeCudaEngine(reader), nullptr);
#pragma GCC diagnostic pop
  EXPECT_NE(logger.last().find("LATHE-1002"), std::string::npos) << logger.last();
}

TEST_F(StreamReader, WhatIsNoPlanIsRefused) {
  BadReader bad;
  expect_refused(bad, "LATHE-1002");
  bad.answer = -1;
  expect_refused(bad, "LATHE-1002");
  FileReader reader;
  expect_refused(reader, "the plan is empty");
  for (const size_t size : {size_t{1}, size_t{255}, size_t{256}, plan.size() / 2, plan.size() - 1}) {
    reader = {};
    reader.most = 1000;  // so that the end is told by 0
    reader.bytes.assign(plan.begin(), plan.begin() + static_cast<ptrdiff_t>(size));
    expect_refused(reader, "LATHE-4001");
  }
  reader = {};
  reader.bytes = with_text(std::string(5000, 'a'), {});
  expect_refused(reader, "this is a text file");
  EXPECT_LE(reader.position, 512u);
}

// A stream that promises more than it gives costs no memory, and one that promises the impossible is refused.
TEST_F(StreamReader, PromisesAreNotBelieved) {
  for (const uint64_t claimed : {uint64_t{0}, uint64_t{1} << 32, uint64_t{1} << 62, UINT64_MAX}) {
    lathe::plan::PlanHeader header = lathe::plan::make_header("cpu-x86_64");
    header.plan_bytes = claimed;
    const auto bytes = lathe::plan::encode_header(header);
    FileReader reader;
    reader.most = 1000;
    reader.bytes.assign(bytes.begin(), bytes.end());
    expect_refused(reader, "LATHE-");
  }
}

}  // namespace
}  // namespace nvinfer1
