// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compose/text.h"
#include "onnx/sequences.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostRounds = 1024;

Slot select_slot(NodeContext& c, ir::Value* condition, const Slot& yes, const Slot& no, size_t i) {
  if (yes.is_tensor() && no.is_tensor()) return to_slot(choose_value(c, condition, yes.value, no.value));
  if (yes.text && no.text) {
    const TextPair rows = of_one_width(c, yes.text, no.text);
    return to_text_slot(choose_value(c, condition, rows.a, rows.b));
  }
  if (yes.is_empty_optional && no.is_empty_optional) return yes;
  if (yes.is_empty_optional || no.is_empty_optional) {
    c.unsupported("whether its output {} has an element depends on a condition that only running tells", i);
    return {};
  }
  if (!yes.sequence || !no.sequence) {
    c.invalid("one of its branches yields numbers, strings or a sequence for output {}, the other does not", i);
    return {};
  }
  const Sequence &a = *yes.sequence, &b = *no.sequence;
  if (a.dtype && b.dtype && a.dtype != b.dtype) {
    c.invalid("its branches yield sequences of different types for output {}, {} and {}", i, name_of(*a.dtype),
              name_of(*b.dtype));
    return {};
  }
  if (a.elements.size() != b.elements.size()) {
    c.unsupported(
        "its branches yield sequences of {} and {} tensors for output {}, and its condition is not known: the length "
        "of a sequence must be",
        a.elements.size(), b.elements.size(), i);
    return {};
  }
  Sequence chosen{{}, a.dtype ? a.dtype : b.dtype};
  for (size_t k = 0; k < a.elements.size(); ++k)
    chosen.elements.push_back(choose_value(c, condition, a.elements[k], b.elements[k]));
  return to_slot(std::move(chosen));
}

// The rounds' results side by side; without rounds, no elements of the type that the body declares.
ir::Value* stack(NodeContext& c, const std::vector<ir::Value*>& rows, const ValueInfo& declared) {
  if (!rows.empty()) return c.concat(rows, 0);
  Dims dims = {0};
  for (const Dim& dim : declared.type.dims) dims.push_back(dim.value.value_or(-1));
  const std::optional<DType> dtype = to_dtype(declared.type.element);
  if (!dtype || !declared.type.has_shape || std::count(dims.begin(), dims.end(), -1) > 0) {
    c.unsupported("it has no rounds, and its body does not declare the dimensions of '{}'", declared.name);
    return c.require(0);
  }
  return c.filled(0, *dtype, dims);
}

// Whether another round follows; an error if that is not known.
bool goes_on(NodeContext& c, ir::Value* condition) {
  const std::optional<double> known = c.constant_scalar(condition);
  if (!known)
    c.unsupported(
        "it carries a sequence or an optional, and a condition that only running tells ends it; such a loop is written "
        "out while importing");
  return known && *known != 0;
}

void too_many_rounds(NodeContext& c) {
  c.unsupported("it carries a sequence or an optional, and has more than {} rounds", kMostRounds);
}

}  // namespace

bool yields_no_tensor(const GraphProto& graph) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), [](const ValueInfo& output) {
    return output.type.kind == TypeKind::sequence || output.type.kind == TypeKind::optional ||
           output.type.element == ElementType::string;
  });
}

ir::Value* choose_value(NodeContext& c, ir::Value* condition, ir::Value* yes, ir::Value* no) {
  if (!c.failed() && yes->dtype() != no->dtype()) {
    c.invalid("a condition chooses between tensors of different types, {} and {}", name_of(yes->dtype()),
              name_of(no->dtype()));
  } else if (!c.failed() && yes->rank() != no->rank()) {
    c.unsupported("what only running tells chooses between tensors of different ranks, {} and {}", yes->rank(),
                  no->rank());
  }
  if (yes == no) return yes;
  return yes->shape() == no->shape() ? c.select(c.reshape(condition, Ints{}), yes, no)
                                     : c.add(ChooseAttrs{}, {condition, yes, no});
}

void select_slots(NodeContext& c, ir::Value* condition, const GraphProto& then_graph, const GraphProto& else_graph) {
  const std::vector<Slot> yes = c.run_graph(then_graph, std::vector<Slot>());
  const std::vector<Slot> no = c.run_graph(else_graph, std::vector<Slot>());
  if (c.failed()) return;
  if (yes.size() != no.size()) return c.invalid("its branches differ in their number of outputs");
  for (size_t i = 0; i < yes.size() && !c.failed(); ++i) c.set_output(i, select_slot(c, condition, yes[i], no[i], i));
}

void write_loop_out(NodeContext& c, const GraphProto& body, size_t num_carried) {
  std::optional<double> trips;
  if (c.has(0)) {
    trips = c.constant_scalar(c.require(0));
    if (!trips)
      return c.unsupported(
          "it carries a sequence, an optional or strings, and its trip count is not known; make it a constant, or "
          "yield tensors "
          "as scan outputs where they have the same dimensions");
  }
  if (trips && !c.has(1) && *trips > static_cast<double>(kMostRounds)) return too_many_rounds(c);
  std::vector<Slot> carried;
  for (size_t i = 0; i < num_carried; ++i) carried.push_back(c.require_slot(2 + i));
  std::vector<std::vector<ir::Value*>> rows(body.outputs.size() - 1 - num_carried);
  bool holds = !c.has(1) || goes_on(c, c.require(1));
  for (int64_t round = 0; holds && !c.failed() && !(trips && static_cast<double>(round) >= *trips); ++round) {
    if (round == kMostRounds) return too_many_rounds(c);
    std::vector<Slot> inputs = {to_slot(c.integer_scalar(round)), to_slot(c.constant(Tensor::of<bool>({}, {true})))};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<Slot> outputs = c.run_graph(body, inputs);
    if (c.failed()) return;
    if (c.has(1)) {
      if (!outputs[0].is_tensor()) return c.invalid("the condition that its body yields is not a tensor");
      holds = goes_on(c, outputs[0].value);
    }
    carried.assign(outputs.begin() + 1, outputs.begin() + static_cast<ptrdiff_t>(1 + num_carried));
    for (size_t i = 0; i < rows.size(); ++i) {
      const Slot& row = outputs[1 + num_carried + i];
      if (!row.is_tensor())
        return c.invalid("what it stacks, '{}', is not a tensor", body.outputs[1 + num_carried + i].name);
      rows[i].push_back(c.unsqueeze(row.value, {0}));
    }
  }
  for (size_t i = 0; i < num_carried && !c.failed(); ++i) c.pass_on(i, carried[i]);
  for (size_t i = 0; i < rows.size() && !c.failed(); ++i)
    c.set_output(num_carried + i, stack(c, rows[i], body.outputs[1 + num_carried + i]));
}

}  // namespace lathe::onnx
