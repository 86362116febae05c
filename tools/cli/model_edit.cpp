// SPDX-License-Identifier: Apache-2.0
#include "model_edit.h"

#include <functional>
#include <set>

#include "protobuf.h"

namespace lathe::cli {
namespace {

// ModelProto, GraphProto, ValueInfoProto, TypeProto, TypeProto.Tensor, TensorShapeProto, Dimension, TensorProto.
enum Field : uint32_t {
  kModelIrVersion = 1,
  kModelGraph = 7,
  kGraphInitializer = 5,
  kGraphInput = 11,
  kGraphOutput = 12,
  kGraphValueInfo = 13,
  kInfoName = 1,
  kInfoType = 2,
  kTypeTensor = 1,
  kTypeSequence = 4,
  kTypeOptional = 9,
  kOptionalElement = 1,
  kTensorElement = 1,
  kTensorShape = 2,
  kShapeDim = 1,
  kDimParam = 2,
  kInitializerName = 8,
};

// TensorProto.DataType
constexpr uint64_t kInt32 = 6, kInt64 = 7;

// Copies a message; `edit` may handle a field itself and then returns true.
using Edit = std::function<bool(const ProtoField& field, std::string& out)>;
std::string copy(std::string_view message, const Edit& edit) {
  std::string out;
  ProtoReader reader(message);
  for (ProtoField field; reader.next(field);)
    if (!edit(field, out)) out += field.whole;
  return out;
}

// Copies a message with `edit` applied to each message in field `number`.
std::string copy_inside(std::string_view message, uint32_t number,
                        const std::function<std::string(std::string_view)>& edit) {
  return copy(message, [&](const ProtoField& field, std::string& out) {
    if (field.number != number) return false;
    append_bytes(out, number, edit(field.bytes));
    return true;
  });
}

std::string bytes_of(std::string_view message, uint32_t number) {
  std::string found;
  ProtoReader reader(message);
  for (ProtoField field; reader.next(field);)
    if (field.number == number) found = field.bytes;
  return found;
}

uint64_t integer_of(std::string_view message, uint32_t number) {
  uint64_t found = 0;
  ProtoReader reader(message);
  for (ProtoField field; reader.next(field);)
    if (field.number == number) found = field.value;
  return found;
}

// Its shape with parameters as sizes, or, if it is no input, none.
std::string open_tensor_type(std::string_view tensor, const std::string& name, bool is_input) {
  return copy(tensor, [&](const ProtoField& field, std::string& out) {
    if (field.number != kTensorShape) return false;
    if (!is_input) return true;
    int dim = 0;
    append_bytes(out, kTensorShape, copy_inside(field.bytes, kShapeDim, [&](std::string_view) {
                   std::string param;
                   append_bytes(param, kDimParam, name + "_" + std::to_string(dim++));
                   return param;
                 }));
    return true;
  });
}

// A list of integers may hold a shape: its length is a rank, which no engine leaves open.
bool may_hold_shape(std::string_view type) {
  const std::string tensor = bytes_of(type, kTypeTensor);
  const uint64_t element = integer_of(tensor, kTensorElement);
  int rank = 0;
  const std::string shape = bytes_of(tensor, kTensorShape);
  ProtoReader reader(shape);
  for (ProtoField field; reader.next(field);) rank += field.number == kShapeDim;
  return rank == 1 && (element == kInt32 || element == kInt64);
}

std::string open_info(std::string_view info, bool is_input) {
  const std::string name = bytes_of(info, kInfoName);
  if (is_input && may_hold_shape(bytes_of(info, kInfoType))) return std::string(info);
  return copy_inside(info, kInfoType, [&](std::string_view type) {
    return copy_inside(type, kTypeTensor,
                       [&](std::string_view tensor) { return open_tensor_type(tensor, name, is_input); });
  });
}

std::set<std::string> initializer_names(std::string_view graph) {
  std::set<std::string> names;
  ProtoReader reader(graph);
  for (ProtoField field; reader.next(field);)
    if (field.number == kGraphInitializer) names.insert(bytes_of(field.bytes, kInitializerName));
  return names;
}

bool has_field(std::string_view message, uint32_t number) {
  ProtoReader reader(message);
  for (ProtoField field; reader.next(field);)
    if (field.number == number) return true;
  return false;
}

InputKind kind_of(std::string_view type) {
  if (has_field(type, kTypeSequence)) return InputKind::sequence;
  if (!has_field(type, kTypeOptional)) return InputKind::tensor;
  const std::string element = bytes_of(bytes_of(type, kTypeOptional), kOptionalElement);
  return has_field(element, kTypeSequence) ? InputKind::sequence : InputKind::optional;
}

}  // namespace

ModelNames names_of(std::string_view model) {
  ModelNames names;
  const std::string graph = bytes_of(model, kModelGraph);
  const std::set<std::string> initializers = initializer_names(graph);
  ProtoReader reader(graph);
  for (ProtoField field; reader.next(field);) {
    if (field.number != kGraphInput && field.number != kGraphOutput) continue;
    std::string name = bytes_of(field.bytes, kInfoName);
    if (field.number == kGraphOutput) {
      names.outputs.push_back(std::move(name));
    } else if (!initializers.contains(name)) {
      names.inputs.push_back(std::move(name));
      names.kinds.push_back(kind_of(bytes_of(field.bytes, kInfoType)));
    }
  }
  return names;
}

std::string freeze_inputs(std::string_view model, const std::map<std::string, std::string>& tensors) {
  // Before IR version 4 each initializer is an input, too.
  const bool stays = integer_of(model, kModelIrVersion) < 4;
  return copy_inside(model, kModelGraph, [&](std::string_view graph) {
    std::string out = copy(graph, [&](const ProtoField& field, std::string&) {
      return !stays && field.number == kGraphInput && tensors.contains(bytes_of(field.bytes, kInfoName));
    });
    for (const auto& [name, tensor] : tensors) {
      std::string named = tensor;  // of a field that occurs twice the last one counts
      append_bytes(named, kInitializerName, name);
      append_bytes(out, kGraphInitializer, named);
    }
    return out;
  });
}

std::string open_shapes(std::string_view model) {
  return copy_inside(model, kModelGraph, [](std::string_view graph) {
    const std::set<std::string> initializers = initializer_names(graph);
    return copy(graph, [&](const ProtoField& field, std::string& out) {
      if (field.number == kGraphValueInfo) return true;
      if (field.number != kGraphInput && field.number != kGraphOutput) return false;
      const bool is_input = field.number == kGraphInput;
      if (is_input && initializers.contains(bytes_of(field.bytes, kInfoName))) return false;
      append_bytes(out, field.number, open_info(field.bytes, is_input));
      return true;
    });
  });
}

}  // namespace lathe::cli
