// SPDX-License-Identifier: Apache-2.0
#include "ops/plugin.h"

#include <charconv>

#include "ops/rules.h"

namespace lathe {
namespace {

constexpr std::string_view kRowMajor = "linear";

// Calls `take` with each part of the text, which separators outside of parentheses divide.
template <class Take>
Result<> split(std::string_view text, char separator, Take&& take) {
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != separator || depth > 0)) continue;
    std::string_view part = text.substr(begin, i - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (!part.empty()) LATHE_TRY(take(part));
    begin = i + 1;
  }
  return {};
}

Result<ValueType> parse_type(std::string_view text) {
  const size_t open = text.find('[');
  const std::optional<DType> dtype = dtype_from_name(text.substr(0, open));
  if (!dtype || open == std::string_view::npos || !text.ends_with(']'))
    return fail(ErrorCode::text_syntax, "'{}' is no type such as f32[s0, 2*s1]", text);
  ValueType type{*dtype, {}};
  LATHE_TRY(split(text.substr(open + 1, text.size() - open - 2), ',', [&](std::string_view dim) -> Result<> {
    LATHE_ASSIGN(Expr size, parse_expr(dim));
    type.shape.push_back(std::move(size));
    return {};
  }));
  return type;
}

Result<PluginSize> parse_size(std::string_view text) {
  PluginSize size;
  const size_t colon = text.find(':');
  const auto [end, error] = std::from_chars(text.data(), text.data() + std::min(colon, text.size()), size.output);
  if (colon == std::string_view::npos || error != std::errc() || end != text.data() + colon)
    return fail(ErrorCode::text_syntax, "'{}' is no size such as 1: s0*s1", text);
  LATHE_ASSIGN(size.upper, parse_expr(text.substr(colon + 1)));
  return size;
}

// The sizes that the op is given.
Result<> append_given(const InferContext& context, const PluginAttrs& attrs, const PluginFormats& formats,
                      std::vector<Expr>& given) {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has(i)) return fail(ErrorCode::graph_invalid, "input {} of plugin '{}' is omitted", i, attrs.name);
    if (i < static_cast<size_t>(attrs.data_inputs)) {
      Shape shape = context.shape(i);
      if (formats[i]) {
        if (shape.size() != formats[i]->rank_in_memory())
          return fail(ErrorCode::attribute_invalid, "input {} of plugin '{}' has {} dimensions in memory of format {}",
                      i, attrs.name, shape.size(), formats[i]->to_text());
        shape = formats[i]->in_network(shape);
      }
      given.insert(given.end(), shape.begin(), shape.end());
      continue;
    }
    const std::vector<Expr>* elements = context.elements(i);
    if (!elements)
      return fail(ErrorCode::shape_unknown,
                  "input {} of plugin '{}' is a shape tensor, and its contents are not known from sizes and constants",
                  i, attrs.name);
    given.insert(given.end(), elements->begin(), elements->end());
  }
  return {};
}

}  // namespace

Result<PluginResults> parse_plugin_results(const PluginAttrs& attrs) {
  PluginResults results;
  LATHE_TRY(split(attrs.results, ';', [&](std::string_view part) -> Result<> {
    LATHE_ASSIGN(ValueType type, parse_type(part));
    results.types.push_back(std::move(type));
    return {};
  }));
  LATHE_TRY(split(attrs.sizes, ';', [&](std::string_view part) -> Result<> {
    LATHE_ASSIGN(PluginSize size, parse_size(part));
    if (size.output >= results.types.size() || !results.types[size.output].shape.empty() ||
        !may_hold_symbols(results.types[size.output].dtype))
      return fail(ErrorCode::attribute_invalid, "result {} cannot hold a size: it is no integer by itself",
                  size.output);
    results.sizes.push_back(std::move(size));
    return {};
  }));
  return results;
}

