// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "onnx/sequences.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostRounds = 1024;

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

bool write_loop_out(NodeContext& c, const GraphProto& body, size_t num_carried) {
  const std::optional<double> trips = c.constant_scalar(c.input(0));
  const auto known = [&](const ir::Value* condition) { return c.has(1) ? c.constant_scalar(condition) : 1; };
  const bool is_endless = !trips || *trips > static_cast<double>(kMostRounds);
  if ((c.has(0) && !trips) || (!c.has(1) && is_endless)) return false;
  std::vector<Slot> carried;
  for (size_t i = 0; i < num_carried; ++i) carried.push_back(c.require_slot(2 + i));
  std::vector<std::vector<ir::Value*>> rows(body.outputs.size() - 1 - num_carried);
  std::optional<double> goes_on = known(c.input(1));
  for (int64_t round = 0; goes_on && *goes_on != 0 && !(trips && static_cast<double>(round) >= *trips); ++round) {
    if (round == kMostRounds) return false;
    std::vector<Slot> inputs = {to_slot(c.integer_scalar(round)), to_slot(c.constant(Tensor::of<bool>({}, {true})))};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<Slot> outputs = c.run_graph(body, inputs);
    if (c.failed()) return true;
    if (c.has(1) && !outputs[0].is_tensor()) {
      c.invalid("the condition that its body yields is not a tensor");
      return true;
    }
    goes_on = known(outputs[0].value);
    carried.assign(outputs.begin() + 1, outputs.begin() + static_cast<ptrdiff_t>(1 + num_carried));
    for (size_t i = 0; i < rows.size(); ++i) {
      const Slot& row = outputs[1 + num_carried + i];
      if (!row.is_tensor()) {
        c.invalid("what it stacks, '{}', is not a tensor", body.outputs[1 + num_carried + i].name);
        return true;
      }
      rows[i].push_back(c.unsqueeze(row.value, {0}));
    }
  }
  if (!goes_on) return c.failed();
  for (size_t i = 0; i < num_carried && !c.failed(); ++i) c.pass_on(i, carried[i]);
  for (size_t i = 0; i < rows.size() && !c.failed(); ++i)
    c.set_output(num_carried + i, stack(c, rows[i], body.outputs[1 + num_carried + i]));
  return true;
}

}  // namespace lathe::onnx
