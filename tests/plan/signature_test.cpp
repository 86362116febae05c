// SPDX-License-Identifier: Apache-2.0
// Who has signed a plan, and that it is as it was then.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "plan/amend.h"
#include "plan/plugin_libraries.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/repair.h"
#include "plan/signing.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

// As a runtime with the policy does it.
Result<> load(const Bytes& bytes, std::span<const PublicKey> trusted) {
  LATHE_ASSIGN(const PlanHeader header, read_header(bytes));
  return authenticate(std::span(bytes).subspan(header.prefix_bytes), header, trusted);
}

ErrorCode refusal(const Bytes& bytes, std::span<const PublicKey> trusted) {
  const Result<> loaded = load(bytes, trusted);
  EXPECT_FALSE(loaded);
  return loaded ? ErrorCode::internal : loaded.error().code;
}

// S69.
TEST(PlanSignature, PolicyDecides) {
  const Bytes plain = *write_plan(PlanGenerator(8).make(6, 300).plan);
  const SecretKey ours = *SecretKey::make(), theirs = *SecretKey::make();
  const std::vector trusted = {ours.public_key()}, both = {theirs.public_key(), ours.public_key()};
  EXPECT_EQ(refusal(plain, trusted), ErrorCode::plan_signature);
  const Bytes by_ours = *sign_plan(plain, ours), by_theirs = *sign_plan(plain, theirs);
  EXPECT_TRUE(load(by_ours, trusted));
  EXPECT_TRUE(load(by_theirs, both));
  EXPECT_TRUE(read_plan(by_ours, nullptr));
  EXPECT_EQ(refusal(by_theirs, trusted), ErrorCode::plan_signature);
  EXPECT_EQ(refusal(by_ours, {}), ErrorCode::plan_signature);
  EXPECT_EQ(*sign_plan(by_theirs, ours), by_ours);  // replaces, deterministically

  Bytes damaged = plain;
  damaged.back() ^= std::byte{1};
  EXPECT_EQ(sign_plan(damaged, ours).error().code, ErrorCode::plan_digest);
}

Bytes with_host_code(Bytes bytes) {
  EXPECT_TRUE(make_version_compatible(bytes));
  EXPECT_TRUE(put_section(bytes, kPluginLibraries, *pack_plugin_libraries(std::array{PluginLibrary{"a", Bytes(9)}})));
  EXPECT_TRUE(put_section(bytes, kLeanRuntime, Bytes(70, std::byte{7})));
  return bytes;
}

// S69, S71, S72: in whatever section, whether the change hides from checksums or not.
TEST(PlanSignature, EveryChangedByteAndEveryTruncationIsRefused) {
  const SecretKey key = *SecretKey::make();
  const std::vector trusted = {key.public_key()};
  Bytes bytes = *sign_plan(with_host_code(*write_plan(PlanGenerator(9).make(3, 40, 2).plan)), key);
  ASSERT_TRUE(load(bytes, trusted));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto bit = static_cast<std::byte>(1u << (i % 8));
    bytes[i] ^= bit;
    ASSERT_FALSE(load(bytes, trusted)) << i;
    Bytes repaired = bytes;  // as by one who can compute digests, but not sign
    repair_digests(repaired);
    bytes[i] ^= bit;
    ASSERT_FALSE(repaired != bytes && load(repaired, trusted)) << i;
  }
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(load(Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)), trusted)) << size;
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(load(bytes, trusted));
}

// S69: a section whose checksum is made to match is told by its digest.
TEST(PlanSignature, SectionsAreComparedByDigest) {
  const SecretKey key = *SecretKey::make();
  Bytes bytes = *sign_plan(*write_plan(PlanGenerator(8).make(6, 300).plan), key);
  PlanHeader header = *read_header(bytes);
  bytes[kHeaderBytes + 40] ^= std::byte{1};
  EXPECT_EQ(check_sections(bytes, header, {}).error().code, ErrorCode::plan_digest);
  header.sections[0].checksum =
      Hasher().add(std::span<const std::byte>(bytes).subspan(kHeaderBytes, header.sections[0].bytes)).value();
  EXPECT_TRUE(check_sections(bytes, header, {}));
  EXPECT_EQ(check_sections(bytes, header, {ContentCheck::digest, ContentCheck::digest}).error().code,
            ErrorCode::plan_digest);
}

class KeyFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("lathe_keys_{}", ::getpid());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ / name; }
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

 private:
  fs::path folder_;
};

// S69.
TEST_F(KeyFiles, AreWrittenOnceAndRead) {
  const SecretKey key = *SecretKey::make();
  ASSERT_TRUE(write_key_files(key, path("a.key"), path("a.pub")));
  struct stat info {};
  ASSERT_EQ(::stat(path("a.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(SecretKey::read(path("a.key"))->public_key(), key.public_key());
  EXPECT_EQ(*parse_keys(path("a.pub")), std::vector{key.public_key()});

  EXPECT_FALSE(write_key_files(*SecretKey::make(), path("a.key"), path("b.pub")));
  EXPECT_FALSE(write_key_files(*SecretKey::make(), path("b.key"), path("a.pub")));
  EXPECT_FALSE(fs::exists(path("b.key")));
  EXPECT_FALSE(fs::exists(path("b.pub")));
  EXPECT_EQ(SecretKey::read(path("a.key"))->public_key(), key.public_key());
}

TEST_F(KeyFiles, ListsOfKeys) {
  const PublicKey a = SecretKey::make()->public_key(), b = SecretKey::make()->public_key();
  const std::string file = write("b.pub", to_text(b) + "\r\n");
  EXPECT_EQ(*parse_keys(to_text(a)), std::vector{a});
  EXPECT_EQ(*parse_keys(" " + to_text(a) + ", " + file + ",\n"), (std::vector{a, b}));
  std::string capitals = to_text(a);
  for (size_t i = 8; i < capitals.size(); ++i) capitals[i] = static_cast<char>(std::toupper(capitals[i]));
  EXPECT_EQ(*parse_keys(capitals), std::vector{a});
}

// S69: a list that cannot be read whole is no list.
TEST_F(KeyFiles, WhatIsNoKeyIsRefused) {
  const SecretKey key = *SecretKey::make();
  const std::string good = to_text(key.public_key());
  const std::string wrong[] = {"",
                               " , ",
                               "ed25519:",
                               good.substr(0, good.size() - 1),
                               good + "0",
                               good.substr(0, good.size() - 1) + "g",
                               good + "," + path("missing.pub"),
                               path("missing.pub"),
                               write("empty.pub", ""),
                               write("two.pub", good + "\n" + good),
                               write("secret.key", key.to_text())};
  for (const std::string& list : wrong) EXPECT_FALSE(parse_keys(list)) << list;
  EXPECT_NE(parse_keys(path("secret.key")).error().message.find("secret key"), std::string::npos);
  for (const char* name : {"missing", "empty.pub", "two.pub"}) EXPECT_FALSE(SecretKey::read(path(name))) << name;
  EXPECT_NE(SecretKey::read(write("a.pub", good)).error().message.find("public key"), std::string::npos);
}

}  // namespace
}  // namespace lathe::plan