Result<PluginFormats> parse_plugin_formats(const PluginAttrs& attrs, size_t results) {
  PluginFormats formats;
  LATHE_TRY(split(attrs.formats, ';', [&](std::string_view part) -> Result<> {
    formats.emplace_back();
    if (part == kRowMajor) return {};
    LATHE_ASSIGN(formats.back(), MemoryFormat::parse(part));
    return {};
  }));
  const size_t operands = static_cast<size_t>(attrs.data_inputs) + results;
  if (attrs.formats.empty()) formats.resize(operands);
  if (formats.size() != operands)
    return fail(ErrorCode::attribute_invalid, "plugin '{}' has formats of {} operands, the node has {}", attrs.name,
                formats.size(), operands);
  return formats;
}

std::string formats_text(const PluginFormats& formats) {
  std::string text;
  for (const auto& format : formats)
    text += fmt::format("{}{}", text.empty() ? "" : "; ", format ? format->to_text() : std::string(kRowMajor));
  return text;
}

std::string results_text(std::span<const ValueType> types) {
  std::string text;
  for (const ValueType& type : types) {
    text += fmt::format("{}{}[", text.empty() ? "" : "; ", name_of(type.dtype));
    for (size_t d = 0; d < type.shape.size(); ++d) text += (d ? ", " : "") + type.shape[d].to_string();
    text += ']';
  }
  return text;
}

std::string sizes_text(std::span<const PluginSize> sizes) {
  std::string text;
  for (const PluginSize& size : sizes)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", size.output, size.upper.to_string());
  return text;
}

Result<> infer_plugin(InferContext& context) {
  const auto& attrs = context.attrs<PluginAttrs>();
  LATHE_ASSIGN(const PluginResults results, parse_plugin_results(attrs));
  if (attrs.data_inputs < 0 || static_cast<size_t>(attrs.data_inputs) > context.num_inputs())
    return fail(ErrorCode::attribute_invalid, "plugin '{}' is given {} inputs of {}", attrs.name, attrs.data_inputs,
                context.num_inputs());
  if (results.types.size() != context.num_outputs())
    return fail(ErrorCode::attribute_invalid, "plugin '{}' has types for {} results, the node has {}", attrs.name,
                results.types.size(), context.num_outputs());
  std::vector<Expr> given(results.sizes.size());
  LATHE_ASSIGN(const PluginFormats formats, parse_plugin_formats(attrs, results.types.size()));
  LATHE_TRY(append_given(context, attrs, formats, given));
  for (size_t i = 0; i < results.sizes.size(); ++i) {
    const Expr upper = results.sizes[i].upper.substitute(given);  // of what is given alone
    given[i] = context.new_symbol("size", i);
    if (given[i].is_valid() && !context.assume(Relation::at_most, given[i], upper))
      return fail(ErrorCode::shape_mismatch, "plugin '{}' declares a size that may be at most {}", attrs.name,
                  upper.to_string());
  }
  for (size_t i = 0; i < results.types.size(); ++i) {
    Shape shape;
    std::vector<SymbolId> used;
    for (const Expr& dim : results.types[i].shape) {
      used.clear();
      dim.collect_symbols(used);
      if (!used.empty() && used.back() >= given.size())
        return fail(ErrorCode::attribute_invalid, "plugin '{}': result {} depends on size {} of {}", attrs.name, i,
                    used.back(), given.size());
      shape.push_back(dim.substitute(given));
    }
    if (const auto& format = formats[static_cast<size_t>(attrs.data_inputs) + i]) {
      if (shape.size() != format->rank())
        return fail(ErrorCode::attribute_invalid, "result {} of plugin '{}' has {} dimensions in format {}", i,
                    attrs.name, shape.size(), format->to_text());
      shape = format->in_memory(shape);
    }
    context.set(i, results.types[i].dtype, std::move(shape));
  }
  for (size_t i = 0; i < results.sizes.size(); ++i)
    if (given[i].is_valid()) context.set_elements(results.sizes[i].output, {given[i]});
  return {};
}

Result<> eval_plugin(EvalContext& context) {
  const auto& attrs = context.attrs<PluginAttrs>();
  return fail(ErrorCode::op_unsupported,
              "plugin '{}', version {}, is the application's, and has no plain evaluation: build an engine", attrs.name,
              attrs.version);
}

}  // namespace lathe
