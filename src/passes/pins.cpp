// SPDX-License-Identifier: Apache-2.0
#include "passes/pins.h"

#include <algorithm>

#include "passes/precision_rules.h"

namespace lathe {
namespace {

bool stands_for(const ir::Node& node, const std::string& layer) {
  return std::find(node.origin().begin(), node.origin().end(), layer) != node.origin().end();
}

bool is_narrow_float(DType type) { return type == DType::f16 || type == DType::bf16; }

// The values that leave a layer: what other layers or the application read.
std::vector<ir::Value*> outputs_of(const ir::Graph& graph, const std::string& layer) {
  std::vector<ir::Value*> outputs;
  for (const auto& node : graph.nodes()) {
    if (!stands_for(*node, layer)) continue;
    for (size_t i = 0; i < node->num_outputs(); ++i) {
      ir::Value* value = node->output(i);
      const bool leaves =
          value->is_graph_output() || std::any_of(value->uses().begin(), value->uses().end(),
                                                  [&](const ir::Use& use) { return !stands_for(*use.node, layer); });
      if (leaves) outputs.push_back(value);
    }
  }
  return outputs;
}

// Readers of the value take it rounded to the type.
Result<> round_value(ir::Graph& graph, ir::Value* value, DType type, const std::string& layer) {
  const auto& nodes = graph.nodes();
  auto next =
      std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.get() == value->producer(); });
  ir::Node* before = ++next == nodes.end() ? nullptr : next->get();
  LATHE_ASSIGN(ir::Value * narrow, add_named_cast(graph, value, type, {layer}, before));
  LATHE_ASSIGN(ir::Value * wide, add_named_cast(graph, narrow, value->dtype(), {layer}, before));
  LATHE_TRY(graph.replace_uses(value, wide));
  return graph.set_input(narrow->producer(), 0, value);  // it was a reader, too
}

Result<> apply_output_types(ir::Graph& graph, PrecisionPin& pin) {
  const std::vector<ir::Value*> outputs = outputs_of(graph, pin.layer);
  for (const auto& [index, type] : pin.outputs) {
    if (index >= outputs.size())
      return fail(ErrorCode::config_invalid, "layer '{}' has {} outputs in use, so output {} has no type to set",
                  pin.layer, outputs.size(), index);
    ir::Value* value = outputs[index];
    if (value->dtype() == type) {  // it has to stay so
      if (type == DType::f32 && !pin.precision) pin.precision = DType::f32;
    } else if (value->dtype() == DType::f32 && is_narrow_float(type)) {
      LATHE_TRY(round_value(graph, value, type, pin.layer));
    } else {
      return fail(ErrorCode::config_invalid, "output {} of layer '{}' has type {}, which cannot be made {}; add a cast",
                  index, pin.layer, name_of(value->dtype()), name_of(type));
    }
  }
  return {};
}

}  // namespace

Result<> apply_pins(ir::Graph& graph, PassContext& context) {
  for (PrecisionPin& pin : context.pins) {
    const auto& nodes = graph.nodes();
    if (std::none_of(nodes.begin(), nodes.end(), [&](const auto& node) { return stands_for(*node, pin.layer); }))
      return fail(ErrorCode::config_invalid, "a precision is set for layer '{}', which the network does not have",
                  pin.layer);
    if (pin.precision && *pin.precision != DType::f32 && *pin.precision != DType::i8 &&
        !is_narrow_float(*pin.precision))
      return fail(ErrorCode::config_invalid, "layer '{}' cannot compute in {}: say f32, f16, bf16 or i8", pin.layer,
                  name_of(*pin.precision));
    LATHE_TRY(apply_output_types(graph, pin));
  }
  return {};
}

std::optional<DType> pinned_precision(const ir::Node& node, PassContext& context) {
  const PrecisionPin* chosen = nullptr;
  for (const PrecisionPin& pin : context.pins) {
    if (!pin.precision || *pin.precision == DType::i8 || !stands_for(node, pin.layer)) continue;
    if (chosen && *chosen->precision != *pin.precision)
      note_unmet(
          node,
          fmt::format("it became one with layer '{}', for which {} is set", chosen->layer, name_of(*chosen->precision)),
          context);
    if (!chosen || size_of(*pin.precision) > size_of(*chosen->precision)) chosen = &pin;
  }
  return chosen ? chosen->precision : std::nullopt;
}

bool keeps_floats(const ir::Node& node, PassContext& context) {
  return !context.pins.empty() && pinned_precision(node, context).has_value();
}

void note_unmet(const ir::Node& node, std::string_view reason, PassContext& context) {
  for (const PrecisionPin& pin : context.pins) {
    if (!pin.precision || !stands_for(node, pin.layer)) continue;
    std::string text = fmt::format("layer '{}' cannot compute in {}: {}", pin.layer, name_of(*pin.precision), reason);
    if (std::find(context.unmet_pins.begin(), context.unmet_pins.end(), text) == context.unmet_pins.end())
      context.unmet_pins.push_back(std::move(text));
  }
}

Result<> report_unmet_pins(const ir::Graph& graph, PassContext& context, Log& log) {
  for (const PrecisionPin& pin : context.pins) {
    if (pin.precision != DType::i8) continue;
    const ir::Node* found = nullptr;
    bool satisfied = false;
    for (const auto& node : graph.nodes()) {
      if (!stands_for(*node, pin.layer)) continue;
      found = node.get();
      satisfied |= node->input(0) && is_byte_integer(node->input(0)->dtype());
    }
    if (found && !satisfied) note_unmet(*found, "its operands are not quantised; give them Q/DQ pairs", context);
  }
  std::string all;
  for (const std::string& text : context.unmet_pins) {
    if (!context.obey_pins) log.print(Severity::warning, "{}", text);
    all += (all.empty() ? "" : "; ") + text;
  }
  if (context.obey_pins && !all.empty()) return fail(ErrorCode::config_invalid, "{}", all);
  return {};
}

}  // namespace lathe
