// SPDX-License-Identifier: Apache-2.0
// The outputs of a model as those of a network.
#include <algorithm>
#include <set>

#include "onnx/declared_shape.h"
#include "onnx/graph_importer.h"

namespace lathe::onnx {

void GraphImporter::import_outputs(Scope& scope) {
  for (const ValueInfo& output : model_.graph.outputs) {
    const Slot slot = resolve(output.name, scope);
    if (slot.blocked || !slot.is_defined()) continue;  // the fault is reported where it arose
    import_slot_output(output, slot);
  }
}

// A sequence y of unknown length is the engine's outputs `y_elements` and `y_dims`, as TensorList says; of an optional,
// `y_is_there` says whether there is what the others hold.
void GraphImporter::import_slot_output(const ValueInfo& output, const Slot& slot) {
  const std::string name(output.name);
  if (slot.maybe && !slot.maybe->element.is_empty_optional) {
    import_parts_output(output, {{name + "_is_there", slot.maybe->is_there}}, TypeProto());
    import_slot_output(output, slot.maybe->element);
  } else if (slot.open) {
    import_parts_output(output, {{name + "_elements", slot.open->rows}, {name + "_dims", slot.open->dims}},
                        TypeProto());
  } else if (slot.sequence) {
    import_sequence_output(output, *slot.sequence);
  } else if (slot.text) {
    import_text_output(output.type, name, slot.text);
  } else if (slot.value) {
    import_output(output.type, name, slot.value);
  } else {
    problem(Error{ErrorCode::dtype_unsupported,
                  fmt::format("output '{}' is an optional without an element, of which an engine can tell nothing; "
                              "remove it from the model's outputs",
                              name),
                  {}});
  }
}

void GraphImporter::import_output(const TypeProto& type, const std::string& name, ir::Value* value) {
  const TypeProto* tensor = &type;  // of an optional or a sequence, what it holds
  while (!tensor->inner.empty()) tensor = &tensor->inner[0];
  const std::optional<DType> declared = to_dtype(tensor->element);
  if (declared && *declared != value->dtype())
    problem(Error{ErrorCode::type_mismatch,
                  fmt::format("output '{}' is declared {}, but its node yields {}", name, name_of(*declared),
                              name_of(value->dtype())),
                  {}});
  if (auto warning = contradiction(name, type, value->shape())) report_.warnings.push_back(*std::move(warning));
  if (Result<> added = int64_.add_output(graph_, name, value); !added) problem(std::move(added).error());
}

// Strings are bytes of the engine, with one dimension more.
void GraphImporter::import_text_output(const TypeProto& type, const std::string& name, ir::Value* rows) {
  const TypeProto& tensor = type.kind == TypeKind::optional && !type.inner.empty() ? type.inner[0] : type;
  if (tensor.kind == TypeKind::tensor && tensor.element != ElementType::string)
    problem(Error{ErrorCode::type_mismatch,
                  fmt::format("output '{}' is declared {}, but its node yields strings", name, name_of(tensor.element)),
                  {}});
  const Shape shape(rows->shape().begin(), rows->shape().end() - 1);
  if (auto warning = contradiction(name, type, shape)) report_.warnings.push_back(*std::move(warning));
  if (!rows->producer()) rows = ir::GraphBuilder(graph_, {name, {name}, {}}).identity(rows);  // an input
  if (Result<> added = int64_.add_output(graph_, name, rows); !added) problem(std::move(added).error());
}

// Element i of sequence `y` is the engine's output `y_i`.
void GraphImporter::import_sequence_output(const ValueInfo& output, const Sequence& sequence) {
  if (sequence.elements.empty())
    return problem(Error{ErrorCode::dtype_unsupported,
                         fmt::format("output '{}' is an empty sequence, of which an engine can tell nothing; remove it "
                                     "from the model's outputs",
                                     output.name),
                         {}});
  std::vector<std::pair<std::string, ir::Value*>> parts;
  for (size_t i = 0; i < sequence.elements.size(); ++i)
    parts.emplace_back(fmt::format("{}_{}", output.name, i), sequence.elements[i]);
  import_parts_output(output, parts, sequence.is_text ? TypeProto() : output.type);
}

// The tensors of an output that is a sequence or an optional, as outputs of the engine by these names, which nothing
// else may have. `type` is what the model declares of them; a TypeProto without a type checks nothing.
void GraphImporter::import_parts_output(const ValueInfo& output,
                                        const std::vector<std::pair<std::string, ir::Value*>>& parts,
                                        const TypeProto& type) {
  std::set<std::string> taken;
  for (const ValueInfo& other : model_.graph.inputs) taken.emplace(other.name);
  for (const ir::Output& other : graph_.outputs()) taken.insert(other.name);
  for (const ValueInfo& other : model_.graph.outputs) taken.emplace(other.name);
  for (const auto& [name, part] : parts) {
    if (taken.contains(name))
      return problem(
          Error{ErrorCode::model_invalid,
                fmt::format("a part of output '{}', which is a sequence or an optional, is the engine's tensor '{}', "
                            "but another input or output has this name; rename one of them",
                            output.name, name),
                {}});
    const auto is_it = [value = part](const ir::Output& other) { return other.value == value; };
    const bool is_own = part->producer() && std::ranges::none_of(graph_.outputs(), is_it);  // neither in- nor output
    import_output(type, name, is_own ? part : ir::GraphBuilder(graph_, {name, {name}, {}}).identity(part));
  }
}

}  // namespace lathe::onnx
