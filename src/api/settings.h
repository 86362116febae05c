// SPDX-License-Identifier: Apache-2.0
// The table of settings (api/settings.def), and how the objects of the public interface act on it.
#pragma once

#include <array>
#include <atomic>
#include <type_traits>
#include <typeinfo>

#include "NvInferVersion.h"
#include "base/divide.h"
#include "base/log.h"
#include "base/result.h"

namespace lathe::api {

enum class SettingId : uint16_t {
#define LATHE_SETTER(owner, name, effect, words) owner##_##name,
#define LATHE_VALUE(owner, name, effect, words) owner##_##name,
#include "api/settings.def"
#if NV_TENSORRT_MAJOR < 11
#include "api/settings_10_16.def"
#endif
#undef LATHE_SETTER
#undef LATHE_VALUE
  count
};

enum class Effect : uint8_t { honoured, no_effect, refused };

struct Setting {
  const char* name;  // "IBuilderConfig::setFlag", "BuilderFlag::kREFIT"
  Effect effect;
  const char* words;                            // why, and what to do instead; empty where it is honoured
  const std::type_info* enumeration = nullptr;  // whose enumerator this is; null for functions
  int value = 0;                                // of the enumerator
};

Setting setting_of(SettingId id);
// The error of a setting that is refused.
Error refusal_of(SettingId id);

// Remembers which warnings an object has given, so that each is given once. Thread-safe.
class SettingNotices {
 public:
  // To be called when a setting gets another value than its default. Succeeds when the setting is honoured; when it has
  // no effect, succeeds too, and warns the first time; fails with refusal_of() when it is refused.
  Result<> consult(SettingId id, Log& log);
  template <class Enumeration>
  requires std::is_enum_v<Enumeration> Result<> consult(Enumeration value, Log& log) {
    return consult_value(typeid(Enumeration), static_cast<int>(value), log);
  }
  // The same for each flag whose bit in `flags` differs from the default set, `standard`; a flag that does not exist is
  // an invalid argument.
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
  std::array<std::atomic<uint64_t>, ceil_div(static_cast<size_t>(SettingId::count), kBits)> told_{};
};

}  // namespace lathe::api
