// SPDX-License-Identifier: Apache-2.0
#include "api/settings.h"

#include <algorithm>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "api/deprecation.h"
#include "base/text_table.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // deprecated flags have rows, too

namespace lathe::api {
namespace {

using namespace nvinfer1;
using nvonnxparser::OnnxParserFlag;

// The library that dispatches has runtimes alone: what other objects are asked for stays out of it.
#ifdef LATHE_RUNTIMES_ALONE
constexpr bool is_here(std::string_view owner) {
  return owner == "IRuntime" || owner == "TempfileControlFlag" || owner == "process";
}
#else
constexpr bool is_here(std::string_view) { return true; }
#endif

// What is honoured is told by the documentation alone.
constexpr bool is_told(std::string_view owner, Effect effect) { return is_here(owner) && effect != Effect::honoured; }

using Texts = TextTable<[] {  // the name of each setting, and words
  return std::to_array<std::string_view>({
#define LATHE_SETTER(owner, name, effect, words) \
  is_here(#owner) ? #owner "::" #name : "", is_told(#owner, Effect::effect) ? words : "",
#define LATHE_VALUE LATHE_SETTER
#include "api/settings.def"
#if NV_TENSORRT_MAJOR < 11
#include "api/settings_10_16.def"
#endif
#undef LATHE_SETTER
#undef LATHE_VALUE
  });
}>;
static_assert(Texts::kCount == 2 * static_cast<size_t>(SettingId::count));

constexpr Effect kEffects[] = {
#define LATHE_SETTER(owner, name, effect, words) Effect::effect,
#define LATHE_VALUE LATHE_SETTER
#include "api/settings.def"
#if NV_TENSORRT_MAJOR < 11
#include "api/settings_10_16.def"
#endif
#undef LATHE_SETTER
#undef LATHE_VALUE
};

struct Value {
  const std::type_info* enumeration;  // null where it is not here
  int value;
  SettingId setting;
};

constinit const Value kValues[] = {
#define LATHE_SETTER(owner, name, effect, words)
#define LATHE_VALUE(owner, name, effect, words) \
  {is_here(#owner) ? &typeid(owner) : nullptr, static_cast<int>(owner::name), SettingId::owner##_##name},
#include "api/settings.def"
#if NV_TENSORRT_MAJOR < 11
#include "api/settings_10_16.def"
#endif
#undef LATHE_SETTER
#undef LATHE_VALUE
};

#ifndef LATHE_RUNTIMES_ALONE
struct DeprecatedValue {
  const std::type_info* enumeration;
  int value;
  Deprecation deprecation;
};

constinit DeprecatedValue kDeprecatedValues[] = {
#define LATHE_DEPRECATED(owner, name, replacement) \
  {&typeid(owner), static_cast<int>(owner::name), {#owner "::" #name, replacement}},
#include "api/deprecated_values.def"
#undef LATHE_DEPRECATED
};

void tell_deprecated(const std::type_info& enumeration, int value, Log& log) {
  for (DeprecatedValue& deprecated : kDeprecatedValues)
    if (*deprecated.enumeration == enumeration && deprecated.value == value) deprecated.deprecation.tell(log);
}
#else
void tell_deprecated(const std::type_info&, int, Log&) {}
#endif

}  // namespace

Setting setting_of(SettingId id) {
  const auto index = static_cast<size_t>(id);
  const Value* const value = std::ranges::find(kValues, id, &Value::setting);
  const bool is_value = value != std::end(kValues);
  return {Texts::at(2 * index), kEffects[index], Texts::at(2 * index + 1), is_value ? value->enumeration : nullptr,
          is_value ? value->value : 0};
}

Error refusal_of(SettingId id) {
  const Setting setting = setting_of(id);
  return {ErrorCode::config_invalid, fmt::format("{} is not supported: {}", setting.name, setting.words), {}};
}

bool SettingNotices::is_first(SettingId id) {
  const auto index = static_cast<size_t>(id);
  const uint64_t bit = uint64_t{1} << index % kBits;
  return (told_[index / kBits].fetch_or(bit) & bit) == 0;
}

Result<> SettingNotices::consult(SettingId id, Log& log) {
  const Setting setting = setting_of(id);
  if (setting.effect == Effect::refused) return fail(refusal_of(id));
  if (setting.effect == Effect::no_effect && is_first(id))
    log.print(Severity::warning, "{} has no effect: {}", setting.name, setting.words);
  return {};
}

Result<> SettingNotices::consult_value(const std::type_info& enumeration, int value, Log& log) {
  for (const Value& row : kValues)
    if (row.enumeration && *row.enumeration == enumeration && row.value == value) {
      LATHE_TRY(consult(row.setting, log));
      tell_deprecated(enumeration, value, log);
      return {};
    }
  return fail(ErrorCode::invalid_argument, "{} is not a value of its enumeration", value);
}

}  // namespace lathe::api
