// SPDX-License-Identifier: Apache-2.0
// An ONNX model as plain data. Text and tensor bytes are views into the file or buffer that the Model keeps alive.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "onnx/element_type.h"

namespace lathe::onnx {

struct GraphProto;
class AlignedCopies;

// A constant tensor. Bytes are little-endian, row-major; types below 8 bits are packed, low bits first.
struct TensorData {
  std::string_view name;
  ElementType type = ElementType::undefined;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;
  std::vector<std::string_view> strings;  // instead of bytes for ElementType::string
  std::shared_ptr<const void> owner;      // keeps bytes alive; may outlive the Model
  std::shared_ptr<AlignedCopies> copies;  // takes one of bytes that lie askew in a mapped file; null: in a buffer
  // Why the content is missing, where the reader was told to let that pass (ModelReadOptions).
  std::shared_ptr<const Error> missing;
};

struct SparseTensorData {
  TensorData values;
  TensorData indices;
  std::vector<int64_t> dims;
};

struct Dim {
  std::optional<int64_t> value;
  std::string_view param;  // symbolic name; empty with no value = unknown
};

enum class TypeKind { none, tensor, sequence, map, optional, sparse_tensor, opaque };

struct TypeProto {
  TypeKind kind = TypeKind::none;
  ElementType element = ElementType::undefined;  // of tensor and sparse_tensor
  bool has_shape = false;
  std::vector<Dim> dims;
  std::vector<TypeProto> inner;  // one entry for sequence and optional
};

struct ValueInfo {
  std::string_view name;
  TypeProto type;
};

// Numbers of AttributeProto.AttributeType.
enum class AttributeKind : int32_t {
  undefined = 0,
  real = 1,
  integer = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  reals = 6,
  integers = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type = 13,
  types = 14,
};

// Which member holds the value follows from `kind`; singular tensors, graphs, types are lists of one.
struct Attribute {
  std::string_view name;
  std::string_view reference;  // in a function body: the function's attribute that gives the value
  AttributeKind kind = AttributeKind::undefined;
  float real = 0;
  int64_t integer = 0;
  std::string_view string;
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string_view> strings;
  std::vector<TensorData> tensors;
  std::vector<GraphProto> graphs;
  std::vector<SparseTensorData> sparse_tensors;
  std::vector<TypeProto> types;
};

struct NodeProto {
  std::string_view op_type;
  std::string_view domain;
  std::string_view overload;
  std::string_view name;
  std::vector<std::string_view> inputs;   // "" = omitted
  std::vector<std::string_view> outputs;  // "" = not wanted
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const {
    for (const Attribute& a : attributes)
      if (a.name == attribute) return &a;
    return nullptr;
  }
};

// What the node at that index of its graph is called: nodes without a name by their operator and index.
inline std::string name_of(const NodeProto& node, size_t index) {
  return node.name.empty() ? std::string(node.op_type) + "_" + std::to_string(index) : std::string(node.name);
}

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorData> initializers;
  std::vector<SparseTensorData> sparse_initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_infos;
};

struct OpsetImport {
  std::string_view domain;  // "" is ai.onnx
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view domain;
  std::string_view name;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> attributes;  // without default
  std::vector<Attribute> attribute_defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetImport> opset_imports;
  std::vector<ValueInfo> value_infos;
};

struct Model {
  int64_t ir_version = 0;
  std::vector<OpsetImport> opset_imports;
  std::string_view producer_name;
  std::string_view producer_version;
  std::string_view domain;
  int64_t model_version = 0;
  std::string_view doc;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  bool has_training_info = false;
  bool has_graph = false;
  GraphProto graph;
  std::vector<FunctionProto> functions;

  std::shared_ptr<const void> owner;                     // of every view above
  std::vector<std::shared_ptr<const MappedFile>> files;  // that views point into, of external data too
  std::shared_ptr<AlignedCopies> copies;                 // of what lies askew there
};

// "ai.onnx" and "" name one domain; this gives "".
inline std::string_view normal_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

}  // namespace lathe::onnx
