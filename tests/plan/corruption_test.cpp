// SPDX-License-Identifier: Apache-2.0
// Damaged and hostile plan files are refused, whatever was changed.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "plan/content_sums.h"
#include "plan/header.h"
#include "plan/metadata.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/repair.h"
#include "plan/writer.h"
#include "plan_generated.h"

namespace lathe::plan {
namespace {

const std::vector<std::byte>& file_of_64_kib() {
  static const std::vector<std::byte> bytes = *write_plan(PlanGenerator(21).make(30, 1100, 3, true).plan);
  return bytes;
}

// S68, S71.
TEST(PlanCorruption, EveryFlippedByteIsRefused) {
  std::vector<std::byte> bytes = file_of_64_kib();
  ASSERT_GT(bytes.size(), size_t{56} << 10);
  ASSERT_TRUE(read_plan(bytes, nullptr));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto bit = static_cast<std::byte>(1u << (i % 8));
    bytes[i] ^= bit;
    ASSERT_FALSE(read_plan(bytes, nullptr)) << i;
    bytes[i] ^= bit;
  }
  EXPECT_TRUE(read_plan(bytes, nullptr));
}

TEST(PlanCorruption, EveryTruncationAndExtensionIsRefused) {
  const std::vector<std::byte>& bytes = file_of_64_kib();
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(read_plan(std::span(bytes).first(size), nullptr)) << size;
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read_plan(longer, nullptr));
}

TEST(PlanCorruption, DeferredWeightsAreCheckedLater) {
  std::vector<std::byte> bytes = file_of_64_kib();
  ReadOptions defer;
  defer.verify_weights = false;
  EXPECT_TRUE(check_weights(bytes));
  bytes.back() ^= std::byte{1};
  EXPECT_TRUE(read_plan(bytes, nullptr, defer));
  EXPECT_EQ(check_weights(bytes).error().code, ErrorCode::plan_digest);
  EXPECT_EQ(read_plan(bytes, nullptr).error().code, ErrorCode::plan_digest);
}

// Of weights that the digests of pieces tell.
TEST(PlanCorruption, DamageToAnyPieceIsRefused) {
  std::vector<std::byte> bytes = *write_plan(PlanGenerator(8).make(4, 3'000'000).plan);
  const Section section = *read_header(bytes)->find(kWeights);
  ASSERT_TRUE(section.in_pieces);
  ASSERT_GT(section.bytes, 2 * kHashedPiece);
  const auto is_refused = [&] {
    const auto loaded = read_plan(bytes, nullptr);
    const Result<> checked = check_weights(bytes);
    return !loaded && loaded.error().code == ErrorCode::plan_digest && !checked &&
           checked.error().code == ErrorCode::plan_digest;
  };
  EXPECT_TRUE(read_plan(bytes, nullptr) && check_weights(bytes));
  for (const uint64_t at :
       {uint64_t{0}, kHashedPiece - 1, kHashedPiece, 2 * kHashedPiece - 1, 2 * kHashedPiece, section.bytes - 1}) {
    std::byte& byte = bytes[section.offset + at];
    byte ^= std::byte{1};
    EXPECT_TRUE(is_refused()) << at;
    byte ^= std::byte{1};
  }
  const auto first = bytes.begin() + static_cast<ptrdiff_t>(section.offset), second = first + kHashedPiece;
  ASSERT_FALSE(std::equal(first, second, second));
  std::swap_ranges(first, second, second);
  EXPECT_TRUE(is_refused()) << "pieces in another order";
}

