// SPDX-License-Identifier: Apache-2.0
#include "onnx/plugin_dims.h"

#include <charconv>

namespace lathe::onnx {
namespace {

std::vector<std::string_view> words_of(std::string_view dims) {
  std::vector<std::string_view> words;
  for (size_t comma = 0; comma != std::string_view::npos;) {
    comma = dims.find(", ");
    words.push_back(dims.substr(0, comma));
    if (comma != std::string_view::npos) dims.remove_prefix(comma + 2);
  }
  return words;
}

std::optional<int64_t> number_of(std::string_view word) {
  int64_t number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

void require_rank(NodeContext& c, size_t input, const ir::Value* x, std::string_view dims) {
  const auto rank = static_cast<int64_t>(words_of(dims).size());
  if (!c.failed() && x->rank() != rank)
    c.invalid("input {} has {} dimensions, expected {}: {}", input, x->rank(), rank, dims);
}

ir::Value* PluginDims::require(size_t input, std::string_view dims) {
  ir::Value* x = c_.require(input);
  require_rank(c_, input, x, dims);
  if (c_.failed()) return x;
  std::vector<ir::Value*> wanted;
  bool is_sure = true;
  for (const std::string_view word : words_of(dims)) {
    const auto axis = static_cast<int64_t>(wanted.size());
    const Expr dim = c_.dim(x, axis);
    if (const std::optional<int64_t> number = number_of(word)) {
      is_sure = is_sure && dim == Expr(*number);
      wanted.push_back(c_.ints({*number}));
      continue;
    }
    ir::Value*& size = sizes_[std::string(word)];
    if (!size) size = c_.shape_of(x, axis, axis + 1);
    is_sure = is_sure && size->elements() && (*size->elements())[0] == dim;
    wanted.push_back(size);
  }
  if (c_.failed() || is_sure) return x;
  return c_.require_shape(fmt::format("input {}", input), x, c_.concat(std::move(wanted), 0), dims);
}

}  // namespace lathe::onnx
