// SPDX-License-Identifier: Apache-2.0
#include "onnx/bodies.h"

#include <algorithm>

#include "onnx/slot_form.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostRanks = 5;  // that a sequence without tensors is taken to have
constexpr int kMostForms = 8;      // attempts until forms no longer grow; a rank that grows in each round never ends

bool is_known_true(NodeContext& c, const ir::Value* value) {
  const std::optional<double> known = c.constant_scalar(value);
  return known && *known != 0;
}

void yield(ir::GraphBuilder& inside, ir::Value* value, const ValueInfo& output) {
  inside.graph().add_output(value, std::string(output.name));
}

// All tensors of a body's output; their names are those of the output and, behind the first one, numbered.
void yield_all(ir::GraphBuilder& inside, const std::vector<ir::Value*>& tensors, const ValueInfo& output) {
  for (size_t k = 0; k < tensors.size(); ++k)
    inside.graph().add_output(tensors[k], k == 0 ? std::string(output.name) : fmt::format("{}.{}", output.name, k));
}

void refuse_no_tensor(ir::GraphBuilder& inside, const ValueInfo& output) {
  inside.set_error(
      {ErrorCode::op_mode_unsupported,
       fmt::format("its graph yields '{}', which is not a tensor of numbers, and must be one", output.name),
       {}});
}

// The forms of what a loop carries, or of what both branches yield. A body is imported again with larger forms until
// they hold all of its slots: a fixed point.
class Forms {
 public:
  Forms() = default;
  explicit Forms(const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) forms_.push_back(form_of(slot));
  }
  const SlotForm& operator[](size_t i) const { return forms_[i]; }
  size_t size() const { return forms_.size(); }

  // Whether each slot fits its form; forms that do not hold them grow.
  bool hold(std::span<const Slot> slots) {
    bool fits = true;
    if (forms_.empty()) forms_ = Forms({slots.begin(), slots.end()}).forms_;
    for (size_t i = 0; i < slots.size(); ++i) {
      const std::optional<SlotForm> form = joined_form(forms_[i], form_of(slots[i]));
      if (!form) wrong_ = wrong_.value_or(i);
      fits &= form == forms_[i];
      if (form) forms_[i] = *form;
    }
    return fits;
  }
  // The first for which no form holds all that comes.
  std::optional<size_t> wrong() const { return wrong_; }

  std::vector<ir::Value*> tensors(ir::GraphBuilder& c, std::span<const Slot> slots) const {
    std::vector<ir::Value*> all;
    for (size_t i = 0; i < slots.size(); ++i) {
      const std::vector<ir::Value*> some = to_tensors(c, forms_[i], slots[i]);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  std::vector<Slot> slots(std::span<ir::Value* const> tensors) const {
    std::vector<Slot> slots;
    for (const SlotForm& form : forms_) {
      slots.push_back(from_tensors(form, tensors.first(num_tensors(form))));
      tensors = tensors.subspan(num_tensors(form));
    }
    return slots;
  }

 private:
  std::vector<SlotForm> forms_;
  std::optional<size_t> wrong_;
};

}  // namespace

BodyEdge edge_of_tensors(const GraphProto& proto, size_t first) {
  return {[first](ir::GraphBuilder& inside) {
            const std::vector<ir::Value*>& values = inside.graph().inputs();
            std::vector<Slot> slots;
            for (size_t i = first; i < values.size(); ++i) slots.push_back(to_slot(values[i]));
            return slots;
          },
          [&proto](ir::GraphBuilder& inside, const std::vector<Slot>& outputs) {
            for (size_t i = 0; i < outputs.size(); ++i) {
              if (!outputs[i].is_tensor()) return refuse_no_tensor(inside, proto.outputs[i]);
              yield(inside, outputs[i].value, proto.outputs[i]);
            }
          }};
}

