// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <functional>

#include "plan/flatten.h"
#include "plan/limits.h"
#include "plan/metadata.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/repair.h"
#include "plan/signing.h"
#include "plan/validate.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

template <class T>
std::string text_of(const Result<T>& result) {
  return result ? "ok" : result.error().to_string();
}

void expect_same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

void expect_same(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(Flatten::plan(a), Flatten::plan(b));
  EXPECT_EQ(a.weights_bytes(), b.weights_bytes());
  EXPECT_EQ(a.detached.has_value(), b.detached.has_value());
  EXPECT_EQ(a.detached && a.detached->in_pieces, b.detached && b.detached->in_pieces);
  expect_same_bytes(a.weights, b.weights);
}

// Page-aligned memory, as a mapped file has it.
std::shared_ptr<const std::byte> page_aligned(const std::vector<std::byte>& bytes, size_t shift = 0) {
  void* memory = mmap(nullptr, bytes.size() + shift, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* start = static_cast<std::byte*>(memory);
  std::memcpy(start + shift, bytes.data(), bytes.size());
  const size_t size = bytes.size() + shift;
  return {start + shift, [start, size](const std::byte*) { munmap(start, size); }};
}

TEST(PlanRoundTrip, RandomPlans) {
  std::array<size_t, std::variant_size_v<Work>> kinds{};
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const OwnedPlan owned = PlanGenerator(seed).make(1 + seed % 30, seed % 5 == 0 ? 0 : seed * 3, seed % 4, seed % 3);
    const auto bytes = write_plan(owned.plan);
    ASSERT_TRUE(bytes) << seed << text_of(bytes);
    const auto loaded = read_plan(*bytes, nullptr);
    ASSERT_TRUE(loaded) << seed << text_of(loaded);
    expect_same(owned.plan, loaded->plan);
    const auto again = write_plan(loaded->plan);
    ASSERT_TRUE(again);
    ASSERT_EQ(*bytes, *again) << seed;
    for (const Step& step : owned.plan.steps) ++kinds[step.work.index()];
  }
  for (const size_t count : kinds) EXPECT_GT(count, 20u);
}

// A field that changes changes what flattening gives, so that the comparison above sees all of them.
TEST(PlanRoundTrip, NoFieldIsOverlooked) {
  const OwnedPlan owned = PlanGenerator(9).make(20, 40, 2, true);
  const std::vector<std::byte> metadata = *encode_metadata(owned.plan);
  Plan other = owned.plan;
  other.constants[0].digest[31] ^= std::byte{1};
  EXPECT_NE(Flatten::plan(owned.plan), Flatten::plan(other));
  EXPECT_NE(metadata, *encode_metadata(other));
}

TEST(PlanRoundTrip, StringsAreLimited) {
  const std::string text(kMaxString + 1, 'x');
  for (const auto& change : std::vector<std::function<void(Plan&)>>{
           [&](Plan& p) { p.metadata[0].second = text; }, [&](Plan& p) { p.steps[0].name = text; },
           [&](Plan& p) { p.codes[0].images[0].target = text; }, [&](Plan& p) { p.constants[0].name = text; }}) {
    OwnedPlan owned = PlanGenerator(11).make(6, 128, 2);
    change(owned.plan);
    const auto bytes = write_plan(owned.plan);
    ASSERT_FALSE(bytes);
    EXPECT_NE(bytes.error().message.find("a string is too long"), std::string::npos) << text_of(bytes);
  }
}