// As versions before wrote them: the digest of all weights, however large they are.
TEST(PlanCorruption, LargeWeightsMayHaveADigestOfTheWhole) {
  std::vector<std::byte> bytes = *write_plan(PlanGenerator(8).make(4, 3'000'000).plan);
  const PlanHeader header = *read_header(bytes);
  const auto index = static_cast<size_t>(header.find(kWeights) - header.sections.data());
  ASSERT_EQ(bytes[kTableOffset + kEntryBytes * index + 28], std::byte{4});
  bytes[kTableOffset + kEntryBytes * index + 28] = std::byte{0};
  repair_digests(bytes);
  EXPECT_NE(read_header(bytes)->find(kWeights)->digest, header.find(kWeights)->digest);
  EXPECT_TRUE(read_plan(bytes, nullptr) && check_weights(bytes));
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(read_plan(bytes, nullptr).error().code, ErrorCode::plan_digest);
  EXPECT_EQ(check_weights(bytes).error().code, ErrorCode::plan_digest);
}

// With digests made right again the damage reaches the decoder and the validator: any answer but a crash will do, and a
// plan that is accepted must be one that can be written again.
// S68.
TEST(PlanCorruption, RepairedDigestsDoNotHelp) {
  std::vector<std::byte> original = *write_plan(PlanGenerator(22).make(8, 40, 2, true).plan);
  const uint64_t metadata_bytes = read_header(original)->sections[0].bytes;
  size_t accepted = 0;
  for (size_t i = 0; i < metadata_bytes; ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::vector<std::byte> bytes = original;
      bytes[kHeaderBytes + i] ^= static_cast<std::byte>(flip);
      repair_digests(bytes);
      const auto loaded = read_plan(bytes, nullptr);
      if (!loaded) continue;
      ++accepted;
      ASSERT_TRUE(write_plan(loaded->plan)) << i;
    }
  }
  EXPECT_GT(accepted, 0u);  // names and times may change
}

TEST(PlanCorruption, HeaderFieldsAreCheckedBehindAGoodDigest) {
  const std::vector<std::byte>& original = file_of_64_kib();
  const size_t sections = read_header(original)->sections.size();
  for (size_t i = 0; i < kHeaderBytes - sizeof(Digest); ++i) {
    std::vector<std::byte> bytes = original;
    bytes[i] ^= std::byte{0x10};
    if (i >= 24 && i < 28) continue;            // tells tools of an interface, decides nothing
    if (i >= 64 && i < kPrefixBytes) continue;  // another target is a fine header; its checksum is made right
    if (i >= 284 && i < 312) continue;          // tells of a device, decides nothing
    const size_t of_entry = (i - kTableOffset) % kEntryBytes;
    const bool in_table = i >= kTableOffset && i < kTableOffset + sections * kEntryBytes;
    if (i == kTableOffset + 48 && (original[i] & std::byte{0x10}) == std::byte{0})
      continue;  // zeros after the metadata are fine
    // Checksums and digests of sections are repaired too, so a change there is undone.
    if (in_table && of_entry >= kChecksumOffset) continue;
    repair_digests(bytes);
    EXPECT_FALSE(read_plan(bytes, nullptr)) << i;
  }
}

std::vector<std::byte> bytes_of(const flatbuffers::FlatBufferBuilder& builder) {
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {data, data + builder.GetSize()};
}

template <class Add>
void finish(flatbuffers::FlatBufferBuilder& builder, const Add& add) {
  fb::MetadataBuilder metadata(builder);
  add(metadata);
  fb::FinishMetadataBuffer(builder, metadata.Finish());
}

// Many fields that share one large string: decoding must stop before it has copied them all.
TEST(PlanCorruption, SharedStringsDoNotMultiply) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(std::string(100000, 'x'));
  const auto work = fb::CreateHostKernel(builder, text, 0, text).Union();
  std::vector<flatbuffers::Offset<fb::Step>> steps;
  for (int i = 0; i < 10000; ++i)
    steps.push_back(fb::CreateStep(builder, fb::Work::HostKernel, work, 0, 0, text, text, 0, text, 0, text));
  const auto list = builder.CreateVector(steps);
  finish(builder, [&](fb::MetadataBuilder& metadata) { metadata.add_steps(list); });
  const auto decoded = decode_metadata(bytes_of(builder), {});
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("more memory than a plan may"), std::string::npos) << decoded.error().message;
}

