// SPDX-License-Identifier: Apache-2.0
#include "lowering/tensor_report.h"

#include <algorithm>
#include <unordered_map>

#include "ops/attention_inputs.h"
#include "ops/seen_keys_of.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

std::string names_of(const std::vector<Node*>& nodes) {
  constexpr size_t kNamed = 6;
  std::string text;
  for (size_t i = 0; i < std::min(nodes.size(), kNamed); ++i) text += (i ? " + " : "") + nodes[i]->name();
  return nodes.size() > kNamed ? text + " + ..." : text;
}

std::string layout_of(const Value& value, const Shape& strides) {
  if (is_dense(value.shape(), strides, Layout::linear)) return "linear";
  return is_dense(value.shape(), strides, Layout::channels_last) ? "channels-last" : "strided";
}

// What an attention knows by the places of queries and keys; empty = nothing.
std::string places_text(const Node& attention) {
  const bool has_distances = attention.num_inputs() > attention_input::kDistances;
  std::string added =
      has_distances ? "what is added by a key's distance from a query is read by that: there is one number of each\n"
                    : "";
  const SeenKeys seen = seen_keys_of(attention.attrs<AttentionAttrs>());
  if (seen.is_all()) return added;
  const std::string others = seen.window == 0 ? "those before it"
                             : seen.causal    ? fmt::format("the {} before it", seen.window - 1)
                                              : fmt::format("the {} on either side", seen.window - 1);
  return fmt::format("a query sees its own key and {}: no others are multiplied\n", others) + added;
}

class Describer {
 public:
  Describer(const std::vector<Region>& regions, const Placement& placement, const CostModel& costs,
            const RefusedFusions& refused)
      : placement_(placement), costs_(costs), refused_(refused) {
    for (const Region& region : regions)
      for (const Node* node : region.nodes) region_of_[node] = &region;
  }

  TensorReport describe(const Value& value) const {
    TensorReport report{value.name(), std::string(name_of(value.dtype())) + to_string(value.shape()), "", ""};
    const Node* producer = value.producer();
    const auto found = producer ? region_of_.find(producer) : region_of_.end();
    const Region* region = found == region_of_.end() ? nullptr : found->second;
    const bool is_result =
        !region || std::find(region->outputs.begin(), region->outputs.end(), &value) != region->outputs.end();
    if (is_result) {
      const Location location = placement_.location(&value);
      report.layout = layout_of(value, location.strides);
      report.why = where(value, region, location) + placement_.layouts().explain(&value);
    } else {
      report.why = fmt::format("computed within the step of {}: it is never in memory\n", names_of(region->nodes));
    }
    if (producer && producer->is(OpKind::attention)) report.why += places_text(*producer);
    for (const CostModel::Decision& decision : costs_.decisions())
      if (decision.value == &value) report.why += decision.text + "\n";
    for (const RefusedFusions::Note& note : refused_.notes())
      if (note.root == producer || is_read_by(value, *note.root)) report.why += text_of(note);
    return report;
  }

 private:
  static bool is_read_by(const Value& value, const Node& node) {
    return std::any_of(value.uses().begin(), value.uses().end(), [&](const ir::Use& use) { return use.node == &node; });
  }

  std::string where(const Value& value, const Region* region, const Location& location) const {
    if (!region) return "an input of the network\n";
    const std::string step = names_of(region->nodes);
    if (location.root == &value) return fmt::format("written by the step of {}\n", step);
    if (placement_.is_free(*region)) return fmt::format("a view of the memory of {}: no step\n", location.root->name());
    return fmt::format("written by the step of {} into the memory of {}\n", step, location.root->name());
  }

  static std::string text_of(const RefusedFusions::Note& note) {
    std::string text = fmt::format("{}: {}, for no tactic takes that\n", note.root->name(), note.what);
    for (const std::string& reason : note.reasons)
      if (reason.find(": not ") == std::string::npos) text += "  " + reason + "\n";
    return text;
  }

  const Placement& placement_;
  const CostModel& costs_;
  const RefusedFusions& refused_;
  std::unordered_map<const Node*, const Region*> region_of_;
};

}  // namespace

std::vector<TensorReport> describe_tensors(const ir::Graph& graph, const std::vector<Region>& regions,
                                           const Placement& placement, const CostModel& costs,
                                           const RefusedFusions& refused) {
  const Describer describer(regions, placement, costs, refused);
  std::vector<TensorReport> reports;
  for (const Value* input : graph.inputs()) reports.push_back(describer.describe(*input));
  for (const auto& node : graph.nodes())
    for (size_t i = 0; i < node->num_outputs(); ++i)
      if (!node->output(i)->content()) reports.push_back(describer.describe(*node->output(i)));
  return reports;
}

}  // namespace lathe
