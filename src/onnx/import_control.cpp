// SPDX-License-Identifier: Apache-2.0
// Control flow, where it can be resolved while importing: of branches one is imported, or both are and a selection
// follows; loops of known length are written out.
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMaxSteps = 1024;

struct ScanAxes {
  Ints in, in_reversed, out, out_reversed;
};

// The steps of one scan, written out: states first, then what each step yields, joined along its axis.
std::vector<ir::Value*> write_out(NodeContext& c, const GraphProto* body, std::vector<ir::Value*> states,
                                  const std::vector<ir::Value*>& sequences, ScanAxes axes) {
  const auto num_states = states.size();
  std::vector<ir::Value*> results(body->outputs.size(), states.empty() ? c.require(0) : states[0]);
  if (results.size() < num_states || sequences.empty()) {
    c.invalid("its body has {} outputs for {} states", results.size(), num_states);
    return results;
  }
  for (size_t i = 0; i < sequences.size(); ++i) axes.in[i] = c.axis(axes.in[i], std::max(sequences[i]->rank(), 1));
  const std::optional<int64_t> steps = c.dim(sequences[0], axes.in[0]).as_constant();
  if (!steps || *steps < 1 || *steps > kMaxSteps) {
    c.unsupported("its number of steps must be known, and between 1 and {}", kMaxSteps);
    return results;
  }
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
  if (!batches || *batches < 1 || *batches > kMaxSteps) return c.unsupported("its batch size must be known");
  std::vector<std::vector<ir::Value*>> rows(body->outputs.size());
  for (int64_t batch = 0; batch < *batches && !c.failed(); ++batch) {
    std::vector<ir::Value*> states, sequences;
    for (size_t i = 1; i < c.num_inputs(); ++i) {
      ir::Value* part = c.squeeze(c.slice(c.require(i), 0, batch, batch + 1), {0});
      (i <= num_states ? states : sequences).push_back(part);
    }
    const std::vector<ir::Value*> results = write_out(c, body, states, sequences, axes);
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

}  // namespace

void import_if(NodeContext& c) {
  const GraphProto *then_graph = c.graph("then_branch"), *else_graph = c.graph("else_branch");
  ir::Value* condition = c.require(0);
  if (c.failed()) return;
  if (const std::optional<double> known = c.constant_scalar(condition)) {
    const std::vector<ir::Value*> chosen = c.run_graph(*known != 0 ? then_graph : else_graph, {});
    for (size_t i = 0; i < chosen.size() && !c.failed(); ++i) c.set_output(i, c.identity(chosen[i]));
    return;
  }
  if (const auto taken = c.branches().find(c.name()); taken != c.branches().end())
    return choose_one(c, condition, taken->second, c.run_graph(taken->second ? then_graph : else_graph, {}));
  const std::vector<ir::Value*> yes = c.run_graph(then_graph, {}), no = c.run_graph(else_graph, {});
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
  const std::vector<ir::Value*> results = write_out(c, body, states, sequences, axes);
  for (size_t i = 0; i < results.size() && !c.failed(); ++i) c.set_output(i, c.identity(results[i]));
}

}  // namespace lathe::onnx
