// SPDX-License-Identifier: Apache-2.0
#include "api/generations.h"

#include <array>

namespace lathe::api {
namespace {

constexpr std::string_view kGenerations[] = {"10.16", "11"};
constexpr std::string_view kEnumerations[] = {
#define LATHE_RENUMBERED(enumeration) #enumeration,
#define LATHE_ENUMERATOR(enumeration, enumerator, in_10_16, in_11)
#include "api/generations.def"
#undef LATHE_RENUMBERED
#undef LATHE_ENUMERATOR
};

struct Row {
  Renumbered enumeration;
  std::string_view enumerator;
  std::array<int32_t, 2> numbers;  // by Generation; -1: it has no such enumerator

  int32_t number_in(Generation generation) const { return numbers[static_cast<size_t>(generation)]; }
};
constexpr Row kRows[] = {
#define LATHE_RENUMBERED(enumeration)
#define LATHE_ENUMERATOR(enumeration, enumerator, in_10_16, in_11) \
  {Renumbered::enumeration, #enumerator, {in_10_16, in_11}},
#include "api/generations.def"
#undef LATHE_RENUMBERED
#undef LATHE_ENUMERATOR
};

}  // namespace

Result<int32_t> convert_number(Renumbered enumeration, int32_t number, Generation from, Generation to) {
  const std::string_view name = kEnumerations[static_cast<size_t>(enumeration)];
  const std::string_view origin = kGenerations[static_cast<size_t>(from)];
  for (const Row& row : kRows) {
    if (number < 0 || row.enumeration != enumeration || row.number_in(from) != number) continue;
    if (row.number_in(to) >= 0) return row.number_in(to);
    return fail(ErrorCode::invalid_argument, "{} {} ({}) of TensorRT {} does not exist in TensorRT {}; leave it out",
                name, row.enumerator, number, origin, kGenerations[static_cast<size_t>(to)]);
  }
  return fail(ErrorCode::invalid_argument, "{} {} does not exist in TensorRT {}; pass one of its enumerators", name,
              number, origin);
}

Result<uint32_t> convert_bits(Renumbered enumeration, uint32_t bits, Generation from, Generation to) {
  uint32_t converted = 0;
  std::vector<Error> refused;
  for (int32_t number = 0; number < 32; ++number) {
    if (!(bits >> number & 1)) continue;
    if (const Result<int32_t> counterpart = convert_number(enumeration, number, from, to))
      converted |= 1u << *counterpart;
    else
      refused.push_back(counterpart.error());
  }
  if (refused.empty()) return converted;
  if (refused.size() == 1) return fail(refused.front());
  std::string message =
      fmt::format("{} enumerators in {:#x} have no counterpart; leave them out", refused.size(), bits);
  return fail(Error(ErrorCode::invalid_argument, std::move(message), std::move(refused)));
}

}  // namespace lathe::api
