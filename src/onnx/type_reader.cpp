// SPDX-License-Identifier: Apache-2.0
#include "onnx/type_reader.h"

namespace lathe::onnx {
namespace {

void read_shape(WireCursor cursor, TypeProto& type) {
  while (cursor.next()) {
    if (cursor.field() != 1) {
      cursor.skip();
      continue;
    }
    WireCursor inner = cursor.message("TensorShapeProto.Dimension");
    Dim dim;
    while (inner.next()) {
      switch (inner.field()) {
        case 1:
          dim = Dim{inner.integer(), {}};
          break;
        case 2:
          dim = Dim{std::nullopt, inner.bytes()};
          break;
        default:
          inner.skip();
      }
    }
    if (cursor.charge(sizeof(Dim))) type.dims.push_back(dim);
  }
}

void read_tensor_type(WireCursor cursor, TypeProto& type) {
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        type.element = static_cast<ElementType>(cursor.integer32());
        break;
      case 2:
        type.has_shape = true, read_shape(cursor.message("TensorShapeProto"), type);
        break;
      default:
        cursor.skip();
    }
  }
}

// Field 1 of TypeProto.Sequence and TypeProto.Optional.
void read_element_type(WireCursor cursor, TypeProto& type) {
  while (cursor.next()) {
    if (cursor.field() != 1) {
      cursor.skip();
      continue;
    }
    type.inner.clear();
    const WireCursor inner = cursor.message("TypeProto");
    if (cursor.charge(sizeof(TypeProto))) read_type(inner, type.inner.emplace_back());
  }
}

}  // namespace

void read_type(WireCursor cursor, TypeProto& type) {
  while (cursor.next()) {
    const auto start = [&](TypeKind kind) {
      if (type.kind != kind) type = TypeProto{.kind = kind, .element = {}, .has_shape = false, .dims = {}, .inner = {}};
    };
    switch (cursor.field()) {
      case 1:
        start(TypeKind::tensor), read_tensor_type(cursor.message("TypeProto.Tensor"), type);
        break;
      case 4:
        start(TypeKind::sequence), read_element_type(cursor.message("TypeProto.Sequence"), type);
        break;
      case 5:
        start(TypeKind::map), cursor.skip();
        break;
      case 7:
        start(TypeKind::opaque), cursor.skip();
        break;
      case 8:
        start(TypeKind::sparse_tensor), read_tensor_type(cursor.message("TypeProto.SparseTensor"), type);
        break;
      case 9:
        start(TypeKind::optional), read_element_type(cursor.message("TypeProto.Optional"), type);
        break;
      default:
        cursor.skip();
    }
  }
}

}  // namespace lathe::onnx
