// SPDX-License-Identifier: Apache-2.0
// What stands behind the '=' of a flag. All throw cli::UsageError with `flag` in the message.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/shapes.h"
#include "trtexec/options.h"

namespace lathe::trtexec {

int64_t whole_number(std::string_view flag, std::string_view text, int64_t least, int64_t most);
double real_number(std::string_view flag, std::string_view text);

// "a,b,c"; nothing for "".
std::vector<std::string> words(std::string_view text, char separator = ',');

// "name:value,..." in order. The last colon of each counts, and 'a name in quotes' may hold any sign.
std::vector<std::pair<std::string, std::string>> named_values(std::string_view flag, std::string_view text);

cli::ShapeMap shapes_of(std::string_view flag, std::string_view text);  // name:1x3x224x224,...
std::string shape_text(const std::vector<int64_t>& dims);               // "1x3x224x224"

// The entry of that name, or else the one whose name holds a '*' and fits; null where neither is there.
template <class Value>
const Value* find_named(const std::map<std::string, Value>& values, const std::string& name);
bool name_fits(std::string_view pattern, std::string_view name);

// Bytes: "16" and "16M" are MiB, "1G", "512K", "4096B"; may have a fraction.
size_t size_of(std::string_view flag, std::string_view text);

std::map<nvinfer1::MemoryPoolType, size_t> pools_of(std::string_view flag, std::string_view text);
std::vector<IoFormat> formats_of(std::string_view flag, std::string_view text);  // fp32:chw+chw4,...

template <class Value>
const Value* find_named(const std::map<std::string, Value>& values, const std::string& name) {
  if (const auto exact = values.find(name); exact != values.end()) return &exact->second;
  for (const auto& [pattern, value] : values)
    if (pattern.find('*') != std::string::npos && name_fits(pattern, name)) return &value;
  return nullptr;
}

}  // namespace lathe::trtexec
