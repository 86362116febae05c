// SPDX-License-Identifier: Apache-2.0
// The inputs of a model as those of a network.
#include <algorithm>

#include "onnx/graph_importer.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostElements = 4096;  // of a sequence

bool has_name(const GraphProto& graph, std::string_view name) {
  const auto is_it = [&](const ValueInfo& value) { return value.name == name; };
  return std::ranges::any_of(graph.inputs, is_it) || std::ranges::any_of(graph.outputs, is_it);
}

}  // namespace

Result<ir::Value*> GraphImporter::import_tensor_input(const std::string& name, const TypeProto& type,
                                                      const Dims* dims) {
  const bool is_text = type.element == ElementType::string;
  const std::optional<DType> dtype = is_text ? DType::u8 : to_dtype(type.element);
  if (!dtype)
    return fail(ErrorCode::dtype_unsupported, "input '{}' has element type {}, which Lathe cannot compute with", name,
                name_of(type.element));
  if (!type.has_shape && !dims)
    return fail(ErrorCode::shape_unknown,
                "input '{}' has no shape in the model; state its rank, with symbolic dimensions if need be", name);
  const size_t rank = dims ? dims->size() : type.dims.size();
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    const Dim dim = type.has_shape && rank == type.dims.size() ? type.dims[i] : Dim{};
    if (dims && (*dims)[i] >= 0)
      shape.push_back((*dims)[i]);
    else if (dim.value && *dim.value >= 0)
      shape.push_back(*dim.value);
    else
      shape.push_back(graph_.dim_symbol(dim.param.empty() ? fmt::format("{}.{}", name, i) : std::string(dim.param)));
  }
  if (is_text) shape.push_back(graph_.dim_symbol(fmt::format("{}.bytes", name), {1, Range::kUnbounded}));
  return int64_.add_input(graph_, name, *dtype, std::move(shape));
}

// Tensor i of sequence `x` is the network's input `x_i`. A size that the model has a name for need not be the same in
// all of them.
Result<Slot> GraphImporter::import_sequence_input(const ValueInfo& input, const TypeProto& type,
                                                  const InputElements* elements) {
  if (type.inner.empty() || type.inner[0].kind != TypeKind::tensor)
    return fail(ErrorCode::dtype_unsupported, "input '{}' is a sequence of what is no tensor, which no network has",
                input.name);
  if (!elements)
    return fail(ErrorCode::dtype_unsupported,
                "input '{0}' is a sequence, of which a model does not tell how many tensors it has; tell it by "
                "lathe::setInputElements() of lathe_onnx.h, and they are the network's inputs '{0}_0', '{0}_1' and so "
                "on",
                input.name);
  if (elements->count < 0 || elements->count > kMostElements)
    return fail(ErrorCode::invalid_argument,
                "input '{}' is a sequence of {} tensors by setInputElements(), expected 0 "
                "to {}",
                input.name, elements->count, kMostElements);
  TypeProto each = type.inner[0];
  for (Dim& dim : each.dims) dim.param = {};
  Sequence sequence{{}, to_dtype(each.element), each.element == ElementType::string};
  for (int64_t i = 0; i < elements->count; ++i) {
    const std::string name = fmt::format("{}_{}", input.name, i);
    if (has_name(model_.graph, name))
      return fail(ErrorCode::model_invalid,
                  "tensor {} of input '{}', a sequence, is the network's input '{}', but the model has another of this "
                  "name; rename one of them",
                  i, input.name, name);
    LATHE_ASSIGN(ir::Value * value, import_tensor_input(name, each, elements->dims ? &*elements->dims : nullptr));
    sequence.elements.push_back(value);
  }
  return to_slot(std::move(sequence));
}

// An input is always given to an engine, and so is one that is an optional, unless the application says otherwise.
Result<Slot> GraphImporter::import_input(const ValueInfo& input) {
  const std::string name(input.name);
  const auto told = options_.input_elements.find(name);
  const InputElements* elements = told == options_.input_elements.end() ? nullptr : &told->second;
  const TypeProto* type = &input.type;
  const bool is_optional = type->kind == TypeKind::optional && !type->inner.empty();
  if (is_optional && elements && elements->count == InputElements::kNone) {
    Slot empty;
    empty.is_empty_optional = true;
    return empty;
  }
  if (is_optional) type = &type->inner[0];
  if (type->kind == TypeKind::sequence) return import_sequence_input(input, *type, elements);
  if (type->kind != TypeKind::tensor)
    return fail(ErrorCode::dtype_unsupported,
                "input '{}' is neither a tensor nor a sequence of tensors, and inputs of networks are", name);
  if (elements && elements->count != 1)
    return fail(ErrorCode::invalid_argument, "input '{}' is {} tensors by setInputElements(), but the model has one",
                name, elements->count);
  const auto given = std::find_if(options_.input_dims.begin(), options_.input_dims.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  const Dims* dims = given == options_.input_dims.end() ? nullptr : &given->second;
  if (elements && elements->dims) dims = &*elements->dims;
  if (dims && type->has_shape && dims->size() != type->dims.size())
    return fail(ErrorCode::invalid_argument, "input '{}' was given {} dimensions, but has {}", name, dims->size(),
                type->dims.size());
  LATHE_ASSIGN(ir::Value * value, import_tensor_input(name, *type, dims));
  return type->element == ElementType::string ? to_text_slot(value) : to_slot(value);
}

Result<> GraphImporter::check_input_elements() const {
  for (const auto& told : options_.input_elements) {
    const std::string& name = told.first;
    if (std::ranges::none_of(model_.graph.inputs, [&](const ValueInfo& input) { return input.name == name; }))
      return fail(ErrorCode::invalid_argument, "setInputElements() names '{}', which is no input of the model", name);
  }
  return {};
}

void GraphImporter::import_inputs(Scope& scope) {
  if (Result<> fits = check_input_elements(); !fits) problem(std::move(fits).error());
  for (const TensorData& tensor : model_.graph.initializers) scope.initializers[tensor.name] = &tensor;
  for (const ValueInfo& input : model_.graph.inputs) {
    if (scope.initializers.contains(input.name)) continue;  // a default value: imported as a constant
    Result<Slot> value = import_input(input);
    if (value) {
      scope.values[input.name] = *std::move(value);
    } else {
      scope.values[input.name].blocked = true;
      problem(std::move(value).error());
    }
  }
  for (const SparseTensorData& tensor : model_.graph.sparse_initializers) {
    scope.values[tensor.values.name].blocked = true;
    problem(Error{ErrorCode::dtype_unsupported,
                  fmt::format("initializer '{}' is sparse, which is not supported", tensor.values.name),
                  {}});
  }
}

}  // namespace lathe::onnx