TEST(PlanWeights, MayLieElsewhere) {
  OwnedPlan owned = PlanGenerator(3).make(4, 5000);
  const std::vector<std::byte> whole = *write_plan(owned.plan);
  owned.plan.detached = detach(owned.plan.weights);
  owned.plan.weights_file = "net.weights";
  const std::vector<std::byte> bytes = *write_plan(owned.plan);
  EXPECT_LT(bytes.size() + owned.weights.size(), whole.size());

  const auto without = read_plan(bytes, nullptr);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(without.error().message.find("'net.weights'"), std::string::npos) << text_of(without);
  EXPECT_NE(without.error().message.find(std::to_string(owned.weights.size())), std::string::npos) << text_of(without);

  ReadOptions options;
  options.without_weights = true;
  const auto shown = read_plan(bytes, nullptr, options);
  ASSERT_TRUE(shown) << text_of(shown);
  EXPECT_TRUE(shown->plan.weights.empty());
  EXPECT_EQ(shown->plan.weights_bytes(), owned.weights.size());
  EXPECT_EQ(*write_plan(shown->plan), bytes);

  ReadOptions supplied;
  supplied.weights = Weights{owned.weights, nullptr};
  const auto loaded = read_plan(bytes, nullptr, supplied);
  ASSERT_TRUE(loaded) << text_of(loaded);
  expect_same(owned.plan, loaded->plan);
  EXPECT_EQ(*write_plan(loaded->plan), bytes);

  std::vector<std::byte> others = owned.weights;
  others[100] ^= std::byte{1};
  for (const auto& wrong : {others, std::vector<std::byte>(owned.weights.begin(), owned.weights.end() - 1)}) {
    supplied.weights = Weights{wrong, nullptr};
    EXPECT_EQ(read_plan(bytes, nullptr, supplied).error().code, ErrorCode::plan_digest);
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> flipped = bytes;
    flipped[i] ^= std::byte{4};
    ASSERT_FALSE(read_plan(flipped, nullptr, options)) << i;
  }
}

TEST(PlanWeights, SignedPlansBindWeightsElsewhere) {
  OwnedPlan owned = PlanGenerator(3).make(4, 5000);
  owned.plan.detached = detach(owned.plan.weights);
  const SecretKey key = *SecretKey::make();
  const auto bytes = sign_plan(*write_plan(owned.plan), key);
  ASSERT_TRUE(bytes) << text_of(bytes);
  EXPECT_TRUE(authenticate(*bytes, *read_header(*bytes), std::vector{key.public_key()}));
  ReadOptions options;
  options.weights = Weights{owned.weights, nullptr};
  EXPECT_TRUE(read_plan(*bytes, nullptr, options));
  owned.weights[0] ^= std::byte{1};
  EXPECT_EQ(read_plan(*bytes, nullptr, options).error().code, ErrorCode::plan_digest);
}

// Equal strings and expressions are stored once, so that the file is much smaller than the plan.
TEST(PlanRoundTrip, ManyUsesOfLargeTextsAndExpressions) {
  OwnedPlan owned = PlanGenerator(5).make(100, 0);
  Expr sum;
  for (int i = 0; i < 50; ++i) sum += floordiv(Expr::symbol(0) + i, 7 + i);
  for (Step& step : owned.plan.steps) step.origin.assign(4, std::string(10000, 'x'));
  for (Buffer& buffer : owned.plan.buffers) buffer.bytes += 64 * sum;
  const auto bytes = write_plan(owned.plan);
  ASSERT_TRUE(bytes) << text_of(bytes);
  EXPECT_LT(bytes->size(), 100u * 4 * 10000 / 32);
  const auto loaded = read_plan(*bytes, nullptr);
  ASSERT_TRUE(loaded) << text_of(loaded);
  expect_same(owned.plan, loaded->plan);
}

TEST(PlanRoundTrip, WriterRefusesWhatTheReaderWould) {
  OwnedPlan owned = PlanGenerator(5).make(3, 0);
  Expr sum;
  for (int i = 0; i < 100; ++i) sum += floordiv(Expr::symbol(0) + i, 7 + i);
  TensorDesc tensor{"t", DType::f32, Shape(kMaxRank, sum), Shape(kMaxRank, sum), StorageKind::arena, 0, sum};
  const size_t each = 16 * sum.size() * (2 * kMaxRank + 1);
  owned.plan.tensors.insert(owned.plan.tensors.end(), kMaxDecoded / each + 1, tensor);
  const auto bytes = write_plan(owned.plan);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::invalid_argument) << text_of(bytes);
  EXPECT_NE(bytes.error().message.find("limits of its format"), std::string::npos) << text_of(bytes);
}

TEST(PlanRoundTrip, StreamingGivesTheSameBytes) {
  class Collect final : public ByteSink {
   public:
    Result<> write(std::span<const std::byte> part) override {
      bytes.insert(bytes.end(), part.begin(), part.end());
      return {};
    }
    std::vector<std::byte> bytes;
  } sink;
  class Full final : public ByteSink {
   public:
    Result<> write(std::span<const std::byte>) override { return fail(ErrorCode::file_read, "disk full"); }
  } full;
  const OwnedPlan owned = PlanGenerator(7).make(5, 1000);
  ASSERT_TRUE(write_plan(owned.plan, sink));
  EXPECT_EQ(sink.bytes, *write_plan(owned.plan));
  EXPECT_EQ(write_plan(owned.plan, full).error().code, ErrorCode::file_read);
}