// A carried value may turn out to be of other sizes than it begins with: then the body is imported again, for importers
// look at sizes.
std::vector<ir::Value*> add_loop(NodeContext& c, const LoopAttrs& attrs, std::vector<ir::Value*> operands,
                                 const GraphProto& proto, const BodyEdge& edge) {
  const size_t num_results = static_cast<size_t>(attrs.carried) + attrs.stack_axes.size();
  ir::CarriedDims carried_dims;
  while (!c.failed()) {
    Result<std::unique_ptr<ir::Graph>> body = c.graph().make_body(c.name(), attrs, operands, carried_dims);
    if (!body) return c.set_error(body.error()), std::vector<ir::Value*>();
    ir::Captured captured;
    if (!c.fill_body(proto, **body, captured, edge) || (*body)->outputs().empty()) break;
    const ir::Value *begins = operands.size() > 1 ? operands[1] : nullptr, *goes_on = (*body)->outputs()[0].value;
    if (begins && is_known_true(c, begins) && (goes_on == (*body)->inputs()[1] || is_known_true(c, goes_on)))
      operands[1] = nullptr;
    std::vector<ir::Value*> all = operands;
    all.insert(all.end(), captured.values().begin(), captured.values().end());
    std::vector<std::unique_ptr<ir::Graph>> bodies;
    bodies.push_back(std::move(*body));
    ir::Node* loop = c.add_node(attrs, std::move(bodies), std::move(all), num_results);
    if (!loop) break;
    std::vector<ir::Value*> results;
    for (size_t i = 0; i < num_results; ++i) results.push_back(loop->output(i));
    if (loop->carried_dims().size() == carried_dims.size()) return results;
    carried_dims = loop->carried_dims();
    c.remove_node(loop);
  }
  return {};
}

bool add_branch(NodeContext& c, ir::Value* condition, const GraphProto& then_graph, const GraphProto& else_graph) {
  const BranchAttrs attrs;
  Forms forms;
  for (int round = 0; round < kMostForms; ++round) {
    ir::Captured captured;
    std::vector<std::unique_ptr<ir::Graph>> bodies;
    bool fits = true;
    for (const GraphProto* proto : {&then_graph, &else_graph}) {
      Result<std::unique_ptr<ir::Graph>> body = c.graph().make_body(c.name(), attrs, {condition});
      if (!body) return c.set_error(body.error()), true;
      const BodyEdge edge = {[](ir::GraphBuilder&) { return std::vector<Slot>(); },
                             [&](ir::GraphBuilder& inside, const std::vector<Slot>& outputs) {
                               fits &= forms.hold(outputs);
                               if (!fits) return;
                               for (size_t i = 0; i < outputs.size(); ++i)
                                 yield_all(inside, to_tensors(inside, forms[i], outputs[i]), proto->outputs[i]);
                             }};
      if (!c.fill_body(*proto, **body, captured, edge)) return true;
      bodies.push_back(std::move(*body));
    }
    if (forms.wrong()) return false;
    if (!fits) continue;
    for (const auto& body : bodies) captured.complete(*body);
    std::vector<ir::Value*> operands = {condition};
    operands.insert(operands.end(), captured.values().begin(), captured.values().end());
    const size_t num_results = bodies[0]->outputs().size();
    ir::Node* branch = c.add_node(attrs, std::move(bodies), std::move(operands), num_results);
    std::vector<ir::Value*> results;
    for (size_t i = 0; branch && i < num_results; ++i) results.push_back(branch->output(i));
    if (!branch) return true;
    const std::vector<Slot> slots = forms.slots(results);
    for (size_t i = 0; i < slots.size(); ++i) c.set_output(i, slots[i]);
    return true;
  }
  return false;
}