// Bytes that nothing refers to are lost when an accepted plan is written again: what it may take must not depend on
// them.
TEST(PlanCorruption, UnusedBytesOfTheMetadataBuyNothing) {
  OwnedPlan owned = PlanGenerator(23).make(100, 0);
  for (Step& step : owned.plan.steps) step.origin.assign(4, std::string(10000, 'x'));
  const std::vector<std::byte> file = *write_plan(owned.plan);
  const auto part = std::span(file).subspan(kHeaderBytes, read_header(file)->sections[0].bytes);
  std::vector<std::byte> metadata(part.begin(), part.end());
  metadata.resize(metadata.size() + (size_t{1} << 20));
  const auto loaded = read_plan(wrap_metadata(metadata), nullptr);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  const auto again = write_plan(loaded->plan);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_LT(again->size(), metadata.size());
  EXPECT_TRUE(read_plan(*again, nullptr));
}

TEST(PlanCorruption, SharedTablesDoNotMultiply) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<fb::SymbolProfile> rows(1000);
  const auto profile = fb::CreateProfile(builder, builder.CreateVectorOfStructs(rows));
  const std::vector<flatbuffers::Offset<fb::Profile>> profiles(100000, profile);
  const auto list = builder.CreateVector(profiles);
  finish(builder, [&](fb::MetadataBuilder& metadata) { metadata.add_profiles(list); });
  EXPECT_FALSE(decode_metadata(bytes_of(builder), {}));
}

TEST(PlanCorruption, ExpressionsMustBeInNormalForm) {
  for (const char* text : {"s0 + s0", "s0+1", "5", " s0", "floordiv(s0, 0)", "s0 +", "(s0)", "s1*s0"}) {
    flatbuffers::FlatBufferBuilder builder;
    const auto expressions = builder.CreateVectorOfStrings(std::vector<std::string>{text});
    finish(builder, [&](fb::MetadataBuilder& metadata) { metadata.add_expressions(expressions); });
    const auto decoded = decode_metadata(bytes_of(builder), {});
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code, ErrorCode::plan_malformed);
  }
}

// Two steps, one launch of an argument each, one module of one image, one body; and what a test changes.
struct LaunchForm {
  std::array<uint32_t, 2> steps = {0, 1};
  std::array<fb::Work, 2> kinds = {fb::Work::DeviceLaunches, fb::Work::DeviceLaunches};
  bool has_work = true;
  std::vector<uint32_t> grid = {0, 0, 0};
  fb::LaunchArg arg{LaunchArg::number, 0, 0};
  uint32_t modules = 1, module = 0;
  uint8_t form = 1;
  uint64_t offset = 0, bytes = 40;
  size_t section = 40;
  std::vector<uint32_t> bodies = {};  // the steps that they say they belong to
};

Result<Plan> decode(const LaunchForm& form) {
  flatbuffers::FlatBufferBuilder builder;
  const auto numbers = builder.CreateVector(std::vector<int64_t>{1});
  const auto device = fb::CreateDeviceLaunches(builder, builder.CreateString("k")).Union();
  const auto block = fb::CreateBlock(builder, static_cast<uint8_t>(BlockKind::call)).Union();
  std::vector<flatbuffers::Offset<fb::Step>> steps;
  for (const fb::Work kind : form.kinds)
    steps.push_back(fb::CreateStep(
        builder, kind, form.has_work ? kind == fb::Work::Block ? block : device : flatbuffers::Offset<void>()));
  std::vector<flatbuffers::Offset<fb::Launch>> launches;
  for (const uint32_t step : form.steps) {
    const auto grid = form.grid.empty() ? 0 : builder.CreateVector(form.grid);
    const auto args = builder.CreateVectorOfStructs(&form.arg, 1);
    launches.push_back(fb::CreateLaunch(builder, step, 0, builder.CreateString("e"), grid, 32, 0, 1, false, args));
  }
  std::vector<flatbuffers::Offset<fb::Body>> bodies;
  for (const uint32_t step : form.bodies) bodies.push_back(fb::CreateBody(builder, step));
  const auto step_list = builder.CreateVector(steps);
  const auto launch_list = builder.CreateVector(launches);
  const auto body_list = builder.CreateVector(bodies);
  const std::vector<flatbuffers::Offset<fb::CodeImage>> images = {fb::CreateCodeImage(
      builder, form.module, form.form, builder.CreateString("cuda-sm_90"), form.offset, form.bytes)};
  const auto code = builder.CreateVector(images);
  finish(builder, [&](fb::MetadataBuilder& metadata) {
    metadata.add_numbers(numbers);
    metadata.add_steps(step_list);
    metadata.add_launches(launch_list);
    metadata.add_bodies(body_list);
    metadata.add_modules(form.modules);
    metadata.add_code(code);
  });
  return decode_metadata(bytes_of(builder), std::vector<std::byte>(form.section));
}

