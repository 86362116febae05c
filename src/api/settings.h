// SPDX-License-Identifier: Apache-2.0
// What becomes of a setting: settings.def, and how objects act on it.
#pragma once

#include <array>
#include <atomic>
#include <type_traits>
#include <typeinfo>

#include "base/log.h"
#include "base/result.h"

namespace lathe::api {

enum class SettingId : uint16_t {
#define LATHE_SETTER(owner, name, effect, words) owner##_##name,
#define LATHE_VALUE(owner, name, effect, words) owner##_##name,
#include "api/settings.def"
#undef LATHE_SETTER
#undef LATHE_VALUE
  count
};

enum class Effect : uint8_t { honoured, no_effect, refused };

struct Setting {
  const char* name;  // "IBuilderConfig::setFlag", "BuilderFlag::kREFIT"
  Effect effect;
  const char* words;
  const std::type_info* enumeration = nullptr;  // null for functions
  int value = 0;
};

const Setting& setting_of(SettingId id);
// The error of a setting that is refused.
Error refusal_of(SettingId id);

// Which of its warnings an object has given: each is given once. Thread-safe.
class SettingNotices {
 public:
  // What settings.def says of a setting that gets another value than its default: nothing where it is honoured, a
  // warning the first time where it has no effect, an error where it is refused.
  Result<> consult(SettingId id, Log& log);
  template <class Enumeration>
  requires std::is_enum_v<Enumeration> Result<> consult(Enumeration value, Log& log) {
    return consult_value(typeid(Enumeration), static_cast<int>(value), log);
  }
  // Of a set of flags, those that differ from the default.
  template <class Flag>
  Result<> consult_flags(uint32_t flags, uint32_t standard, Log& log) {
    for (uint32_t bit = 0; bit < 32; ++bit)
      if (((flags ^ standard) >> bit & 1) != 0) LATHE_TRY(consult(static_cast<Flag>(bit), log));
    return {};
  }

 private:
  static constexpr size_t kBits = 64;
  Result<> consult_value(const std::type_info& enumeration, int value, Log& log);
  bool is_first(SettingId id);
  std::array<std::atomic<uint64_t>, (static_cast<size_t>(SettingId::count) + kBits - 1) / kBits> told_{};
};

}  // namespace lathe::api
