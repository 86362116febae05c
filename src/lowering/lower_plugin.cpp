// SPDX-License-Identifier: Apache-2.0
// Plugins of the application's, which are given dense memory.
#include <algorithm>

#include "lowering/plugin_sizes.h"
#include "lowering/region_lowering.h"
#include "ops/plugin.h"

namespace lathe {

using ir::Node;
using ir::Value;
using plan::TensorId;

std::vector<Expr> given_sizes(const Node& node, size_t found) {
  std::vector<Expr> given(found);
  const auto& attrs = node.attrs<PluginAttrs>();
  const PluginFormats formats = parse_plugin_formats(attrs, node.num_outputs()).value_or(PluginFormats());
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const Value* input = node.input(i);
    const bool is_data = i < static_cast<size_t>(attrs.data_inputs);
    std::vector<Expr> sizes = is_data ? input->shape() : *input->elements();
    if (is_data && formats[i]) sizes = formats[i]->in_network(sizes);
    given.insert(given.end(), sizes.begin(), sizes.end());
  }
  return given;
}

namespace {

// Dims that no size exceeds: each is the larger of what it is for no elements and for the most.
Shape room_of(const Shape& dims, const PluginResults& results, std::vector<Expr> given) {
  Shape room;
  for (const Expr& dim : dims) {
    Expr most = dim;
    for (size_t i = 0; i < results.sizes.size(); ++i) {
      std::vector<Expr> none(given.size()), all(given.size());
      for (SymbolId s = 0; s < given.size(); ++s) none[s] = all[s] = Expr::symbol(s);
      none[i] = 0;
      all[i] = results.sizes[i].upper;
      most = max(most.substitute(none), most.substitute(all));
    }
    room.push_back(most.substitute(given));
  }
  return room;
}

bool uses_sizes(const Shape& dims, size_t found) {
  return std::any_of(dims.begin(), dims.end(), [&](const Expr& dim) {
    std::vector<SymbolId> used;
    dim.collect_symbols(used);
    return !used.empty() && used.front() < found;
  });
}

}  // namespace

// A result whose size the plugin finds out is written to memory that has room for the most, and copied from there once
// the size is known.
Result<> RegionLowering::lower_plugin(const Node& node) {
  const auto& attrs = node.attrs<PluginAttrs>();
  LATHE_ASSIGN(const PluginResults results, parse_plugin_results(attrs));
  const std::vector<Expr> given = given_sizes(node, results.sizes.size());
  Pending pending(node.name(), node.origin(), "plugin");
  plan::Step& step = pending.step;
  step.work = plan::PluginCall();
  step.op = node.info().name;
  step.attributes = to_text(attrs);
  step.tactic = fmt::format("plugin {} version {} tactic {}", attrs.name, attrs.version, attrs.tactic);
  for (size_t i = 0; i < static_cast<size_t>(attrs.data_inputs); ++i) step.inputs.push_back(dense_of(node.input(i)));
  std::vector<Move> moves;
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const Value* output = node.output(i);
    const Shape& dims = results.types[i].shape;
    if (uses_sizes(dims, results.sizes.size())) {
      const TensorId room = tensors_.temporary(output->name(), output->dtype(), room_of(dims, results, given));
      plan::TensorDesc part = tensors_[room];
      part.dims = output->shape();
      step.outputs.push_back(room);
      moves.push_back({tensors_.add(std::move(part)), output});
    } else {
      step.outputs.push_back(dense_output(output, moves));
    }
    if (i < attrs.aliases.size() && attrs.aliases[i] >= 0) {  // what it changes in place is a copy
      TensorId& input = step.inputs[static_cast<size_t>(attrs.aliases[i])];
      lower_copy(input, step.outputs[i], fmt::format("{} (in place)", output->name()), {});
      input = step.outputs[i];
    }
  }
  for (const PluginSize& size : results.sizes) {
    const std::vector<Expr>* elements = node.output(size.output)->elements();
    if (const auto symbol = elements ? (*elements)[0].as_symbol() : std::nullopt)
      step.counts.push_back({*symbol, static_cast<uint32_t>(size.output), size.upper.substitute(given)});
  }
  add(std::move(pending), moves);
  return {};
}

}  // namespace lathe
