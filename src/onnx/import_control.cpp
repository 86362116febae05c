// SPDX-License-Identifier: Apache-2.0
// Control flow. What can be resolved while importing is: of branches one is imported, or both are and a selection
// follows where they are cheap; short loops of known length are written out. The rest becomes loops and branches of the
// IR.
#include <algorithm>

#include "onnx/bodies.h"
#include "onnx/importer.h"
#include "onnx/sequences.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostWrittenOut = 32;  // steps
constexpr int64_t kMaxBatches = 1024;    // of version 8, each of which is a loop of its own

struct ScanAxes {
  Ints in, in_reversed, out, out_reversed;
};

std::vector<ir::Value*> run_scan(NodeContext& c, const GraphProto& body, const std::vector<ir::Value*>& states,
                                 const std::vector<ir::Value*>& sequences, const ScanAxes& axes) {
  LoopAttrs attrs;
  attrs.carried = static_cast<int64_t>(states.size());
  attrs.scan_axes = axes.in;
  attrs.scan_reversed = axes.in_reversed;
  attrs.stack_axes = axes.out;
  for (size_t k = 0; k < axes.out.size(); ++k)
    if (attrs.stack_axes[k] < 0)
      attrs.stack_axes[k] += static_cast<int64_t>(body.outputs[states.size() + k].type.dims.size()) + 1;
  attrs.stack_reversed = axes.out_reversed;
  std::vector<ir::Value*> operands = {nullptr, nullptr};
  operands.insert(operands.end(), states.begin(), states.end());
  operands.insert(operands.end(), sequences.begin(), sequences.end());
  BodyEdge edge = edge_of_tensors(body, 2);
  const auto yields = std::move(edge.outputs);
  edge.outputs = [&](ir::GraphBuilder& inside, const std::vector<Slot>& outputs) {
    inside.graph().add_output(inside.graph().inputs()[1]);  // nothing ends a scan early
    yields(inside, outputs);
  };
  std::vector<ir::Value*> results = add_loop(c, attrs, std::move(operands), body, edge);
  results.resize(states.size() + axes.out.size(), c.require(0));
  return results;
}

// The steps of one scan: states first, then what each step yields, joined along its axis. Few steps are written out.
std::vector<ir::Value*> scan(NodeContext& c, const GraphProto* body, std::vector<ir::Value*> states,
                             const std::vector<ir::Value*>& sequences, ScanAxes axes) {
  const auto num_states = states.size();
  std::vector<ir::Value*> results(body->outputs.size(), states.empty() ? c.require(0) : states[0]);
  if (results.size() < num_states || sequences.empty()) {
    c.invalid("its body has {} outputs for {} states", results.size(), num_states);
    return results;
  }
  for (size_t i = 0; i < sequences.size(); ++i) axes.in[i] = c.axis(axes.in[i], std::max(sequences[i]->rank(), 1));
  const std::optional<int64_t> steps = c.dim(sequences[0], axes.in[0]).as_constant();
  if (!steps || *steps < 1 || *steps > kMostWrittenOut) return run_scan(c, *body, states, sequences, axes);
  std::vector<std::vector<ir::Value*>> yielded(results.size() - num_states);
  for (int64_t step = 0; step < *steps && !c.failed(); ++step) {
    std::vector<ir::Value*> inputs = states;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const int64_t at = axes.in_reversed[i] ? *steps - 1 - step : step;
      inputs.push_back(c.squeeze(c.slice(sequences[i], axes.in[i], at, at + 1), {axes.in[i]}));
    }
    const std::vector<ir::Value*> outputs = c.run_graph(body, inputs);
    states.assign(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(num_states));
    for (size_t i = num_states; i < outputs.size(); ++i) {
      const size_t k = i - num_states;
      ir::Value* row = c.unsqueeze(outputs[i], {axes.out[k]});
      yielded[k].insert(axes.out_reversed[k] ? yielded[k].begin() : yielded[k].end(), row);
    }
  }
  if (c.failed()) return results;
  std::copy(states.begin(), states.end(), results.begin());
  for (size_t k = 0; k < yielded.size(); ++k) results[num_states + k] = c.concat(yielded[k], axes.out[k]);
  return results;
}

