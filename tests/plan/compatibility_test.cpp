// SPDX-License-Identifier: Apache-2.0
// Which plans which versions read, and plans that are changed after they were written.
#include "plan/compatibility.h"

#include <gtest/gtest.h>

#include "base/deflate.h"
#include "base/inflate.h"
#include "plan/amend.h"
#include "plan/plugin_libraries.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/repair.h"
#include "plan/signing.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

PlanHeader header_of(Version writer, Compatibility compatibility, uint32_t records = 1) {
  PlanHeader header = make_header("cpu-x86_64");
  header.version = writer;
  header.compatibility = compatibility;
  if (compatibility == Compatibility::later_versions) {
    header.metadata_format = 1;
    header.record_format = records;
  }
  return header;
}

std::string refusal(const PlanHeader& header, Version own, FormatRange records = {1, 1}) {
  const Result<> checked = check_version(header, own, records);
  return checked ? "" : checked.error().message;
}

constexpr auto kSame = Compatibility::same_version, kLater = Compatibility::later_versions;

// S1: any of the four numbers.
TEST(PlanVersions, PlansOfOneVersionAreReadByThatVersion) {
  const Version own = {1, 2, 3, 4};
  EXPECT_EQ(refusal(header_of(own, kSame), own), "");
  for (const Version& other : {Version{2, 2, 3, 4}, {1, 1, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 3}}) {
    const std::string text = refusal(header_of(other, kSame), own);
    for (const std::string& word : {other.to_string(), own.to_string(), std::string("kVERSION_COMPATIBLE")})
      EXPECT_NE(text.find(word), std::string::npos) << text;
    EXPECT_FALSE(check_other_runtime(header_of(other, kSame), own));
  }
}

// S2, S4, S6, S19.
TEST(PlanVersions, LaterVersionsReadCompatiblePlans) {
  const Version own = {1, 2, 3, 4};
  for (const Version& older : {Version{1, 0, 0, 0}, {1, 2, 3, 3}, own})
    EXPECT_EQ(refusal(header_of(older, kLater), own), "");
  EXPECT_NE(refusal(header_of({1, 2, 4, 0}, kLater), own).find("newer than this Lathe 1.2.3.4"), std::string::npos);
  EXPECT_FALSE(check_other_runtime(header_of({1, 2, 4, 0}, kLater), own));
  EXPECT_NE(refusal(header_of({0, 0, 9, 0}, kLater), own).find(kOldestCompatible.to_string()), std::string::npos);
  // Another major version, and formats that are given up: a runtime of the plan's own version is needed.
  for (const PlanHeader& header : {header_of({0, 9, 0, 0}, kLater), header_of({1, 0, 0, 0}, kLater)}) {
    const std::string text = refusal(header, own, header.version.major == 1 ? FormatRange{2, 3} : FormatRange{1, 3});
    EXPECT_NE(text.find("loadRuntime()"), std::string::npos) << text;
    EXPECT_NE(text.find(header.version.to_string()), std::string::npos) << text;
    EXPECT_TRUE(check_other_runtime(header, own));
  }
  EXPECT_EQ(refusal(header_of({1, 0, 0, 0}, kLater, 2), own, {2, 3}), "");
}

// S185, S186: other systems and processors, with the flag or without.
TEST(PlanVersions, AreNotAllThatCounts) {
  for (const Compatibility level : {kSame, kLater}) {
    PlanHeader header = header_of(library_version(), level);
    EXPECT_TRUE(check_usable(header, {}));
    header.architecture = HostArchitecture::other;
    EXPECT_EQ(check_usable(header, {}).error().code, ErrorCode::plan_target);
    header = header_of(library_version(), level);
    header.os = OperatingSystem::other;
    EXPECT_EQ(check_usable(header, {}).error().code, ErrorCode::plan_target);
  }
}

TEST(PlanVersions, LevelsThatDoNotExistYetAreRefused) {
  std::vector<std::byte> bytes = *write_plan(PlanGenerator(5).make(3, 10).plan);
  PlanHeader header = *read_header(bytes);
  header.compatibility = static_cast<Compatibility>(2);
  const auto head = encode_header(header);
  std::ranges::copy(head, bytes.begin());
  EXPECT_EQ(read_plan(bytes, nullptr).error().code, ErrorCode::plan_version);
}

// S4: a field that came later stands where an older reader knows of none.
TEST(PlanVersions, AHeaderThatSaysMoreIsOfANewerVersionOrDamaged) {
  std::vector<std::byte> bytes = *write_plan(PlanGenerator(5).make(3, 10).plan);
  PlanHeader header = *read_header(bytes);
  for (const bool newer : {false, true}) {
    header.version = library_version();
    header.version.patch += newer;
    std::ranges::copy(encode_header(header), bytes.begin());
    bytes[kHeaderBytes - sizeof(Digest) - 1] = std::byte{1};
    repair_digests(bytes);
    const Error error = read_header(bytes).error();
    EXPECT_EQ(error.code, newer ? ErrorCode::plan_version : ErrorCode::plan_malformed) << error.message;
    EXPECT_EQ(error.message.find("newer than this Lathe") != std::string::npos, newer) << error.message;
  }
}

std::vector<std::byte> compatible(std::vector<std::byte> bytes) {
  EXPECT_TRUE(make_version_compatible(bytes));
  return bytes;
}

