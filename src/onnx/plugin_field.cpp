// SPDX-License-Identifier: Apache-2.0
#include "onnx/plugin_field.h"

#include <algorithm>
#include <cstdlib>

namespace lathe::onnx {
namespace {

double to_number(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

void read_range(PluginField& field, std::string_view text) {
  if (text == "=count") text = "=1..1048576";
  if (text == "=extent") text = "=1..16384";
  field.has_range = !text.empty();
  if (text.starts_with(">=")) {
    field.least = to_number(text.substr(2));
  } else if (text.starts_with('>')) {
    field.least = to_number(text.substr(1)), field.above = true;
  } else if (text.starts_with('=')) {
    const size_t dots = text.find("..");
    field.least = to_number(text.substr(1, dots - 1)), field.most = to_number(text.substr(dots + 2));
  }
}

PluginField to_plugin_field(std::string_view word) {
  PluginField field;
  const size_t colon = word.find(':'), end = word.find_first_of("=>");
  field.type = word[0];
  field.is_required = word[colon - 1] == '!';
  field.count = static_cast<size_t>(to_number(word.substr(1, colon - 1)));
  field.name = word.substr(colon + 1, end == std::string_view::npos ? end : end - colon - 1);
  read_range(field, end == std::string_view::npos ? "" : word.substr(end));
  return field;
}

std::vector<double> numbers_of(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::integer:
      return {static_cast<double>(attribute.integer)};
    case AttributeKind::real:
      return {static_cast<double>(attribute.real)};
    case AttributeKind::integers:
      return {attribute.integers.begin(), attribute.integers.end()};
    case AttributeKind::reals:
      return {attribute.reals.begin(), attribute.reals.end()};
    default:
      return {};
  }
}

std::string text_of(const PluginField& field, double number) {
  const bool is_real = field.type == 'f' || field.type == 'F';
  return is_real ? fmt::format("{}", static_cast<float>(number)) : fmt::format("{:.0f}", number);
}

void check_field(NodeContext& c, const PluginField& field) {
  const Attribute* found = c.look_at(field.name);
  if (!found) {
    if (field.is_required) c.invalid("the plugin needs field '{}'", field.name);
    return;
  }
  const bool is_list = found->kind == AttributeKind::integers || found->kind == AttributeKind::reals;
  const std::vector<double> numbers = numbers_of(*found);
  if (is_list && field.count > 0 && numbers.size() != field.count)
    return c.invalid("field '{}' has {} numbers, expected {}", field.name, numbers.size(), field.count);
  if (is_list && field.is_required && numbers.empty())
    return c.invalid("field '{}' has no numbers, expected 1 or more", field.name);
  for (const double number : numbers)
    if (!field.takes(number))
      return c.invalid("field '{}' {} {}, expected {}", field.name, is_list ? "has" : "is", text_of(field, number),
                       field.range());
}

}  // namespace

std::string PluginField::range() const {
  if (least == -std::numeric_limits<double>::infinity()) return above ? "a finite number" : "a number";
  if (above) return fmt::format("more than {}", least);
  if (most == std::numeric_limits<double>::max()) return fmt::format("{} or more", least);
  return fmt::format("{} to {}", least, most);
}

std::vector<PluginField> to_plugin_fields(std::string_view words) {
  std::vector<PluginField> fields;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    fields.push_back(to_plugin_field(word));
  }
  return fields;
}

void check_fields(NodeContext& c, const std::vector<PluginField>& fields) {
  for (const PluginField& field : fields)
    if (!c.failed()) check_field(c, field);
}

}  // namespace lathe::onnx