namespace {

// A loop whose first operands are a trip count and a condition, and which carries `begins`. Results: the carried slots
// after the last round, and what is stacked. `inputs` makes the nested graph's inputs of the round, the condition and
// the carried slots; `outputs` its outputs to the condition, the carried slots of the next round and what is stacked.
struct SlotLoop {
  std::function<std::vector<Slot>(ir::GraphBuilder& inside, const std::vector<Slot>& arguments)> inputs;
  std::function<std::vector<Slot>(ir::GraphBuilder& inside, const std::vector<Slot>& arguments,
                                  const std::vector<Slot>& outputs)>
      outputs;
};

std::vector<Slot> run_slot_loop(NodeContext& c, ir::Value* trips, ir::Value* condition, const std::vector<Slot>& begins,
                                const GraphProto& proto, const SlotLoop& loop) {
  Forms forms(begins);
  const Branches branches = c.branches();
  for (int attempt = 0; attempt < kMostForms && !c.failed(); ++attempt) {
    c.branches() = branches;  // ranks of an attempt before are no reason to take one branch only
    std::vector<ir::Value*> operands = {trips, condition};
    const std::vector<ir::Value*> carried = forms.tensors(c, begins);
    operands.insert(operands.end(), carried.begin(), carried.end());
    LoopAttrs attrs;
    attrs.carried = static_cast<int64_t>(carried.size());
    const size_t num_stacked = proto.outputs.size() - std::min(proto.outputs.size(), begins.size() + 1);
    attrs.stack_axes = attrs.stack_reversed = Ints(num_stacked);
    std::vector<Slot> arguments;
    const BodyEdge edge = {
        [&](ir::GraphBuilder& inside) {
          const std::vector<ir::Value*>& values = inside.graph().inputs();
          arguments = forms.slots(std::span(values).subspan(2, carried.size()));
          arguments.insert(arguments.begin(), {to_slot(values[0]), to_slot(values[1])});
          return loop.inputs(inside, arguments);
        },
        [&](ir::GraphBuilder& inside, const std::vector<Slot>& results) {
          const std::vector<Slot> outputs = loop.outputs(inside, arguments, results);
          if (inside.failed() || !forms.hold(std::span(outputs).subspan(1, begins.size()))) return;
          if (!outputs[0].is_tensor()) return refuse_no_tensor(inside, proto.outputs[0]);
          inside.graph().add_output(outputs[0].value);
          for (ir::Value* tensor : forms.tensors(inside, std::span(outputs).subspan(1, begins.size())))
            inside.graph().add_output(tensor);
          for (size_t i = 1 + begins.size(); i < outputs.size(); ++i) {
            if (!outputs[i].is_tensor()) return refuse_no_tensor(inside, proto.outputs[i]);
            yield(inside, outputs[i].value, proto.outputs[i]);
          }
        }};
    const std::vector<ir::Value*> results = add_loop(c, attrs, operands, proto, edge);
    if (forms.wrong()) break;
    if (results.empty()) continue;
    std::vector<Slot> slots = forms.slots(std::span(results).first(carried.size()));
    for (size_t i = carried.size(); i < results.size(); ++i) slots.push_back(to_slot(results[i]));
    return slots;
  }
  if (!c.failed() && forms.wrong())
    c.unsupported("its carried value {} becomes a tensor of another rank, of another type, or no tensor",
                  *forms.wrong());
  else if (!c.failed())
    c.unsupported("tensors that it carries have more dimensions with each round");
  return {};
}

bool begins_empty(const Slot& slot) {
  const SlotForm form = form_of(slot);
  return form.is_empty && !form.is_maybe && (form.dtype || form.is_text);
}

}  // namespace