// S10.
TEST(PlanAmendments, MakeAPlanCompatible) {
  const std::vector<std::byte> plain = *write_plan(PlanGenerator(5).make(3, 10).plan);
  const std::vector<std::byte> bytes = compatible(plain);
  EXPECT_EQ(bytes.size(), plain.size());
  EXPECT_TRUE(std::ranges::equal(std::span(bytes).subspan(kHeaderBytes), std::span(plain).subspan(kHeaderBytes)));
  const PlanHeader header = *read_header(bytes);
  EXPECT_EQ(header.compatibility, kLater);
  EXPECT_EQ(header.metadata_format, kMetadataFormats.newest);
  EXPECT_EQ(header.record_format, kRecordFormats.newest);
  EXPECT_TRUE(read_plan(bytes, nullptr));
}

// S11, S18, S72: the section is covered by digests as the others are, and told by its class.
TEST(PlanAmendments, PutAndRemoveSections) {
  const std::vector<std::byte> content(5000, std::byte{7});
  for (const size_t prefix : {size_t{0}, size_t{2}}) {
    std::vector<std::byte> bytes = compatible(*write_plan(PlanGenerator(7).make(5, 300).plan));
    for (size_t i = 0; i < prefix; ++i) bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(i), std::byte("{}"[i]));
    const std::vector<std::byte> bare = bytes;
    EXPECT_FALSE(holds_host_code(*read_header(bytes)));
    ASSERT_TRUE(put_section(bytes, kLeanRuntime, content));
    const PlanHeader header = *read_header(bytes);
    EXPECT_TRUE(holds_host_code(header));
    EXPECT_EQ(header.prefix_bytes, prefix);
    const Section& section = *header.find(kLeanRuntime);
    EXPECT_EQ(section.bytes, content.size());
    EXPECT_TRUE(std::ranges::equal(std::span(bytes).subspan(prefix + section.offset), content));
    EXPECT_TRUE(read_plan(bytes, nullptr));
    bytes.back() ^= std::byte{1};
    EXPECT_EQ(read_plan(bytes, nullptr).error().code, ErrorCode::plan_digest);
    bytes.back() ^= std::byte{1};
    ASSERT_TRUE(put_section(bytes, kLeanRuntime, std::span(content).first(10)));
    EXPECT_EQ(read_header(bytes)->find(kLeanRuntime)->bytes, 10u);
    ASSERT_TRUE(remove_section(bytes, kLeanRuntime));
    EXPECT_EQ(bytes, bare);
    ASSERT_TRUE(remove_section(bytes, kLeanRuntime));
    EXPECT_EQ(bytes, bare);
  }
}

TEST(PlanAmendments, TakeASignatureOut) {
  const SecretKey key = *SecretKey::make();
  std::vector<std::byte> bytes = *sign_plan(compatible(*write_plan(PlanGenerator(7).make(5, 300).plan)), key);
  const std::vector<std::byte> signed_bytes = bytes;
  ASSERT_TRUE(remove_section(bytes, kLeanRuntime));
  EXPECT_EQ(bytes, signed_bytes);  // nothing was changed
  ASSERT_TRUE(put_section(bytes, kLeanRuntime, std::vector<std::byte>(100, std::byte{1})));
  EXPECT_EQ(read_header(bytes)->find(kSignature), nullptr);
  bytes = *sign_plan(bytes, key);
  EXPECT_TRUE(authenticate(bytes, *read_header(bytes), std::vector{key.public_key()}));
}

// S16.
TEST(PlanPluginLibraries, AreReadAsWhatAStrangerWrote) {
  const std::vector<PluginLibrary> libraries = {{"a.so", std::vector<std::byte>(3000, std::byte{5})}, {"", {}}};
  const std::vector<std::byte> section = *pack_plugin_libraries(libraries);
  const std::vector<PluginLibrary> back = *unpack_plugin_libraries(section);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, "a.so");
  EXPECT_EQ(back[0].content, libraries[0].content);
  EXPECT_TRUE(back[1].content.empty());
  for (size_t size = 0; size < section.size(); ++size)
    EXPECT_FALSE(unpack_plugin_libraries(std::span(section).first(size))) << size;
  std::vector<std::byte> changed = section;
  changed.push_back({});
  EXPECT_FALSE(unpack_plugin_libraries(changed));
  for (size_t i = 0; i < section.size(); ++i) {
    changed = section;
    changed[i] ^= std::byte{0x80};
    static_cast<void>(unpack_plugin_libraries(changed));  // any answer but a crash
  }
}

TEST(Deflate, GivesBackWhatWasCompressed) {
  std::vector<std::byte> bytes(100'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i / 7);
  for (const size_t size : {size_t{0}, size_t{1}, bytes.size()}) {
    const std::vector<std::byte> some(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    const std::vector<std::byte> compressed = *deflate_bytes(some);
    EXPECT_EQ(*inflate_bytes(compressed, size), some);
    if (size == 0) continue;
    EXPECT_FALSE(inflate_bytes(compressed, size - 1));
    for (size_t cut = 0; cut < compressed.size(); cut += 1 + compressed.size() / 50)
      EXPECT_FALSE(inflate_bytes(std::span(compressed).first(cut), size)) << cut;
    for (size_t place = 0; place < compressed.size(); place += 1 + compressed.size() / 50) {
      std::vector<std::byte> changed = compressed;
      changed[place] ^= std::byte{0x10};
      const auto made = inflate_bytes(changed, bytes.size());
      EXPECT_TRUE(!made || *made == some) << place;  // a bit of zlib's header may mean nothing to a reader
    }
  }
}

}  // namespace
}  // namespace lathe::plan