// Version 8: axis 0 of everything is a batch, each entry of which is scanned on its own.
void scan_batches(NodeContext& c, const GraphProto* body, size_t num_states, const ScanAxes& axes) {
  if (c.has(0)) return c.unsupported("sequence_lens is not supported");
  const std::optional<int64_t> batches = c.dim(c.require(1), 0).as_constant();
  if (!batches || *batches < 1 || *batches > kMaxBatches) return c.unsupported("its batch size must be known");
  std::vector<std::vector<ir::Value*>> rows(body->outputs.size());
  for (int64_t batch = 0; batch < *batches && !c.failed(); ++batch) {
    std::vector<ir::Value*> states, sequences;
    for (size_t i = 1; i < c.num_inputs(); ++i) {
      ir::Value* part = c.squeeze(c.slice(c.require(i), 0, batch, batch + 1), {0});
      (i <= num_states ? states : sequences).push_back(part);
    }
    const std::vector<ir::Value*> results = scan(c, body, states, sequences, axes);
    for (size_t i = 0; i < results.size() && !c.failed(); ++i) rows[i].push_back(c.unsqueeze(results[i], {0}));
  }
  for (size_t i = 0; i < rows.size() && !c.failed(); ++i) c.set_output(i, c.concat(rows[i], 0));
}

// The outputs of the only branch of an If that becomes a part of the graph.
void choose_one(NodeContext& c, ir::Value* condition, bool taken, const std::vector<ir::Value*>& outputs) {
  for (size_t i = 0; i < outputs.size() && !c.failed(); ++i)
    c.set_output(i, c.add(ChooseAttrs{}, taken ? std::vector<ir::Value*>{condition, outputs[i]}
                                               : std::vector<ir::Value*>{condition, nullptr, outputs[i]}));
}

// What is worth running one of two graphs for. The other way is to compute both and select.
bool is_worth_a_branch(const GraphProto& graph) {
  constexpr size_t kFewNodes = 8;
  static constexpr std::string_view kHeavy[] = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Loop",      "Scan",
                                                "If",   "LSTM",          "GRU",    "RNN",  "Attention", "Resize",
                                                "TopK", "Einsum"};
  // They fail where the sequence is too short or the element is missing, against which the condition may guard.
  static constexpr std::string_view kFail[] = {"SequenceAt", "SequenceErase", "SequenceInsert", "ConcatFromSequence",
                                               "OptionalGetElement"};
  return graph.nodes.size() > kFewNodes ||
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const NodeProto& node) {
           return std::ranges::count(kHeavy, node.op_type) + std::ranges::count(kFail, node.op_type) > 0;
         });
}

// A branch for outputs of which one at least is no tensor, so that nothing can select them.
void add_only_branch(NodeContext& c, ir::Value* condition, const GraphProto& then_graph, const GraphProto& else_graph) {
  if (then_graph.outputs.size() != else_graph.outputs.size())
    return c.invalid("its branches differ in their number of outputs");
  if (!add_branch(c, condition, then_graph, else_graph))
    c.unsupported(
        "one of its outputs is a tensor of another rank in one branch than in the other, or no tensor there, and its "
        "condition is not known");
}

// Nothing where one of them is no tensor of numbers.
std::optional<std::vector<ir::Value*>> tensors_of(const std::vector<Slot>& slots) {
  std::vector<ir::Value*> tensors;
  for (const Slot& slot : slots) tensors.push_back(slot.value);
  return std::ranges::count(tensors, nullptr) == 0 ? std::optional(tensors) : std::nullopt;
}

}  // namespace

void import_if(NodeContext& c) {
  const GraphProto *then_graph = c.graph("then_branch"), *else_graph = c.graph("else_branch");
  ir::Value* condition = c.require(0);
  if (c.failed()) return;
  if (const std::optional<double> known = c.constant_scalar(condition)) {
    const std::vector<Slot> chosen = c.run_graph(*known != 0 ? *then_graph : *else_graph, std::vector<Slot>());
    for (size_t i = 0; i < chosen.size() && !c.failed(); ++i) c.pass_on(i, chosen[i]);
    return;
  }
  if (yields_no_tensor(*then_graph) || yields_no_tensor(*else_graph))
    return add_only_branch(c, condition, *then_graph, *else_graph);
  if (const auto taken = c.branches().find(c.name()); taken != c.branches().end())
    return choose_one(c, condition, taken->second, c.run_graph(taken->second ? then_graph : else_graph, {}));
  if (then_graph->outputs.size() == else_graph->outputs.size() &&
      (is_worth_a_branch(*then_graph) || is_worth_a_branch(*else_graph)) &&
      add_branch(c, condition, *then_graph, *else_graph))
    return;
  const auto num_before = static_cast<ptrdiff_t>(c.graph().num_nodes());
  const auto then_tensors = tensors_of(c.run_graph(*then_graph, std::vector<Slot>()));
  const auto else_tensors = tensors_of(c.run_graph(*else_graph, std::vector<Slot>()));
  if (c.failed()) return;
  if (!then_tensors || !else_tensors)  // as types that are not declared did not tell
    return add_only_branch(c, condition, *then_graph, *else_graph);
  const std::vector<ir::Value*>&yes = *then_tensors, &no = *else_tensors;
  const auto reads_text = [](const auto& node) { return node->is(OpKind::from_text); };
  if (yes.size() == no.size() &&
      std::any_of(std::next(c.graph().nodes().begin(), num_before), c.graph().nodes().end(), reads_text) &&
      add_branch(c, condition, *then_graph, *else_graph))
    return;  // the condition may guard against text that is no number; what both have been made of is dead
  if (yes.size() != no.size()) return c.invalid("its branches differ in their number of outputs");
  bool same_ranks = true;
  for (size_t i = 0; i < yes.size() && !c.failed(); ++i) {
    if (yes[i]->dtype() != no[i]->dtype())
      return c.invalid("its branches yield different types for output {}, {} and {}", i, name_of(yes[i]->dtype()),
                       name_of(no[i]->dtype()));
    same_ranks &= yes[i]->rank() == no[i]->rank();
  }
  if (!same_ranks) {
    c.branches()[c.name()] = false;
    return choose_one(c, condition, false, no);
  }
  for (size_t i = 0; i < yes.size() && !c.failed(); ++i)
    c.set_output(i, yes[i]->shape() == no[i]->shape() ? c.select(c.reshape(condition, Ints{}), yes[i], no[i])
                                                      : c.add(ChooseAttrs{}, {condition, yes[i], no[i]}));
}