// A sequence that begins without tensors has no rank, but what the body does with its tensors may need one. The
// declared one is tried first, then others, until the body can be imported; from there on, run_slot_loop() finds the
// rank of what comes. Where all fail, the errors of the first are reported.
void add_slot_loop(NodeContext& c, const GraphProto& body, size_t num_carried) {
  std::vector<Slot> begins;
  for (size_t i = 0; i < num_carried; ++i) begins.push_back(c.require_slot(2 + i));
  if (c.failed()) return;
  const SlotLoop loop = {
      [](ir::GraphBuilder&, const std::vector<Slot>& arguments) { return arguments; },
      [](ir::GraphBuilder&, const std::vector<Slot>&, const std::vector<Slot>& outputs) { return outputs; }};
  std::vector<Slot> results;
  const auto run = [&](std::optional<int64_t> rank) {
    std::vector<Slot> ranked = begins;
    for (size_t i = 0; i < num_carried; ++i) {
      if (!begins_empty(begins[i])) continue;
      const std::vector<TypeProto>& declared = body.inputs[2 + i].type.inner;
      const size_t own = declared.empty() ? 0 : declared[0].dims.size();
      ranked[i] = to_slot(empty_list(c, form_of(begins[i]).dtype, rank.value_or(static_cast<int64_t>(own))));
    }
    results = run_slot_loop(c, c.input(0), c.input(1), ranked, body, loop);
    return !c.failed();
  };
  const bool is_guess = std::ranges::any_of(begins, begins_empty);
  bool is_final = is_guess && c.attempt([&] { return run({}); });
  for (int64_t rank = 0; is_guess && !is_final && rank < kMostRanks; ++rank)
    is_final = c.attempt([&] { return run(rank); });
  if (!is_final) run({});
  for (size_t i = 0; i < results.size(); ++i) c.set_output(i, results[i]);
}

// All sequences are carried unchanged beside the results, of which each round appends to each.
void add_map_loop(NodeContext& c, const GraphProto& body) {
  std::vector<Slot> begins;
  ir::Value* length = nullptr;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    const Slot& input = c.require_slot(i);
    begins.push_back(input.sequence ? to_slot(to_list(c, *input.sequence)) : input);
    if (c.failed() || !begins.back().open) continue;
    ir::Value* own = length_of(c, *begins.back().open);
    length = length ? only_if_zero(c, own, c.minus(own, length)) : own;
    if (begins.back().open->is_mixed) c.unsupported("its input {} has tensors of different ranks", i);
  }
  const size_t num_inputs = begins.size();
  for (const ValueInfo& output : body.outputs) {
    const ElementType type = output.type.element;
    const std::optional<DType> dtype = to_dtype(type);
    if (!dtype && type != ElementType::string && type != ElementType::undefined)
      return c.unsupported("its graph's output '{}' is declared {}", output.name, name_of(type));
    begins.push_back(to_slot(Sequence{{}, dtype, type == ElementType::string}));
  }
  if (c.failed()) return;
  if (!begins[0].open) return c.invalid("its input 0 is no sequence, but must be");
  const SlotLoop loop = {
      [&](ir::GraphBuilder& inside, const std::vector<Slot>& arguments) {
        std::vector<Slot> inputs(arguments.begin() + 2, arguments.begin() + static_cast<ptrdiff_t>(2 + num_inputs));
        for (Slot& input : inputs)
          if (input.open) input = to_slot(element_at(inside, *input.open, arguments[0].value), input.open->is_text);
        return inputs;
      },
      [&](ir::GraphBuilder& inside, const std::vector<Slot>& arguments, const std::vector<Slot>& outputs) {
        std::vector<Slot> next(arguments.begin() + 1, arguments.end());
        for (size_t i = 0; i < outputs.size(); ++i) {
          const bool is_text = outputs[i].text != nullptr;
          ir::Value* tensor = is_text ? outputs[i].text : outputs[i].value;
          if (!tensor) {
            refuse_no_tensor(inside, body.outputs[i]);
            return next;
          }
          TensorList list = *next[1 + num_inputs + i].open;
          if (list.is_empty)  // of the type that comes, as its own may not be told
            list = empty_list(inside, is_text ? std::nullopt : std::optional(tensor->dtype()), 0);
          next[1 + num_inputs + i] = to_slot(inserted(inside, list, tensor, nullptr));
        }
        return next;
      }};
  const std::vector<Slot> results = run_slot_loop(c, length, nullptr, begins, body, loop);
  for (size_t i = num_inputs; i < results.size(); ++i) c.set_output(i - num_inputs, results[i]);
}

}  // namespace lathe::onnx
