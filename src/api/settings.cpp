// SPDX-License-Identifier: Apache-2.0
#include "api/settings.h"

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "api/deprecation.h"

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

constinit const Setting kSettings[] = {
#define LATHE_SETTER(owner, name, effect, words) \
  {is_here(#owner) ? #owner "::" #name : nullptr, Effect::effect, is_here(#owner) ? words : nullptr},
#define LATHE_VALUE(owner, name, effect, words)                                                      \
  {is_here(#owner) ? #owner "::" #name : nullptr, Effect::effect, is_here(#owner) ? words : nullptr, \
   is_here(#owner) ? &typeid(owner) : nullptr, static_cast<int>(owner::name)},
#include "api/settings.def"
#if NV_TENSORRT_MAJOR < 11
#include "api/settings_10_16.def"
#endif
#undef LATHE_SETTER
#undef LATHE_VALUE
};
static_assert(std::size(kSettings) == static_cast<size_t>(SettingId::count));

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

const Setting& setting_of(SettingId id) { return kSettings[static_cast<size_t>(id)]; }

Error refusal_of(SettingId id) {
  const Setting& setting = setting_of(id);
  return {ErrorCode::config_invalid, fmt::format("{} is not supported: {}", setting.name, setting.words), {}};
}

bool SettingNotices::is_first(SettingId id) {
  const auto index = static_cast<size_t>(id);
  const uint64_t bit = uint64_t{1} << index % kBits;
  return (told_[index / kBits].fetch_or(bit) & bit) == 0;
}

Result<> SettingNotices::consult(SettingId id, Log& log) {
  const Setting& setting = setting_of(id);
  if (setting.effect == Effect::refused) return fail(refusal_of(id));
  if (setting.effect == Effect::no_effect && is_first(id))
    log.print(Severity::warning, "{} has no effect: {}", setting.name, setting.words);
  return {};
}

Result<> SettingNotices::consult_value(const std::type_info& enumeration, int value, Log& log) {
  for (size_t i = 0; i < std::size(kSettings); ++i)
    if (kSettings[i].enumeration && *kSettings[i].enumeration == enumeration && kSettings[i].value == value) {
      LATHE_TRY(consult(static_cast<SettingId>(i), log));
      tell_deprecated(enumeration, value, log);
      return {};
    }
  return fail(ErrorCode::invalid_argument, "{} is not a value of its enumeration", value);
}

}  // namespace lathe::api