TEST(PlanCorruption, LaunchesHaveOneForm) {
  const auto expect_refusal = [](const LaunchForm& form, std::string_view cause) {
    const auto plan = decode(form);
    ASSERT_FALSE(plan) << cause;
    EXPECT_NE(plan.error().message.find(cause), std::string::npos) << plan.error().message;
  };
  ASSERT_TRUE(decode({}));
  expect_refusal({.steps = {1, 0}}, "belongs to no step");
  expect_refusal({.steps = {0, 2}}, "belongs to no step");
  expect_refusal({.grid = {}}, "no grid");
  expect_refusal({.grid = {0, 0}}, "no grid");
  expect_refusal({.grid = {0, 0, 1}}, "out of range");
  expect_refusal({.arg = {LaunchArg::tensor_map + 1, 0, 0}}, "unknown kind");
  expect_refusal({.arg = {255, 0, 0}}, "unknown kind");
  expect_refusal({.arg = {LaunchArg::number, 0, 1}}, "out of range");
  expect_refusal({.bytes = 41}, "outside the code section");
  expect_refusal({.offset = 64, .bytes = UINT64_MAX}, "outside the code section");
  expect_refusal({.offset = 8, .bytes = 32}, "not where it belongs");
  expect_refusal({.section = 48}, "more than the modules");
  expect_refusal({.modules = 0}, "no code module");
  expect_refusal({.module = 1}, "no code module");
  expect_refusal({.form = 4}, "unknown form");
  expect_refusal({.kinds = {fb::Work::DeviceLaunches, fb::Work::Block}}, "belongs to no step");
  expect_refusal({.kinds = {fb::Work::NONE, fb::Work::DeviceLaunches}}, "unknown kind of step");
  expect_refusal({.kinds = {static_cast<fb::Work>(7), fb::Work::DeviceLaunches}}, "unknown kind of step");
  expect_refusal({.has_work = false}, "unknown kind of step");
  expect_refusal({.bodies = {0}}, "belongs to no block");
  expect_refusal({.bodies = {2}}, "belongs to no block");
  const LaunchForm blocks{.steps = {1, 1}, .kinds = {fb::Work::Block, fb::Work::DeviceLaunches}, .bodies = {0, 0}};
  ASSERT_TRUE(decode(blocks));
  EXPECT_EQ(std::get<Block>(decode(blocks)->steps[0].work).bodies.size(), 2u);
  LaunchForm many = blocks;
  many.bodies = {0, 0, 0};
  expect_refusal(many, "too long");
}

TEST(PlanCorruption, NonsenseIsNoFlatBuffer) {
  alignas(8) std::array<std::byte, 64> zeros{};
  EXPECT_FALSE(decode_metadata(zeros, {}));
  EXPECT_FALSE(decode_metadata(std::span(zeros).first(0), {}));
  std::memset(zeros.data(), 0xff, zeros.size());
  EXPECT_FALSE(decode_metadata(zeros, {}));
}

}  // namespace
}  // namespace lathe::plan
