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
    check_output_type(output.type, name, *slot.open->rows, slot.open->is_text);
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

// A type that the model declares, which it need not, must be that of the tensors that come.
void GraphImporter::check_output_type(const TypeProto& type, const std::string& name, const ir::Value& tensor,
                                      bool is_text) {
  const TypeProto* held = &type;  // by an optional or a sequence
  while (!held->inner.empty()) held = &held->inner[0];
  const bool is_declared_text = held->element == ElementType::string;
  const std::optional<DType> declared = to_dtype(held->element);
  const bool fits = is_text ? is_declared_text : !is_declared_text && (!declared || *declared == tensor.dtype());
  if (fits || held->element == ElementType::undefined) return;
  problem(Error{ErrorCode::type_mismatch,
                fmt::format("output '{}' is declared {}, but its node yields {}; correct the type that the model "
                            "declares",
                            name, name_of(held->element), is_text ? "strings" : name_of(tensor.dtype())),
                {}});
}

void GraphImporter::import_output(const TypeProto& type, const std::string& name, ir::Value* value) {
  check_output_type(type, name, *value, /*is_text=*/false);
  if (auto warning = contradiction(name, type, value->shape())) report_.warnings.push_back(*std::move(warning));
  add_output(name, value);
}

// A value has one name as an engine's input or output, so that what has one already is copied for another.
void GraphImporter::add_output(const std::string& name, ir::Value* value) {
  const auto is_it = [&](const ir::Output& other) { return other.value == value; };
  if (!value->producer() || std::ranges::any_of(graph_.outputs(), is_it))
    value = ir::GraphBuilder(graph_, {name, {name}, {}}).identity(value);
  if (Result<> added = int64_.add_output(graph_, name, value); !added) problem(std::move(added).error());
}

// Strings are bytes of the engine, with one dimension more.
void GraphImporter::import_text_output(const TypeProto& type, const std::string& name, ir::Value* rows) {
  check_output_type(type, name, *rows, /*is_text=*/true);
  const Shape shape(rows->shape().begin(), rows->shape().end() - 1);
  if (auto warning = contradiction(name, type, shape)) report_.warnings.push_back(*std::move(warning));
  add_output(name, rows);
}

// Element i of sequence `y` is the engine's output `y_i`.
void GraphImporter::import_sequence_output(const ValueInfo& output, const Sequence& sequence) {
  if (sequence.elements.empty())
    return problem(Error{ErrorCode::dtype_unsupported,
                         fmt::format("output '{}' is an empty sequence, of which an engine can tell nothing; remove it "
                                     "from the model's outputs",
                                     output.name),
                         {}});
  if (sequence.is_text) check_output_type(output.type, std::string(output.name), *sequence.elements[0], true);
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
    import_output(type, name, part);
  }
}

}  // namespace lathe::onnx
