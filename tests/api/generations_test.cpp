// SPDX-License-Identifier: Apache-2.0
// Every enumerator of both generations, against lists of their numbers that the table does not see.
#include "api/generations.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "api/report.h"

namespace lathe::api {
namespace {

constexpr Generation kBoth[] = {Generation::v10_16, Generation::v11};
using Numbers = std::map<std::string, int32_t>;       // by enumerator
using Enumerations = std::map<std::string, Numbers>;  // by enumeration

const Enumerations& enumerations(Generation generation) {
#define VALUE(enumeration, enumerator, number) all[#enumeration][#enumerator] = number;
#define COUNT(enumeration, number)
  static const Enumerations old = [] {
    Enumerations all;
#include "api/enums_10_16.def"
    return all;
  }();
  static const Enumerations current = [] {
    Enumerations all;
#include "api/enums.def"
    return all;
  }();
#undef VALUE
#undef COUNT
  return generation == Generation::v11 ? current : old;
}

const std::map<std::string, Renumbered>& renumbered() {
  static const std::map<std::string, Renumbered> all = {
#define LATHE_RENUMBERED(enumeration) {#enumeration, Renumbered::enumeration},
#define LATHE_ENUMERATOR(enumeration, enumerator, in_10_16, in_11)
#include "api/generations.def"
#undef LATHE_RENUMBERED
#undef LATHE_ENUMERATOR
  };
  return all;
}

std::optional<int32_t> number_of(const std::string& enumerator, const Numbers& numbers) {
  const auto found = numbers.find(enumerator);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

TEST(Generations, EnumerationsWithoutARowHaveTheSameNumbers) {
  for (const auto& [name, numbers] : enumerations(Generation::v10_16)) {
    ASSERT_TRUE(enumerations(Generation::v11).contains(name)) << name;
    const bool same = numbers == enumerations(Generation::v11).at(name);
    EXPECT_NE(same, renumbered().contains(name)) << name;
  }
  for (const auto& [name, unused] : renumbered()) EXPECT_TRUE(enumerations(Generation::v10_16).contains(name)) << name;
}

TEST(Generations, EveryEnumeratorBecomesItsNamesakeOrIsRefused) {
  for (const auto& [name, enumeration] : renumbered())
    for (const Generation from : kBoth)
      for (const Generation to : kBoth)
        for (const auto& [enumerator, number] : enumerations(from).at(name)) {
          SCOPED_TRACE(name + "::" + enumerator);
          const std::optional<int32_t> expected = number_of(enumerator, enumerations(to).at(name));
          const Result<int32_t> converted = convert_number(enumeration, number, from, to);
          const Result<uint32_t> bit = convert_bits(enumeration, 1u << number, from, to);
          ASSERT_EQ(converted.has_value(), expected.has_value());
          ASSERT_EQ(bit.has_value(), expected.has_value());
          if (expected) {
            EXPECT_EQ(*converted, *expected);
            EXPECT_EQ(*bit, 1u << *expected);
            EXPECT_EQ(convert_number(enumeration, *converted, to, from), number);
          } else {
            EXPECT_EQ(converted.error().code, ErrorCode::invalid_argument);
            EXPECT_NE(converted.error().message.find(name + " " + enumerator), std::string::npos);
            EXPECT_EQ(bit.error().message, converted.error().message);
          }
        }
}

TEST(Generations, NumbersThatNoEnumeratorHasAreRefused) {
  for (const auto& [name, enumeration] : renumbered())
    for (const Generation from : kBoth) {
      std::map<int32_t, std::string> known;
      for (const auto& [enumerator, number] : enumerations(from).at(name)) known[number] = enumerator;
      for (const int32_t number : {-2147483647, -2, -1, 9, 10, 14, 16, 21, 25, 29, 31, 32, 2147483647}) {
        if (known.contains(number)) continue;
        for (const Generation to : kBoth) {
          const Result<int32_t> converted = convert_number(enumeration, number, from, to);
          ASSERT_FALSE(converted) << name << " " << number;
          EXPECT_EQ(converted.error().code, ErrorCode::invalid_argument);
          EXPECT_NE(converted.error().message.find(fmt::format("{} {} does not exist", name, number)),
                    std::string::npos);
        }
      }
    }
}

TEST(Generations, SetsAreConvertedBitByBit) {
  const auto old_flags = [](uint32_t bits) {
    return convert_bits(Renumbered::BuilderFlag, bits, Generation::v10_16, Generation::v11);
  };
  EXPECT_EQ(old_flags(0), 0u);
  EXPECT_EQ(old_flags(1u << 2 | 1u << 13 | 1u << 28), 1u << 2 | 1u << 12 | 1u << 27);
  EXPECT_EQ(convert_bits(Renumbered::TacticSource, 0b11, Generation::v11, Generation::v10_16), 0b11000u);
  const Result<uint32_t> mixed = old_flags(1u << 0 | 1u << 4 | 1u << 22 | 1u << 31);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::invalid_argument);
  ASSERT_EQ(mixed.error().notes.size(), 3u);
  EXPECT_EQ(mixed.error().notes[1].message,
            "BuilderFlag kINT4 (22) of TensorRT 10.16 does not exist in TensorRT 11; leave it out");
  EXPECT_NE(mixed.error().notes[2].message.find("BuilderFlag 31 does not exist in TensorRT 10.16"), std::string::npos);
}

class CountingLogger final : public nv::ILogger {
 public:
  void log(Severity, const char* text) noexcept override { lines.emplace_back(text); }
  std::vector<std::string> lines;
};

TEST(Generations, ARefusalIsOneReport) {
  CountingLogger logger;
  const Reporter reporter(&logger);
  const uint32_t converted = guarded(reporter, "IBuilderConfig::setFlags", 0u, [] {
    return convert_bits(Renumbered::BuilderFlag, 3, Generation::v10_16, Generation::v11);
  });
  EXPECT_EQ(converted, 0u);
  ASSERT_EQ(logger.lines.size(), 1u);
  for (const char* part : {"LATHE-9001", "IBuilderConfig::setFlags", "kFP16", "kINT8"})
    EXPECT_NE(logger.lines[0].find(part), std::string::npos) << logger.lines[0];
}

}  // namespace
}  // namespace lathe::api