TEST(PlanRoundTrip, CodeIsUsedInPlaceWhenAlignedAndCopiedWhenNot) {
  const OwnedPlan owned = PlanGenerator(3).make(4, 0, 3);
  std::vector<std::byte> bytes = *write_plan(owned.plan);
  const auto mapped = page_aligned(bytes);
  const auto in_place = read_plan({mapped.get(), bytes.size()}, mapped);
  ASSERT_TRUE(in_place) << text_of(in_place);
  EXPECT_GE(in_place->plan.codes[0].images[0].bytes.data(), mapped.get());
  EXPECT_LT(in_place->plan.codes[0].images[0].bytes.data(), mapped.get() + bytes.size());
  for (size_t shift = 1; shift < 64; shift += 7) {
    const auto shifted = page_aligned(bytes, shift);
    const auto copied = read_plan({shifted.get(), bytes.size()}, shifted);
    ASSERT_TRUE(copied) << text_of(copied);
    for (const CodeModule& module : copied->plan.codes)
      for (const CodeImage& image : module.images) EXPECT_EQ(reinterpret_cast<uintptr_t>(image.bytes.data()) % 64, 0u);
    expect_same(owned.plan, copied->plan);
  }
  const auto borrowed = read_plan(bytes, nullptr);
  ASSERT_TRUE(borrowed) << text_of(borrowed);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  expect_same(owned.plan, borrowed->plan);
}

TEST(PlanRoundTrip, WeightsAreMappedWhenAlignedAndCopiedWhenNot) {
  const OwnedPlan owned = PlanGenerator(3).make(4, 5000);
  const std::vector<std::byte> bytes = *write_plan(owned.plan);
  const auto mapped = page_aligned(bytes);
  const auto in_place = read_plan({mapped.get(), bytes.size()}, mapped);
  ASSERT_TRUE(in_place) << text_of(in_place);
  EXPECT_GE(in_place->plan.weights.data(), mapped.get());
  EXPECT_LT(in_place->plan.weights.data(), mapped.get() + bytes.size());
  const auto borrowed = read_plan({mapped.get(), bytes.size()}, nullptr);
  EXPECT_TRUE(borrowed->plan.weights.data() < mapped.get() ||
              borrowed->plan.weights.data() >= mapped.get() + bytes.size());
  for (size_t shift = 1; shift < 64; shift += 7) {
    const auto shifted = page_aligned(bytes, shift);
    const auto copied = read_plan({shifted.get(), bytes.size()}, shifted);
    ASSERT_TRUE(copied) << text_of(copied);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copied->plan.weights.data()) % 64, 0u);
    expect_same(owned.plan, copied->plan);
  }
}

TEST(PlanRoundTrip, ForeignPrefixIsSkipped) {
  const OwnedPlan owned = PlanGenerator(4).make(4, 100);
  const std::vector<std::byte> bytes = *write_plan(owned.plan);
  const std::string json = R"({"names": {"0": "per\"son}"}, "stride": 32})";
  std::string length(4, '\0');
  length[0] = static_cast<char>(json.size());
  for (const std::string& prefix : {json, length + json}) {
    std::vector<std::byte> file(prefix.size());
    std::memcpy(file.data(), prefix.data(), prefix.size());
    file.insert(file.end(), bytes.begin(), bytes.end());
    const auto loaded = read_plan(file, nullptr);
    ASSERT_TRUE(loaded) << text_of(loaded);
    expect_same(owned.plan, loaded->plan);
    EXPECT_EQ(read_header(file)->prefix_bytes, prefix.size());
    file[prefix.size() - 1] = std::byte{'x'};
    EXPECT_EQ(read_plan(file, nullptr).error().code, ErrorCode::plan_malformed);
  }
}

