// SPDX-License-Identifier: Apache-2.0
// Lists of expressions: the dimensions of tensors.
#include "shape/expr.h"

#include <algorithm>

namespace lathe {

Expr volume(const Shape& shape) {
  Expr product = 1;
  for (const Expr& dim : shape) product *= dim;
  return product;
}

std::string to_string(const Shape& shape, std::span<const std::string> names) {
  std::string text = "[";
  for (const Expr& dim : shape) {
    if (text.size() > 1) text += ", ";
    text += dim.to_string(names);
  }
  return text + "]";
}

std::optional<Dims> as_constant(const Shape& shape) {
  Dims dims;
  dims.reserve(shape.size());
  for (const Expr& dim : shape) {
    const std::optional<int64_t> value = dim.as_constant();
    if (!value) return std::nullopt;
    dims.push_back(*value);
  }
  return dims;
}

Shape to_shape(std::span<const int64_t> dims) { return Shape(dims.begin(), dims.end()); }

bool depends_on_data(const Expr& expr, std::span<const Symbol> symbols) {
  std::vector<SymbolId> used;
  expr.collect_symbols(used);
  return std::any_of(used.begin(), used.end(),
                     [&](SymbolId id) { return symbols[id].source == SymbolSource::computed; });
}

bool depends_on_data(const Shape& shape, std::span<const Symbol> symbols) {
  return std::any_of(shape.begin(), shape.end(), [&](const Expr& dim) { return depends_on_data(dim, symbols); });
}

}  // namespace lathe