void import_loop(NodeContext& c) {
  const GraphProto* body = c.graph("body");
  if (c.failed()) return;
  const size_t num_carried = c.num_inputs() > 2 ? c.num_inputs() - 2 : 0;
  if (body->inputs.size() != 2 + num_carried || body->outputs.size() < 1 + num_carried)
    return c.invalid("its body has {} inputs and {} outputs for {} carried values", body->inputs.size(),
                     body->outputs.size(), num_carried);
  if (!c.has(0) && !c.has(1)) return c.invalid("it has neither a trip count nor a condition, and would never end");
  bool tensors = !yields_no_tensor(*body);
  for (size_t i = 0; i < num_carried; ++i) tensors &= c.slot(2 + i).is_tensor();
  if (!tensors) {
    if (!write_loop_out(c, *body, num_carried)) add_slot_loop(c, *body, num_carried);
    return;
  }
  LoopAttrs attrs;
  attrs.carried = static_cast<int64_t>(num_carried);
  attrs.stack_axes = attrs.stack_reversed = Ints(body->outputs.size() - 1 - num_carried);
  std::vector<ir::Value*> operands = {c.input(0), c.input(1)};
  for (size_t i = 0; i < num_carried; ++i) operands.push_back(c.require(2 + i));
  if (!c.failed()) c.set_outputs(add_loop(c, attrs, std::move(operands), *body, edge_of_tensors(*body, 0)));
}

void import_scan(NodeContext& c) {
  const GraphProto* body = c.graph("body");
  const int64_t num_sequences = c.require_integer("num_scan_inputs");
  const auto first = static_cast<size_t>(c.version() < 9 ? 1 : 0);
  if (c.failed()) return;
  if (num_sequences < 1 || c.num_inputs() < first + static_cast<size_t>(num_sequences))
    return c.invalid("num_scan_inputs is {}", num_sequences);
  const size_t num_states = c.num_inputs() - first - static_cast<size_t>(num_sequences);
  if (body->outputs.size() < num_states) return c.invalid("its body has fewer outputs than there are states");
  const size_t num_yields = body->outputs.size() - num_states;
  ScanAxes axes{Ints(static_cast<size_t>(num_sequences)), Ints(static_cast<size_t>(num_sequences)), Ints(num_yields),
                Ints(num_yields)};
  if (c.version() < 9) {
    axes.in_reversed = c.integers("directions", axes.in_reversed);
    if (axes.in_reversed.size() != axes.in.size()) return c.invalid("directions has the wrong length");
    return scan_batches(c, body, num_states, axes);
  }
  axes.in = c.integers("scan_input_axes", axes.in);
  axes.in_reversed = c.integers("scan_input_directions", axes.in_reversed);
  axes.out = c.integers("scan_output_axes", axes.out);
  axes.out_reversed = c.integers("scan_output_directions", axes.out_reversed);
  if (axes.in.size() != static_cast<size_t>(num_sequences) || axes.in_reversed.size() != axes.in.size() ||
      axes.out.size() != num_yields || axes.out_reversed.size() != num_yields)
    return c.invalid("its lists of axes and directions do not fit its inputs and outputs");
  std::vector<ir::Value*> states, sequences;
  for (size_t i = 0; i < c.num_inputs(); ++i) (i < num_states ? states : sequences).push_back(c.require(i));
  const std::vector<ir::Value*> results = scan(c, body, states, sequences, axes);
  for (size_t i = 0; i < results.size() && !c.failed(); ++i) c.set_output(i, c.identity(results[i]));
}

}  // namespace lathe::onnx
