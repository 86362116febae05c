// SPDX-License-Identifier: Apache-2.0
#include "input_elements.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "failure.h"
#include "lathe_onnx.h"

namespace lathe::cli {
namespace {

[[noreturn]] void refuse(std::string_view entry) {
  throw UsageError(fmt::format(
      "--inputElements: '{}' is not of the form name:3, name:3@1x?x64 (with the dims of each) or name:none", entry));
}

int64_t number_of(std::string_view text, std::string_view entry) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > INT32_MAX) refuse(entry);
  return number;
}

// "1x?x64"; "scalar" has no dimensions.
nvinfer1::Dims dims_of(std::string_view text, std::string_view entry) {
  nvinfer1::Dims dims{};
  if (text == "scalar") return dims;
  for (bool is_last = false; !is_last;) {
    const std::string_view dim = text.substr(0, text.find('x'));
    is_last = dim.size() == text.size();
    text.remove_prefix(is_last ? dim.size() : dim.size() + 1);
    if (dims.nbDims == nvinfer1::Dims::MAX_DIMS) refuse(entry);
    dims.d[dims.nbDims++] = dim == "?" ? -1 : number_of(dim, entry);
  }
  return dims;
}

}  // namespace

void set_input_elements(nvonnxparser::IParser& parser, const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const size_t colon = entry.rfind(':');  // a name may hold colons
    if (colon == std::string_view::npos || colon == 0) refuse(entry);
    std::string_view count = entry.substr(colon + 1);
    std::optional<nvinfer1::Dims> dims;
    if (const size_t at = count.find('@'); at != std::string_view::npos) {
      dims = dims_of(count.substr(at + 1), entry);
      count = count.substr(0, at);
    }
    const auto elements = static_cast<int32_t>(count == "none" ? -1 : number_of(count, entry));
    const std::string name(entry.substr(0, colon));
    if (!setInputElements(parser, name.c_str(), elements, dims ? &*dims : nullptr)) throw UsageError(lastError());
  }
}

}  // namespace lathe::cli
