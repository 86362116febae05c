// SPDX-License-Identifier: Apache-2.0
#include "trtexec/values.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "cli/failure.h"

namespace lathe::trtexec {
namespace {

using cli::UsageError;
using nvinfer1::MemoryPoolType;

constexpr std::pair<std::string_view, MemoryPoolType> kPools[] = {
    {"workspace", MemoryPoolType::kWORKSPACE},
    {"dlaSRAM", MemoryPoolType::kDLA_MANAGED_SRAM},
    {"dlaLocalDRAM", MemoryPoolType::kDLA_LOCAL_DRAM},
    {"dlaGlobalDRAM", MemoryPoolType::kDLA_GLOBAL_DRAM},
    {"tacticSharedMem", MemoryPoolType::kTACTIC_SHARED_MEMORY},
    {"tacticDRAM", MemoryPoolType::kTACTIC_DRAM}};

constexpr std::pair<std::string_view, DataType> kTypes[] = {
    {"fp32", DataType::kFLOAT}, {"fp16", DataType::kHALF},   {"bf16", DataType::kBF16},   {"int8", DataType::kINT8},
    {"fp8", DataType::kFP8},    {"int32", DataType::kINT32}, {"int64", DataType::kINT64}, {"uint8", DataType::kUINT8},
    {"bool", DataType::kBOOL},  {"int4", DataType::kINT4},   {"fp4", DataType::kFP4}};

constexpr std::pair<std::string_view, TensorFormat> kFormats[] = {
    {"chw", TensorFormat::kLINEAR},        {"chw2", TensorFormat::kCHW2},
    {"chw4", TensorFormat::kCHW4},         {"hwc8", TensorFormat::kHWC8},
    {"chw16", TensorFormat::kCHW16},       {"chw32", TensorFormat::kCHW32},
    {"dhwc8", TensorFormat::kDHWC8},       {"cdhw32", TensorFormat::kCDHW32},
    {"hwc", TensorFormat::kHWC},           {"dla_linear", TensorFormat::kDLA_LINEAR},
    {"dla_hwc4", TensorFormat::kDLA_HWC4}, {"hwc16", TensorFormat::kHWC16},
    {"dhwc", TensorFormat::kDHWC}};

template <class Value, size_t Count>
Value pick(std::string_view flag, std::string_view what, std::string_view name,
           const std::pair<std::string_view, Value> (&table)[Count]) {
  std::string known;
  for (const auto& [text, value] : table) {
    if (text == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
  }
  throw UsageError(fmt::format("{}: '{}' is no {}: {}", flag, name, what, known));
}

// Where the list's next entry ends: the first comma outside quotes.
size_t entry_end(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') quoted = !quoted;
    if (text[i] == ',' && !quoted) return i;
  }
  return text.size();
}

std::string_view unquoted(std::string_view name) {
  const bool quoted = name.size() >= 2 && name.front() == '\'' && name.back() == '\'';
  return quoted ? name.substr(1, name.size() - 2) : name;
}

std::vector<int64_t> dims_of(std::string_view flag, std::string_view text) {
  std::vector<int64_t> dims;
  if (text == "scalar") return dims;
  for (const std::string& dim : words(text, 'x')) dims.push_back(whole_number(flag, dim, INT64_MIN, INT64_MAX));
  return dims;
}

}  // namespace

int64_t whole_number(std::string_view flag, std::string_view text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(fmt::format("{}: '{}' is no whole number", flag, text));
  if (value < least || value > most)
    throw UsageError(most == INT64_MAX || most == INT32_MAX
                         ? fmt::format("{}: {} is too small: at least {}", flag, value, least)
                         : fmt::format("{}: {} is not from {} to {}", flag, value, least, most));
  return value;
}

double real_number(std::string_view flag, std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end || !std::isfinite(value)) throw UsageError(fmt::format("{}: '{}' is no number", flag, text));
  return value;
}

std::vector<std::string> words(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end + 1 == text.size()) parts.emplace_back();  // a separator at the end: an empty word follows it
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return parts;
}

std::vector<std::pair<std::string, std::string>> named_values(std::string_view flag, std::string_view text) {
  std::vector<std::pair<std::string, std::string>> entries;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, entry_end(text));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const size_t quote = entry.rfind('\''), from = quote == std::string_view::npos ? 0 : quote;
    const size_t colon = from ? entry.find(':', from) : entry.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == entry.size())
      throw UsageError(fmt::format("{}: '{}' is not of the form name:value", flag, entry));
    entries.emplace_back(unquoted(entry.substr(0, colon)), entry.substr(colon + 1));
  }
  return entries;
}

cli::ShapeMap shapes_of(std::string_view flag, std::string_view text) {
  cli::ShapeMap shapes;
  for (const auto& [name, dims] : named_values(flag, text)) shapes[name] = dims_of(flag, dims);
  return shapes;
}

std::string shape_text(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t dim : dims) text += fmt::format("{}{}", text.empty() ? "" : "x", dim);
  return text;
}

bool name_fits(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return name.size() >= before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
}

size_t size_of(std::string_view flag, std::string_view text) {
  constexpr std::pair<char, double> kUnits[] = {{'B', 1}, {'K', 0x1p10}, {'M', 0x1p20}, {'G', 0x1p30}};
  double unit = 0x1p20;
  for (const auto& [sign, bytes] : kUnits)
    if (text.ends_with(sign)) {
      unit = bytes;
      text.remove_suffix(1);
      break;
    }
  const double bytes = real_number(flag, text) * unit;
  if (bytes < 0 || bytes > 0x1p60) throw UsageError(fmt::format("{}: '{}' is no size", flag, text));
  return static_cast<size_t>(bytes);
}

std::map<MemoryPoolType, size_t> pools_of(std::string_view flag, std::string_view text) {
  std::map<MemoryPoolType, size_t> pools;
  for (const auto& [name, size] : named_values(flag, text))
    pools[pick(flag, "memory pool", name, kPools)] = size_of(flag, size);
  return pools;
}

std::vector<IoFormat> formats_of(std::string_view flag, std::string_view text) {
  std::vector<IoFormat> formats;
  for (const auto& [type, names] : named_values(flag, text)) {
    IoFormat& format = formats.emplace_back();
    format.type = pick(flag, "type", type, kTypes);
    for (const std::string& name : words(names, '+'))
      format.formats |= 1U << static_cast<uint32_t>(pick(flag, "format", name, kFormats));
  }
  return formats;
}

}  // namespace lathe::trtexec
