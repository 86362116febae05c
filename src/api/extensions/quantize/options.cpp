// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/quantize/options.h"

#include <functional>
#include <map>

#include "api/json_value.h"

namespace lathe::api::quantize {
namespace {

using Kind = JsonValue::Kind;
using Take = std::function<bool(const JsonValue& value, QuantizeOptions& options)>;

template <class T>
bool take_name(const JsonValue& value, std::initializer_list<std::pair<std::string_view, T>> names, T& into) {
  for (const auto& [name, meant] : names)
    if (value.text() == name) return into = meant, true;
  return false;
}

bool take_type(const JsonValue& value, DType& into) {
  return take_name<DType>(value, {{"i8", DType::i8}, {"u8", DType::u8}, {"f8e4m3fn", DType::f8e4m3fn}}, into);
}

bool take_flag(const JsonValue& value, bool& into) {
  if (value.is(Kind::boolean)) into = value.truth();
  return value.is(Kind::boolean);
}

bool take_percentile(const JsonValue& value, double& into) {
  const bool valid = value.is(Kind::number) && value.number() > 0 && value.number() <= 100;
  if (valid) into = value.number();
  return valid;
}

bool take_texts(const JsonValue& value, std::vector<std::string>& into) {
  if (!value.is(Kind::array)) return false;
  for (const JsonValue& text : value.elements()) {
    if (!text.is(Kind::text)) return false;
    into.push_back(text.text());
  }
  return true;
}

struct Option {
  const char* values;
  Take take;
};

const std::map<std::string_view, Option>& known_options() {
  static const std::map<std::string_view, Option> known = {
      {"method",
       {"entropy, minmax or percentile",
        [](const JsonValue& value, QuantizeOptions& options) {
          return take_name<CalibrationMethod>(value,
                                              {{"entropy", CalibrationMethod::entropy},
                                               {"minmax", CalibrationMethod::min_max},
                                               {"percentile", CalibrationMethod::percentile}},
                                              options.activations.method.emplace());
        }}},
      {"percentile",
       {"above 0 and at most 100",
        [](const JsonValue& value, QuantizeOptions& options) {
          return take_percentile(value, options.activations.percentile);
        }}},
      {"activations",
       {"i8, u8 or f8e4m3fn",
        [](const JsonValue& value, QuantizeOptions& options) { return take_type(value, options.activations.type); }}},
      {"weights",
       {"i8, u8 or f8e4m3fn",
        [](const JsonValue& value, QuantizeOptions& options) { return take_type(value, options.weights); }}},
      {"symmetric",
       {"true or false", [](const JsonValue& value,
                            QuantizeOptions& options) { return take_flag(value, options.activations.symmetric); }}},
      {"perChannel",
       {"true or false",
        [](const JsonValue& value, QuantizeOptions& options) { return take_flag(value, options.per_channel); }}},
      {"exclude",
       {"a list of names",
        [](const JsonValue& value, QuantizeOptions& options) { return take_texts(value, options.exclude); }}},
  };
  return known;
}

// Entropy compares levels that are equally far from each other, as those of floats are not; nor have these zero points.
Result<> check_levels(const QuantizeOptions& options) {
  const bool is_float = is_factor_float8(options.activations.type);
  if (is_float != is_factor_float8(options.weights))
    return fail(ErrorCode::invalid_argument, "activations of {} and weights of {}: both are integers, or both {}",
                name_of(options.activations.type), name_of(options.weights), name_of(DType::f8e4m3fn));
  if (is_float && options.activations.method == CalibrationMethod::entropy)
    return fail(ErrorCode::invalid_argument,
                "method entropy is for levels of integers; of {} it must be minmax or percentile",
                name_of(options.activations.type));
  if (is_float && !options.activations.symmetric)
    return fail(ErrorCode::invalid_argument, "levels of {} have no zero point: they must be symmetric",
                name_of(options.activations.type));
  return {};
}

}  // namespace

Result<QuantizeOptions> parse_options(const char* text) {
  QuantizeOptions options;
  if (!text || !*text) return options;
  LATHE_ASSIGN(const JsonValue given, JsonValue::parse_object("the options", text));
  for (const auto& [key, value] : given.members()) {
    const auto known = known_options().find(key);
    if (known == known_options().end()) return fail(ErrorCode::invalid_argument, "option '{}' is unknown", key);
    if (!known->second.take(value, options))
      return fail(ErrorCode::invalid_argument, "option '{}' is {}; it must be {}", key, value.json().text(),
                  known->second.values);
  }
  LATHE_TRY(check_levels(options));
  return options;
}

}  // namespace lathe::api::quantize
