// SPDX-License-Identifier: Apache-2.0
#include "api/network/held_plugin.h"

#include "ops/plugin.h"
#include "ops/rules.h"

namespace lathe::api {
namespace {

// Dims as a plugin is asked with: numbers as they are, others as the next symbols. Every dim takes a symbol.
Shape numbered(const std::vector<Expr>& sizes, SymbolId& next) {
  Shape shape;
  for (const Expr& size : sizes) {
    shape.push_back(size.is_constant() ? size : Expr::symbol(next));
    ++next;
  }
  return shape;
}

// Between the numbering in which a plugin is asked, where declared sizes are the last, and that of the op, where they
// are the first.
std::vector<Expr> renumbering(SymbolId given, size_t sizes) {
  std::vector<Expr> to(given + sizes);
  for (SymbolId i = 0; i < to.size(); ++i)
    to[i] = Expr::symbol(i < given ? i + static_cast<SymbolId>(sizes) : i - given);
  return to;
}

}  // namespace

Result<std::shared_ptr<HeldPlugin>> HeldPlugin::of(std::unique_ptr<plugin::nv::IPluginV3> plugin, plugin::V2Plugin* v2,
                                                   size_t data_inputs, const std::string& layer) {
  auto held = std::make_shared<HeldPlugin>();
  held->plugin = std::move(plugin);
  held->v2 = v2;
  held->data_inputs = data_inputs;
  LATHE_ASSIGN(const auto asked, plugin::BuildingPlugin::of(*held->plugin, layer));
  LATHE_ASSIGN(held->outputs, asked.num_outputs());
  return held;
}

Result<> HeldPlugin::check_sizes(const std::string& layer, const std::vector<ir::Value*>& inputs) const {
  const char* const known = v2 ? v2->fixed_sizes_class() : nullptr;
  for (size_t i = 0; known && i < data_inputs; ++i)
    for (const Expr& dim : inputs[i]->shape())
      if (!dim.is_constant())
        return fail(ErrorCode::shape_unknown,
                    "plugin '{}' of layer '{}' is an {}, which is told of fixed sizes alone, and input {} ('{}') has a "
                    "dynamic dimension: fix it, or derive the plugin from IPluginV3 or IPluginV2DynamicExt",
                    v2->getPluginName(), layer, known, i, inputs[i]->name());
  return {};
}

Result<PluginAttrs> HeldPlugin::describe(const std::string& layer, const std::vector<ir::Value*>& inputs) {
  LATHE_TRY(check_sizes(layer, inputs));
  LATHE_ASSIGN(const auto asked, plugin::BuildingPlugin::of(*plugin, layer));
  std::vector<DType> types;
  std::vector<Shape> shapes, contents;
  SymbolId given = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i < data_inputs) {
      types.push_back(inputs[i]->dtype());
      shapes.push_back(numbered(inputs[i]->shape(), given));
      continue;
    }
    if (!inputs[i]->elements())
      return fail(ErrorCode::shape_unknown,
                  "shape input {} ('{}') is no shape tensor: its contents are not known from sizes and constants",
                  i - data_inputs, inputs[i]->name());
    contents.push_back(numbered(*inputs[i]->elements(), given));
  }
  LATHE_ASSIGN(const std::vector<DType> result_types, asked.output_types(types));
  LATHE_ASSIGN(plugin::BuildingPlugin::Shapes results, asked.output_shapes(shapes, contents, given));
  if (result_types.size() != outputs)
    return fail(ErrorCode::graph_invalid, "{}: it had {} outputs, and now {}", asked.who().text(), outputs,
                result_types.size());
  const std::vector<Expr> to = renumbering(given, results.sizes.size());
  std::vector<ValueType> described;
  for (size_t i = 0; i < outputs; ++i) {
    ValueType& type = described.emplace_back(ValueType{result_types[i], {}});
    for (const Expr& dim : results.outputs[i]) type.shape.push_back(dim.substitute(to));
  }
  std::vector<PluginSize> limits;
  for (plugin::DeclaredSize& size : results.sizes) {
    size.opt = size.opt.substitute(to);
    size.upper = size.upper.substitute(to);
    if (!may_hold_symbols(result_types[size.output]))
      return fail(ErrorCode::graph_invalid,
                  "{}: the size tensor, output {}, is of type {}; INT32 and INT64 are allowed", asked.who().text(),
                  size.output, name_of(result_types[size.output]));
    limits.push_back({size.output, size.upper});
  }
  sizes = std::move(results.sizes);
  PluginAttrs attrs;
  attrs.name = asked.who().name;
  attrs.version = asked.who().version;
  attrs.space = asked.space();
  attrs.data_inputs = static_cast<int64_t>(data_inputs);
  attrs.results = results_text(described);
  attrs.sizes = sizes_text(limits);
  return attrs;
}

}  // namespace lathe::api
