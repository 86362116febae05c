// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/quantize/options.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace lathe::api::quantize {
namespace {

using nlohmann::json;
using Take = std::function<bool(const json& value, QuantizeOptions& options)>;

template <class T>
bool take_name(const json& value, std::initializer_list<std::pair<std::string_view, T>> names, T& into) {
  for (const auto& [name, meant] : names)
    if (value == name) return into = meant, true;
  return false;
}

bool take_type(const json& value, DType& into) {
  return take_name<DType>(value, {{"i8", DType::i8}, {"u8", DType::u8}}, into);
}

bool take_flag(const json& value, bool& into) {
  if (value.is_boolean()) into = value.get<bool>();
  return value.is_boolean();
}

bool take_percentile(const json& value, double& into) {
  const bool valid = value.is_number() && value.get<double>() > 0 && value.get<double>() <= 100;
  if (valid) into = value.get<double>();
  return valid;
}

bool take_texts(const json& value, std::vector<std::string>& into) {
  if (!value.is_array()) return false;
  for (const json& text : value) {
    if (!text.is_string()) return false;
    into.push_back(text.get<std::string>());
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
        [](const json& value, QuantizeOptions& options) {
          return take_name<CalibrationMethod>(value,
                                              {{"entropy", CalibrationMethod::entropy},
                                               {"minmax", CalibrationMethod::min_max},
                                               {"percentile", CalibrationMethod::percentile}},
                                              options.activations.method);
        }}},
      {"percentile",
       {"above 0 and at most 100",
        [](const json& value, QuantizeOptions& options) {
          return take_percentile(value, options.activations.percentile);
        }}},
      {"activations",
       {"i8 or u8",
        [](const json& value, QuantizeOptions& options) { return take_type(value, options.activations.type); }}},
      {"weights",
       {"i8 or u8", [](const json& value, QuantizeOptions& options) { return take_type(value, options.weights); }}},
      {"symmetric",
       {"true or false",
        [](const json& value, QuantizeOptions& options) { return take_flag(value, options.activations.symmetric); }}},
      {"perChannel",
       {"true or false",
        [](const json& value, QuantizeOptions& options) { return take_flag(value, options.per_channel); }}},
      {"exclude",
       {"a list of names",
        [](const json& value, QuantizeOptions& options) { return take_texts(value, options.exclude); }}},
  };
  return known;
}

}  // namespace

Result<QuantizeOptions> parse_options(const char* text) {
  QuantizeOptions options;
  if (!text || !*text) return options;
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return fail(ErrorCode::invalid_argument, "the options are not a JSON object: {}", text);
  for (const auto& [key, value] : object.items()) {
    const auto known = known_options().find(key);
    if (known == known_options().end()) return fail(ErrorCode::invalid_argument, "option '{}' is unknown", key);
    if (!known->second.take(value, options))
      return fail(ErrorCode::invalid_argument, "option '{}' is {}; it must be {}", key, value.dump(),
                  known->second.values);
  }
  return options;
}

}  // namespace lathe::api::quantize
