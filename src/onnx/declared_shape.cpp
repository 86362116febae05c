// SPDX-License-Identifier: Apache-2.0
#include "onnx/declared_shape.h"

#include "base/result.h"

namespace lathe::onnx {
namespace {

std::string text_of(const std::vector<Dim>& dims) {
  const auto text = [](const Dim& dim) {
    return dim.value ? std::to_string(*dim.value) : dim.param.empty() ? "?" : std::string(dim.param);
  };
  std::string list;
  for (const Dim& dim : dims) list += (list.empty() ? "" : ", ") + text(dim);
  return "[" + list + "]";
}

// Exporters write -1 for sizes that are open, though ONNX has no such size.
bool differs(const Dim& declared, const Expr& dim) {
  return declared.value.value_or(-1) >= 0 && dim.is_constant() && dim != Expr(*declared.value);
}

}  // namespace

std::optional<std::string> contradiction(std::string_view output, const TypeProto& declared, const Shape& shape) {
  if (!declared.inner.empty() || !declared.has_shape) return std::nullopt;
  bool contradicts = declared.dims.size() != shape.size();
  for (size_t d = 0; !contradicts && d < shape.size(); ++d) contradicts = differs(declared.dims[d], shape[d]);
  if (!contradicts) return std::nullopt;
  return fmt::format("output '{}' is declared {}, but its node yields {}: the node's dimensions hold", output,
                     text_of(declared.dims), to_string(shape));
}

}  // namespace lathe::onnx