TEST(PlanHeader, TellsWhatTheFileIs) {
  const OwnedPlan owned = PlanGenerator(5).make(3, 10);
  const std::vector<std::byte> bytes = *write_plan(owned.plan);
  const auto header = read_header(bytes);
  ASSERT_TRUE(header) << text_of(header);
  EXPECT_EQ(header->version, library_version());
  EXPECT_EQ(header->target, "cpu-x86_64-avx512");
  EXPECT_EQ(header->sections.size(), 2u);
  EXPECT_EQ(header->sections[1].offset % 4096, 0u);
  const auto message = [](std::string_view text) {
    return read_header(std::as_bytes(std::span(text))).error().message;
  };
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("hello, this is text").find("text"), std::string::npos);
  EXPECT_NE(message("\x08\x07\x12\x04onnx").find("ONNX"), std::string::npos);
  EXPECT_NE(message(std::string_view("ftrt\0\0\0\0LATHE", 13)).find("truncated"), std::string::npos);
  EXPECT_NE(message(std::string_view("ftrt\0\0\0\0engine of another", 25)).find("TensorRT"), std::string::npos);
  EXPECT_NE(message("LATHEPLN of before").find("format version 1"), std::string::npos);
  EXPECT_NE(message("{\"a\": 1}").find("text"), std::string::npos);
}

// Tools look for TensorRT's tag in the first word, and for the version in bytes 24 to 27.
TEST(PlanHeader, HasWhatToolsLookFor) {
  const std::vector<std::byte> bytes = *write_plan(PlanGenerator(5).make(3, 10).plan);
  EXPECT_EQ(load_le(bytes, 0, 8), 0x74727466u);
  EXPECT_EQ(load_le(bytes, 24, 4), 11u + (1u << 8) + (106u << 24));
}

// What any version reads of any other.
TEST(PlanPrefix, IsReadOfFormatsThatDoNotExistYet) {
  PlanHeader header = make_header("cuda-sm_130");
  header.format = 7;
  header.header_bytes = 9000;
  header.version = {3, 1, 4, 1};
  const auto head = encode_header(header);
  std::vector<std::byte> bytes(head.begin(), head.begin() + kPrefixBytes);
  const auto prefix = read_prefix(bytes);
  ASSERT_TRUE(prefix) << text_of(prefix);
  EXPECT_EQ(prefix->format, 7u);
  EXPECT_EQ(prefix->version, (Version{3, 1, 4, 1}));
  EXPECT_EQ(prefix->target, "cuda-sm_130");
  bytes.resize(9000);
  const auto refused = read_plan(bytes, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::plan_version);
  for (const char* part : {"format version 7", "3.1.4.1", "cuda-sm_130", "build the engine again"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << part << ": " << text_of(refused);
  bytes[70] ^= std::byte{1};
  EXPECT_EQ(read_prefix(bytes).error().code, ErrorCode::plan_digest);
}

// Of sections that a later version adds, those that say so can be done without.
TEST(PlanSections, UnknownOnesAreSkippedOrRefused) {
  const std::vector<std::byte> plain = *write_plan(PlanGenerator(5).make(3, 10).plan);
  const std::vector<std::byte> content(100, std::byte{7});
  for (const bool skippable : {true, false}) {
    PlanHeader header = *read_header(plain);
    Section& section = header.sections.emplace_back();
    section.name = "notes";
    section.skippable = skippable;
    section.alignment = 32;
    seal(section, content);
    place_sections(header);
    std::vector<std::byte> bytes = plain;
    bytes.resize(header.plan_bytes);
    std::copy(content.begin(), content.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(header.sections.back().offset));
    const auto head = encode_header(header);
    std::copy(head.begin(), head.end(), bytes.begin());
    const auto loaded = read_plan(bytes, nullptr);
    EXPECT_EQ(loaded.has_value(), skippable) << text_of(loaded);
    if (!skippable) {
      EXPECT_NE(loaded.error().message.find("'notes'"), std::string::npos) << text_of(loaded);
    }
    bytes.back() ^= std::byte{1};
    EXPECT_FALSE(read_plan(bytes, nullptr));
  }
}

// S44, S45, S72.
TEST(PlanVersion, AnyDifferenceIsRefusedAndNamed) {
  const std::vector<std::byte> bytes = *write_plan(PlanGenerator(6).make(3, 10).plan);
  for (int i = 0; i < 4; ++i) {
    ReadOptions options;
    uint32_t* numbers[] = {&options.version.major, &options.version.minor, &options.version.patch,
                           &options.version.build};
    ++*numbers[i];
    const auto loaded = read_plan(bytes, nullptr, options);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, ErrorCode::plan_version);
    EXPECT_NE(loaded.error().message.find(library_version().to_string()), std::string::npos);
    EXPECT_NE(loaded.error().message.find(options.version.to_string()), std::string::npos);
    EXPECT_NE(loaded.error().message.find("cpu-x86_64-avx512"), std::string::npos);
  }
}

}  // namespace
}  // namespace lathe::plan
